"""Report of a run: the contents of its logs, records and flight records, and the findings."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Set, Tuple

from mmguard.config.read import ReadConfig
from mmguard.files.regular import read_regular
from mmguard.findings import Finding, diagnose, select_rules
from mmguard.findings.rule import RunRule
from mmguard.findings.run import KILLED, MISSED_ANOTHER, RAISED, UNCLEAR, RankFacts, RunFacts
from mmguard.log.flight_record import KILLED as WAS_KILLED
from mmguard.log.flight_record import RUNNING, Flight, FlightBatch, read_flight
from mmguard.log.lines import UnreadParts, read_logs, sum_lines
from mmguard.log.run_files import LoggedRun, NotALog, find_run, read_run
from mmguard.text import shorten_list
from mmguard.tools.explain.sources import find_config
from mmguard.tools.report.mode_report import ModeReport, build_mode_reports

_FRAME = re.compile(r'^ *File "(.+)", line (\d+), in (.+)$', re.MULTILINE)

#: Exceptions of the other ranks when a rank is gone: mmguard, gloo, NCCL.
_OF_ANOTHER_RANK = re.compile('^AbsentRankError|by peer|remote process exited')


@dataclass
class RankCrash:
    """End of one rank, from its file."""

    path: Path
    flight: Flight

    @property
    def ending(self) -> str:
        """Kind of the rank's end. An exception may only report that another rank is gone."""
        raised = MISSED_ANOTHER if _OF_ANOTHER_RANK.search(self.flight.error) else RAISED
        return {'exception': raised, WAS_KILLED: KILLED}.get(self.flight.reason, UNCLEAR)

    @property
    def traceback(self) -> str:
        """Traceback of the exception."""
        return '' if self.flight.exception is None else self.flight.exception.traceback

    @property
    def batches(self) -> List[FlightBatch]:
        """Last batches, the newest first."""
        return self.flight.batches[::-1]

    @property
    def place(self) -> str:
        """Innermost line of the traceback, ``'loss.py:45 in forward'``."""
        frames = _FRAME.findall(self.traceback)
        return '{}:{} in {}'.format(*frames[-1]) if frames else ''

    @property
    def summary(self) -> str:
        """End in one line: ``rank 0 ended by RuntimeError in iteration 37 (epoch 2), 2026-01-01T12:00:00``."""
        flight = self.flight
        how = flight.error.partition(':')[0] if flight.error else flight.reason
        verb = {'exception': 'ended by', WAS_KILLED: 'was', RUNNING: 'is'}.get(flight.reason, 'was recorded:')
        where = '' if flight.iter is None else f' in iteration {flight.iter:,}'
        where += '' if flight.epoch is None or not where else f' (epoch {flight.epoch:,})'
        when = f', {flight.time}' if flight.time else ''
        ending = f'{verb} {how}' if how else 'left no record of its end'
        return f'rank {flight.rank} {ending}{where or " before the first iteration"}{when}'


@dataclass
class Crash:
    """Crash of a run: its ranks, first the one that probably ended the others; ranks without a record; problems."""

    ranks: List[RankCrash] = field(default_factory=list)
    silent: List[int] = field(default_factory=list)
    problems: List[str] = field(default_factory=list)
    is_damaged: bool = False

    @property
    def replay(self) -> str:
        """Command to continue with."""
        path = self.ranks[0].path
        config = find_config(path.parent)
        return f'mmguard replay {"CONFIG" if config is None else shlex.quote(str(config))} {shlex.quote(str(path))}'


def read_crash(paths: Sequence[Path], world_size: int = 0) -> Crash:
    """Read the files of all ranks; unreadable files, and those that do not record an end, are in ``problems``."""
    crash = Crash()
    there: Set[int] = set()
    for path in paths:
        try:
            flight = read_flight(str(path))
        except (OSError, ValueError) as error:
            crash.is_damaged = True
            crash.problems.append(f'{path}: {error.strerror or error}' if isinstance(error, OSError) else str(error))
            continue
        rank = RankCrash(path, flight)
        there.add(flight.rank)
        if flight.reason == RUNNING:
            crash.problems.append(f'{path}: {rank.summary}')
        else:
            crash.ranks.append(rank)
        crash.problems += flight.unread.list_messages()
    crash.ranks.sort(key=_get_order)
    # Only if the file of another rank is expected here: a single file may come from elsewhere.
    crash.silent = [rank for rank in range(world_size) if rank not in there]
    return crash


