"""A run's report as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List, Optional, Sequence

from mmguard.findings import Finding
from mmguard.findings.wording import unpack
from mmguard.log.iteration_stats import KINDS
from mmguard.tools.explain.explained import Explanation
from mmguard.tools.explain.render import as_json as explanation_as_json
from mmguard.tools.report.crash import Crash, RankCrash
from mmguard.tools.report.mode_report import ModeReport
from mmguard.tools.report.run_report import RunReport


def as_json(report: RunReport, run_findings: Sequence[Finding], end: Optional[Explanation] = None) -> Dict[str, Any]:
    """The whole report, with what is found of the run and its ranks, and what its exceptions mean."""
    crash = report.crash
    return {
        'logs': [str(path) for path in report.files],
        'unread': asdict(report.unread),
        'findings': [unpack(finding) for finding in run_findings],
        'modes': {mode.mode: _mode(mode) for mode in report.modes},
        'crash': _crash(crash) if crash.ranks or crash.problems else None,
        'explanation': None if end is None else explanation_as_json(end, ''),
    }


def _mode(report: ModeReport) -> Dict[str, Any]:
    lines, totals = report.lines, report.in_all
    record: Dict[str, Any] = {
        # The iterations of the log are those with anything; of all of them only a record knows.
        'iterations': lines.iterations,
        'all_iterations': totals.iterations or None,
        'ended': None if report.logged is None else report.logged.ended,
        'empty_images': totals.empty_images,
        'filled': totals.filled,
        'losses': {n: {'skipped': c.skipped, 'remapped': c.remapped} for n, c in totals.losses.items()},
    }
    for kind in KINDS:
        total, space = totals.kinds[kind], report.spaces.of(kind)
        record[kind] = {
            'total': total.total,
            'skipped': total.skipped,
            'remapped': total.remapped,
            'mapped': total.mapped,
            'num_classes': None if space is None else space.num_classes,
            'ignore_index': None if space is None else space.ignore_index,
            'files': [_without(tally.to_json(), 'total') for tally in lines.worst(kind)],  # known per iteration alone
            'findings': [unpack(finding) for finding in report.findings[kind]],
        }
    return record


def _crash(crash: Crash) -> Dict[str, Any]:
    return {
        'ranks': [_rank(rank) for rank in crash.ranks],
        'silent_ranks': crash.silent,
        'problems': crash.problems,
        'replay': crash.replay if crash.ranks else None,
    }


def _rank(rank: RankCrash) -> Dict[str, Any]:
    batches: List[Dict[str, Any]] = []
    for batch in rank.batches:
        samples = [
            {'source': one.source, **{kind: _without(tally.to_json(), 'source') for kind, tally in one.invalid.items()}}
            for one in batch.samples
        ]
        # JSON knows no NaN.
        losses = None if batch.losses is None else {n: v if v - v == 0 else str(v) for n, v in batch.losses.items()}
        batches.append({'iter': batch.iter, 'samples': samples, 'losses': losses})
    return {
        'file': str(rank.path),
        'rank': rank.flight.rank,
        'reason': rank.flight.reason,
        'time': rank.flight.time,
        'iter': rank.flight.iter,
        'epoch': rank.flight.epoch,
        'error': rank.error or None,
        'place': rank.place or None,
        'batches': batches,
    }


def _without(record: Dict[str, Any], key: str) -> Dict[str, Any]:
    return {name: value for name, value in record.items() if name != key}
