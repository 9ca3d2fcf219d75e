"""A log's report for the terminal: tables, plots, likely causes."""

from __future__ import annotations

from typing import Any, Dict, Sequence

from mmguard.console import Table, Text
from mmguard.diagnosis import Finding
from mmguard.log.totals import KINDS, LoopTotals
from mmguard.log.wording import amounts, files_table, reasons_by_kind
from mmguard.report.bars import bars
from mmguard.report.crash import Crash, RankCrash, described, silent_ranks
from mmguard.report.html import visible
from mmguard.report.html_history import binned
from mmguard.report.log_totals import ModeTotals, values_of

#: What the terminal shows of a crash; the page and the JSON show all.
_BATCHES, _FILES = 5, 8


def print_mode(console: Any, mode: str, totals: ModeTotals, in_all: LoopTotals, ranks: int, top_k: int) -> None:
    """Prints what one mode skipped.

    Args:
        console (rich.console.Console): With markup off, because names hold brackets.
        mode (str): ``'train'``, ...
        totals (ModeTotals): Of the mode, from its lines.
        in_all (LoopTotals): Its sums.
        ranks (int): That they are added up over.
        top_k (int): Files per table.
    """
    for kind in KINDS:
        if totals.files[kind]:
            title = f'mmguard: {mode}, {kind}'
            worst = totals.worst(kind)
            console.print(files_table(title, worst[:top_k], len(worst[top_k:]), name_width=60))
    for line in amounts(in_all, ranks) + reasons_by_kind({kind: values_of(kind, in_all, totals) for kind in KINDS}):
        console.print(visible(line))
    for what, counts in totals.history.items():
        _print_plot(console, f'{mode}: {what}', counts)
    console.print()


def print_crash(console: Any, crash: Crash) -> None:
    """Prints how a run ended: the rank that ended first with its last batches, the others in a line each."""
    first = crash.ranks[0]
    console.print(Text.assemble(('crash: ', 'bold red'), visible(first.told)))
    for line in (first.error, f'at {first.place}' if first.place else ''):
        if line:
            console.print(Text(f'  {_shortened(visible(line))}'))
    for rank in crash.ranks[1:]:
        console.print(
            Text(f'       {visible(rank.told)}{f": {_shortened(visible(rank.error))}" if rank.error else ""}')
        )
    if crash.silent:
        console.print(Text(f'       {silent_ranks(crash.silent)}'))
    if first.batches:
        console.print(_batches(first))
    console.print(Text.assemble('  which sample it is: ', (visible(crash.replay), 'bold cyan')), soft_wrap=True)
    console.print()


def _batches(rank: RankCrash) -> Table:
    table = Table(title=f'last batches of rank {rank.rank}, the newest first', title_justify='left')
    table.add_column('iteration', justify='right')
    table.add_column('losses', overflow='fold')
    table.add_column('files', overflow='fold')
    for batch in rank.batches[:_BATCHES]:
        losses = '\n'.join(f'{name} {value:.4g}' for name, value in (batch.losses or {}).items())
        files = [f'{source}{f" ({words})" if words else ""}' for source, words in described(batch)]
        files = [name.replace('\n', '\\n') for name in files]
        shown = files[:_FILES] + ([f'... and {len(files) - _FILES:,} more'] if len(files) > _FILES else [])
        iteration = '' if batch.iteration is None else f'{batch.iteration:,}'
        ended = losses if batch.losses is not None else 'did not end'
        table.add_row(iteration, Text(visible(ended)), Text('\n'.join(map(visible, shown))))
    if len(rank.batches) > _BATCHES:
        table.add_row('...', f'{len(rank.batches) - _BATCHES} more', '')
    return table


def _shortened(text: str) -> str:
    lines = text.split('\n')
    return lines[0] + (' ...' if len(lines) > 1 else '')


def print_findings(console: Any, mode: str, kind: str, findings: Sequence[Finding]) -> None:
    for place, finding in enumerate(findings):
        head = f'{mode}, {kind}: likely cause: ' if place == 0 else '  or: '
        console.print(Text.assemble((head, ''), (finding.code, 'bold red'), f' {visible(finding.cause)}'))
        console.print(Text(f'    seen: {visible(finding.evidence)}', style='dim'))
        console.print(Text(f'    {visible(finding.advice)}'))


def _print_plot(console: Any, title: str, counts: Dict[int, int]) -> None:
    first, last = min(counts), max(counts)
    heights = binned(counts, first, last, max(20, min(console.width - 16, 100)))
    edge = f'{max(heights):,}'
    console.print(f'\n{title} per iteration, {sum(counts.values()):,} in all')
    for place, row in enumerate(bars(heights)):
        console.print(f'{edge if place == 0 else "":>12} │{row}', style='magenta', overflow='ignore', no_wrap=True)
    console.print(f'{"0":>12} └{"─" * len(heights)}')
    begin, end = f'{first:,}', f' {last:,}' if last > first else ''
    console.print(f'{"iteration":>12}  {begin}{end:>{max(len(heights) - len(begin), 0)}}')
