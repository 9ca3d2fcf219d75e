"""All that is known of a run: what its logs, records and flight records say, and what is found in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional

from mmguard.config.read import ReadConfig
from mmguard.findings import Finding, diagnose
from mmguard.findings.rules.run import RUN_RULES
from mmguard.findings.run import KILLED, MISSED_ANOTHER, RAISED, STOOD_STILL, RankFacts, RunFacts
from mmguard.log.flight_record import KILLED as WAS_KILLED
from mmguard.log.lines import Unread, read_logs, totals_of
from mmguard.log.run_files import NotALog, find_run
from mmguard.log.run_record import LoggedRun, read_run
from mmguard.text.words import first_of
from mmguard.tools.explain.sources import config_of
from mmguard.tools.report.crash import Crash, RankCrash, is_of_another_rank, read_crash
from mmguard.tools.report.log_config import read_config
from mmguard.tools.report.mode_report import ModeReport, mode_reports


def run_findings(report: RunReport) -> List[Finding]:
    """The findings about the run and its ranks, the likeliest first."""
    ranks = tuple(_rank_facts(rank) for rank in report.crash.ranks)
    return diagnose(config=_config_of(report), rules=RUN_RULES, run=_run_facts(report), ranks=ranks)


def _run_facts(report: RunReport) -> RunFacts:
    facts = RunFacts(report.crash.silent if report.crash.ranks else [])
    for mode in report.modes:
        for loss, by_rank in mode.in_all.filled.items():
            known: Dict[int, int] = facts.filled.setdefault(loss, {})
            for rank, number in by_rank.items():
                known[int(rank)] = known.get(int(rank), 0) + number
        facts.first_filled.update(mode.lines.first_filled)
    return facts


def _rank_facts(rank: RankCrash) -> RankFacts:
    raised = MISSED_ANOTHER if is_of_another_rank(rank.error) else RAISED
    ending = {'exception': raised, WAS_KILLED: KILLED}.get(rank.flight.reason, STOOD_STILL)
    return RankFacts(rank.flight.rank, ending, rank.said, rank.error, rank.flight.iter)


def _config_of(report: RunReport) -> Optional[ReadConfig]:
    """The config beside the record of the rank that ended first."""
    path = config_of(report.crash.ranks[0].path.parent) if report.crash.ranks else None
    try:
        return None if path is None else ReadConfig(read_config(path))
    except (OSError, ValueError):
        return None


@dataclass
class RunReport:
    """A run.

    Args:
        files (list[Path]): Those that it is made from.
        modes (list[ModeReport]): What each mode skipped.
        crash (Crash): How it ended; without ranks where it ended well.
        ranks (int): That sums are added up over.
        unread (Unread): What of the logs could not be understood.
        notes (list[str]): What else is to be known.
        problems (list[str]): What could not be read.
        is_damaged (bool): Whether the record of a rank, or of its end, could not be read.
    """

    files: List[Path] = field(default_factory=list)
    modes: List[ModeReport] = field(default_factory=list)
    crash: Crash = field(default_factory=Crash)
    ranks: int = 1
    unread: Unread = field(default_factory=Unread)
    notes: List[str] = field(default_factory=list)
    problems: List[str] = field(default_factory=list)
    is_damaged: bool = False

    @property
    def is_clean(self) -> bool:
        # A line of a log is there because of an offence, also one that cannot be read.
        damaged = self.unread.records or self.unread.cut_off
        return not (damaged or self.crash.ranks) and all(mode.skipped_nothing for mode in self.modes)


def read_report(target: Path, num_classes: Optional[int] = None, ignore_index: Optional[int] = None) -> RunReport:
    """Reads a run.

    Args:
        target (Path): Its log, its ``label_guard.json``, its flight record, or its folder.
        num_classes (int, optional): Where the run's record does not say so.
        ignore_index (int, optional): Of label maps; ``None``: as the run says, or 255.

    Raises:
        NotALog: A hook of mmguard left nothing there.
    """
    unread, files = Unread(), find_run(target)
    lines = totals_of(*(read_logs([path], unread) for path in files.logs))
    run = read_run(files.records)
    crash = read_crash(files.crashes, run.world_size)
    known = LoggedRun() if files.crash_alone else run
    modes = mode_reports(lines, known, num_classes, ignore_index)
    problems = unread.words() + run.problems + first_of(crash.problems, 20)
    if not modes and not crash.ranks:
        raise NotALog('\n'.join([f'{target}: nothing that a hook of mmguard wrote: nothing to report', *problems]))
    return RunReport(
        [*files.logs, *([] if files.crash_alone else files.records), *files.crashes],
        modes,
        crash,
        max(1, known.ranks),
        unread,
        first_of([f'another run, not shown: {folder}' for folder in files.others]),
        problems,
        bool(run.problems) or crash.is_damaged,
    )
