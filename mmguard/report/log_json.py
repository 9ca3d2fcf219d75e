"""A run's report as plain data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List, Sequence

from mmguard.log.totals import KINDS
from mmguard.report.crash import Crash, RankCrash
from mmguard.report.log_lines import Unread
from mmguard.report.mode_report import ModeReport


def as_json(logs: Sequence[Path], unread: Unread, modes: Sequence[ModeReport], crash: Crash) -> Dict[str, Any]:
    """The whole report.

    Args:
        logs (list[Path]): The files that it is made from.
        unread (Unread): What of them could not be understood.
        modes (list[ModeReport]): Of the run.
        crash (Crash): How it ended; without ranks where it ended well.
    """
    return {
        'logs': [str(path) for path in logs],
        'unread': asdict(unread),
        'modes': {report.mode: _mode(report) for report in modes},
        'crash': _crash(crash) if crash.ranks or crash.problems else None,
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
        'history': {what: {str(i): n for i, n in sorted(c.items())} for what, c in lines.history.items()},
    }
    for kind in KINDS:
        total, space = totals.kinds[kind], report.spaces[kind]
        record[kind] = {
            'total': total.total,
            'skipped': total.skipped,
            'remapped': total.remapped,
            'mapped': total.mapped,
            'num_classes': None if space is None else space.num_classes,
            'ignore_index': None if space is None else space.ignore_index,
            'files': [_without(tally.to_json(), 'total') for tally in lines.worst(kind)],  # known per iteration alone
            'findings': [
                {
                    'code': f.code,
                    'severity': f.severity,
                    'cause': f.cause,
                    'evidence': f.evidence,
                    'advice': f.advice,
                }
                for f in report.findings[kind]
            ],
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
            {'source': source, **{kind: _without(tally.to_json(), 'source') for kind, tally in found.items()}}
            for source, found in batch.samples
        ]
        # JSON knows no NaN.
        losses = None if batch.losses is None else {n: v if v - v == 0 else str(v) for n, v in batch.losses.items()}
        batches.append({'iter': batch.iteration, 'samples': samples, 'losses': losses})
    return {
        'file': str(rank.path),
        'rank': rank.rank,
        'reason': rank.reason,
        'time': rank.time,
        'iter': rank.iteration,
        'epoch': rank.epoch,
        'error': rank.error or None,
        'place': rank.place or None,
        'batches': batches,
    }


def _without(record: Dict[str, Any], key: str) -> Dict[str, Any]:
    return {name: value for name, value in record.items() if name != key}
