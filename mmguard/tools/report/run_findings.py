"""What the ends of all ranks, and what they lacked before, say together."""

from __future__ import annotations

from typing import Dict, List, Optional

from mmguard.config.read import ReadConfig
from mmguard.findings import Finding, diagnose
from mmguard.findings.rules.run import RUN_RULES
from mmguard.findings.run import KILLED, MISSED_ANOTHER, RAISED, STOOD_STILL, RankFacts, RunFacts
from mmguard.log.flight_reader import KILLED as WAS_KILLED
from mmguard.tools.explain.sources import config_of
from mmguard.tools.report.crash import RankCrash, is_of_another_rank
from mmguard.tools.report.log_config import read_config
from mmguard.tools.report.run_report import RunReport


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
    ending = {'exception': raised, WAS_KILLED: KILLED}.get(rank.reason, STOOD_STILL)
    return RankFacts(rank.rank, ending, rank.said, rank.error, rank.iteration)


def _config_of(report: RunReport) -> Optional[ReadConfig]:
    """The config beside the record of the rank that ended first."""
    path = config_of(report.crash.ranks[0].path.parent) if report.crash.ranks else None
    try:
        return None if path is None else ReadConfig(read_config(path))
    except (OSError, ValueError):
        return None