def _get_order(rank: RankCrash) -> Tuple[int, str, int]:
    # A launcher kills the other ranks when one has raised an exception of its own.
    return {RAISED: 0, KILLED: 1}.get(rank.ending, 2), rank.flight.time, rank.flight.rank


def run_findings(report: RunReport) -> List[Finding]:
    """Return the findings about the run and its ranks, the most likely first."""
    ranks = tuple(
        RankFacts(rank.flight.rank, rank.ending, rank.summary, rank.flight.error, rank.flight.iter)
        for rank in report.crash.ranks
    )
    rules = [rule for rule in select_rules() if issubclass(rule, RunRule)]
    return diagnose(config=_read_settings(report), rules=rules, run=_run_facts(report), ranks=ranks)


def _run_facts(report: RunReport) -> RunFacts:
    facts = RunFacts(report.crash.silent if report.crash.ranks else [])
    for mode in report.modes:
        for loss, by_rank in mode.in_all.filled.items():
            known: Dict[int, int] = facts.filled.setdefault(loss, {})
            for rank, number in by_rank.items():
                known[int(rank)] = known.get(int(rank), 0) + number
        facts.first_filled.update(mode.lines.first_filled)
    return facts


def _read_settings(report: RunReport) -> Optional[ReadConfig]:
    """Return the settings on unused parameters in the config next to the record of the rank that ended first.

    The config is searched, never run: a log may come from anywhere. ``None`` without a readable config.
    """
    path = find_config(report.crash.ranks[0].path.parent) if report.crash.ranks else None
    try:
        text = '' if path is None else read_regular(path).decode()
    except (OSError, ValueError):
        return None
    settings = {'find_unused_parameters': bool(re.search(r'\bfind_unused_parameters\s*=\s*True\b', text))}
    has_wrapper = re.search(r'^model_wrapper_cfg\s*=', text, re.MULTILINE)
    return ReadConfig({'model_wrapper_cfg': settings} if has_wrapper else settings) if text else None


@dataclass
class RunReport:
    """Report of one run.

    Args:
        files (list[Path]): The files that it is built from.
        modes (list[ModeReport]): The labels that each mode skipped.
        crash (Crash): The crash; without ranks if the run ended well.
        ranks (int): Number of ranks that the sums cover.
        unread (UnreadParts): Parts of the logs that could not be parsed.
        notes (list[str]): Further notes for the user.
        problems (list[str]): Files that could not be read.
        is_damaged (bool): True if the record of a rank, or of its end, could not be read.
    """

    files: List[Path] = field(default_factory=list)
    modes: List[ModeReport] = field(default_factory=list)
    crash: Crash = field(default_factory=Crash)
    ranks: int = 1
    unread: UnreadParts = field(default_factory=UnreadParts)
    notes: List[str] = field(default_factory=list)
    problems: List[str] = field(default_factory=list)
    is_damaged: bool = False

    @property
    def is_clean(self) -> bool:
        # A line of a log reports an offence, even if it cannot be parsed.
        damaged = self.unread.records or self.unread.cut_off
        return not (damaged or self.crash.ranks) and all(mode.skipped_nothing for mode in self.modes)


def read_report(target: Path, num_classes: Optional[int] = None) -> RunReport:
    """Read a run from its log, record, flight record or folder; the given number of classes takes precedence."""
    unread, files = UnreadParts(), find_run(target)
    lines = sum_lines(*(read_logs([path], unread) for path in files.logs))
    run = read_run(files.records)
    crash = read_crash(files.crashes, run.world_size)
    known = LoggedRun() if files.crash_alone else run
    modes = build_mode_reports(lines, known, num_classes)
    problems = unread.list_messages() + run.problems + shorten_list(crash.problems, 20)
    if not modes and not crash.ranks:
        raise NotALog('\n'.join([f'{target}: no output of an mmguard hook, so there is nothing to report', *problems]))
    return RunReport(
        [*files.logs, *([] if files.crash_alone else files.records), *files.crashes],
        modes,
        crash,
        max(1, known.ranks),
        unread,
        shorten_list([f'another run, not shown: {folder}' for folder in files.others]),
        problems,
        bool(run.problems) or crash.is_damaged,
    )
