"""Output of ``mmguard report``: how a run died, tables of skipped labels, likely causes."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, Dict, Optional, Sequence

from mmguard.findings import Finding
from mmguard.findings.messages import unpack
from mmguard.findings.run import find_unused
from mmguard.labels.tally import find_path
from mmguard.log.messages import describe_reasons_by_kind, describe_totals, describe_valid, format_files
from mmguard.log.statistics import KINDS
from mmguard.text import quantity, visible, visible_name
from mmguard.tools.console import Table, Text, render_finding
from mmguard.tools.explain.explanation import Explanation
from mmguard.tools.explain.render import as_json as explanation_as_json
from mmguard.tools.report.mode_report import ModeReport
from mmguard.tools.report.run_report import Crash, RankCrash, RunReport

#: Number of batches and files of a crash on the terminal; the JSON has all.
_BATCHES, _FILES = 5, 8
#: Number of files per table.
_WORST = 20


def show(console: Any, report: RunReport, run_findings: Sequence[Finding], verbose: bool = False) -> None:
    """Print how a run ended, the findings about its ranks, and the skipped labels."""
    for line in report.notes:
        console.print(visible(line))
    for line in report.problems:
        console.print(visible(line), style='yellow')
    if report.crash.ranks:
        _print_crash(console, report.crash)
    for finding in run_findings:
        console.print(render_finding(finding, verbose=verbose), soft_wrap=True)
        console.print()
    for mode in report.modes:
        _print_mode(console, mode, report.ranks, verbose)


def _print_mode(console: Any, report: ModeReport, ranks: int, verbose: bool) -> None:
    mode, lines = report.mode, report.lines
    if report.skipped_nothing:
        empty = report.in_all.empty_images
        seen = (
            f'{quantity(empty, "image")} seen without any instance, no other label' if empty else 'no label was counted'
        )
        console.print(describe_valid(mode, report.in_all) or f'{mode}: {seen}')
    else:
        _print_skipped(console, report, ranks)
    if report.note:
        console.print(report.note, style='yellow')
    for kind in KINDS:
        findings = report.findings[kind]
        for place, finding in enumerate(findings if verbose else findings[:1]):
            head = f'{mode}, {kind}: likely cause: ' if place == 0 else '  or: '
            console.print(render_finding(finding, head, verbose), soft_wrap=True)
        if len(findings) > 1 and not verbose:
            console.print(f'  or, with --verbose: {", ".join(finding.code for finding in findings[1:])}')
        if lines.files[kind] and report.spaces.get(kind) is None:
            console.print(
                f'{mode}, {kind}: the number of classes is not known: with --num-classes N the likely cause is named'
            )


def _print_skipped(console: Any, report: ModeReport, ranks: int) -> None:
    mode, totals = report.mode, report.lines
    for kind in KINDS:
        if totals.files[kind]:
            title = f'mmguard: {mode}, {kind}'
            worst = totals.find_worst(kind)
            shown = [replace(tally, source=find_path(str(tally.source), report.data_roots)) for tally in worst[:_WORST]]
            for row in format_files(title, shown, len(worst[_WORST:])):
                console.print(row, soft_wrap=True)
    reasons = describe_reasons_by_kind({kind: report.get_values(kind) for kind in KINDS})
    for line in describe_totals(replace(report.in_all, filled={}), ranks) + reasons:
        console.print(visible(line))
    console.print()


def _print_crash(console: Any, crash: Crash) -> None:
    """Print how a run ended: the rank that ended first with its last batches, and one line per other rank."""
    first = crash.ranks[0]
    console.print(Text.assemble(('crash: ', 'bold red'), visible(first.summary)))
    for line in (first.flight.error, f'at {first.place}' if first.place else ''):
        if line:
            console.print(Text(f'  {_shorten(visible(line))}'))
    for rank in crash.ranks[1:]:
        error = f': {_shorten(visible(rank.flight.error))}' if rank.flight.error else ''
        console.print(Text(f'       {visible(rank.summary)}{error}'))
    if first.batches:
        console.print(_build_batches(first))
    console.print(Text.assemble('  which sample it is: ', (visible(crash.replay), 'bold cyan')), soft_wrap=True)
    console.print()


def _build_batches(rank: RankCrash) -> Table:
    table = Table(title=f'last batches of rank {rank.flight.rank}, the newest first', title_justify='left')
    table.add_column('iteration', justify='right', no_wrap=True)
    table.add_column('files', overflow='fold')
    for batch in rank.batches[:_BATCHES]:
        files = [visible_name(sample.path) for sample in batch.samples]
        shown = files[:_FILES] + ([f'... and {len(files) - _FILES:,} more'] if len(files) > _FILES else [])
        iteration = '' if batch.iter is None else f'{batch.iter:,}'
        table.add_row(iteration, Text('\n'.join(shown)))
    if len(rank.batches) > _BATCHES:
        table.add_row('...', f'{len(rank.batches) - _BATCHES} more')
    return table


def _shorten(text: str) -> str:
    """Return the first line, and the ranks and parameters without a gradient."""
    lines = text.split('\n')
    return '; '.join([lines[0] + (' ...' if len(lines) > 1 else ''), *find_unused([text]).lines])


def as_json(report: RunReport, run_findings: Sequence[Finding], end: Optional[Explanation] = None) -> Dict[str, Any]:
    """Return the whole report, with the findings about the run and its ranks, and the explanation of its exceptions."""
    crash = report.crash
    return {
        'logs': [str(path) for path in report.files],
        'unread': asdict(report.unread),
        'findings': [unpack(finding) for finding in run_findings],
        'modes': {mode.mode: _convert_mode(mode) for mode in report.modes},
        'crash': {
            'ranks': [_convert_rank(rank) for rank in crash.ranks],
            'silent_ranks': crash.silent,
            'problems': crash.problems,
            'replay': crash.replay if crash.ranks else None,
        }
        if crash.ranks or crash.problems
        else None,
        'explanation': None if end is None else explanation_as_json(end, ''),
    }


def _convert_mode(report: ModeReport) -> Dict[str, Any]:
    lines, totals = report.lines, report.in_all
    record: Dict[str, Any] = {
        # The log only has iterations with something to report; only a record knows all of them.
        'iterations': lines.iterations,
        'all_iterations': totals.iterations or None,
        'ended': None if report.logged is None else report.logged.ended,
        'empty_images': totals.empty_images,
        'filled': totals.filled,
        'losses': {n: {'skipped': c.skipped, 'remapped': c.remapped} for n, c in totals.losses.items()},
    }
    for kind in KINDS:
        total, space = totals.kinds[kind], report.spaces.get(kind)
        record[kind] = {
            'total': total.total,
            'skipped': total.skipped,
            'remapped': total.remapped,
            'mapped': total.mapped,
            'num_classes': None if space is None else space.num_classes,
            'ignore_index': None if space is None else space.ignore_index,
            'files': [
                _drop_key(tally.to_json(), 'total') for tally in lines.find_worst(kind)
            ],  # only known per iteration
            'findings': [unpack(finding) for finding in report.findings[kind]],
        }
    return record


def _convert_rank(rank: RankCrash) -> Dict[str, Any]:
    return {
        'file': str(rank.path),
        'rank': rank.flight.rank,
        'reason': rank.flight.reason,
        'time': rank.flight.time,
        'iter': rank.flight.iter,
        'error': rank.flight.error or None,
        'place': rank.place or None,
        'batches': [
            {'iter': batch.iter, 'samples': [sample.path for sample in batch.samples]} for batch in rank.batches
        ],
    }


def _drop_key(record: Dict[str, Any], key: str) -> Dict[str, Any]:
    return {name: value for name, value in record.items() if name != key}
