"""A log's report for the terminal: tables, plots, likely causes."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from mmguard.diagnosis import Finding
from mmguard.hooks.ledger import KINDS
from mmguard.hooks.wording import percent
from mmguard.instances import describe_boxes, describe_reasons
from mmguard.report.bars import bars
from mmguard.report.html import visible
from mmguard.report.html_history import binned
from mmguard.report.log_totals import ModeTotals

_UNITS = {'pixels': 'px', 'instances': 'instances'}


def print_mode(console: Any, mode: str, totals: ModeTotals, top_k: int) -> None:
    """Prints what one mode skipped.

    Args:
        console (rich.console.Console): With markup off, because names hold brackets.
        mode (str): ``'train'``, ...
        totals (ModeTotals): Of the mode.
        top_k (int): Files per table.
    """
    for kind in KINDS:
        if totals.files[kind]:
            console.print(_table(mode, kind, totals, top_k))
    for line in _amounts(totals):
        console.print(line)
    for what, counts in totals.history.items():
        _print_plot(console, f'{mode}: {what}', counts)
    console.print()


def print_findings(console: Any, mode: str, kind: str, findings: Sequence[Finding]) -> None:
    from rich.text import Text

    for place, finding in enumerate(findings):
        head = f'{mode}, {kind}: likely cause: ' if place == 0 else '  or: '
        console.print(Text.assemble((head, ''), (finding.code, 'bold red'), f' {visible(finding.cause)}'))
        console.print(Text(f'    seen: {visible(finding.evidence)}', style='dim'))
        console.print(Text(f'    {visible(finding.advice)}'))


def _table(mode: str, kind: str, totals: ModeTotals, top_k: int) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f'mmguard: {mode}, {kind}', title_justify='left')
    worst = totals.worst(kind)
    names = [visible(str(tally.source)) for tally in worst[:top_k]]
    # A file name is there to be copied: rather break the values than the name.
    table.add_column('file', overflow='fold', min_width=min(max(map(len, names), default=0), 60))
    for title in ('skipped', 'remapped'):
        table.add_column(title, justify='right')
    table.add_column('values', overflow='fold')
    for name, tally in zip(names, worst):
        values = [f'{v}: {n:,}' for v, n in sorted(tally.values.items(), key=lambda item: -item[1])[:6]]
        row = ', '.join(values + describe_boxes(tally.reasons))
        table.add_row(Text(name), f'{tally.skipped:,}', f'{tally.remapped:,}', row)
    if len(worst) > top_k:
        table.add_row(f'... and {len(worst) - top_k:,} more files', '', '', '')
    return table


def _amounts(totals: ModeTotals) -> List[str]:
    lines = []
    for kind in KINDS:
        total = totals.kinds[kind]
        if total.total:
            lines.append(
                f'{_UNITS[kind]}: {total.skipped:,} of {total.total:,} skipped '
                f'({percent(total.skipped, total.total)}), {total.remapped:,} remapped'
            )
    lines += [
        f'loss {name}: {count.skipped:,} labels skipped, {count.remapped:,} remapped'
        for name, count in totals.losses.items()
        if count
    ]
    if totals.empty_images:
        lines.append(f'{totals.empty_images:,} images seen without any instance')
    files = {source for kind in KINDS for source in totals.files[kind]}
    lines.append(f'{len(files):,} files, in the {totals.iterations:,} iterations that the log holds (those with any)')
    for kind in KINDS:
        reasons = describe_reasons(totals.over_all_files(kind))
        if reasons:
            lines.append(f'{kind}: {reasons}')
    return lines


def _print_plot(console: Any, title: str, counts: Dict[int, int]) -> None:
    first, last = min(counts), max(counts)
    heights = binned(counts, first, last, max(20, min(console.width - 16, 100)))
    edge = f'{max(heights):,}'
    console.print(f'\n{title} per iteration, {sum(counts.values()):,} in all')
    for place, row in enumerate(bars(heights)):
        console.print(f'{edge if place == 0 else "":>12} │{row}', style='magenta', overflow='ignore', no_wrap=True)
    span = f'{first:,}'
    console.print(f'{"0":>12} └{"─" * len(heights)}')
    console.print(f'{"iteration":>12}  {span}{f"{last:,}":>{max(len(heights) - len(span), 1)}}')
