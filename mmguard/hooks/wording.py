"""What the hook says to a reader: one line per iteration, one table at the end."""

from __future__ import annotations

import io
import time
from typing import Callable, List, Optional, Set

from mmguard.hooks.ledger import KINDS, Ledger, Span
from mmguard.instances import describe_boxes, describe_reasons
from mmguard.tally import Tally

Shorten = Callable[[str], str]


def iteration_line(where: str, span: Span, shorten: Shorten) -> str:
    """``iter 37: 2,503 of 196,608 px skipped (value 11) in 3 of 4 images, first: trainannot/0001TP.png``."""
    parts = [part for part in (_amount(span.pixels, 'px'), _instances(span)) if part]
    for name, count in span.losses.items():
        if count:
            parts.append(f'{_amount(Tally(count.seen, count.skipped, count.remapped), "labels")} by the loss {name}')
    by_loss = [tally for kind in KINDS for tally in span.loss_samples[kind]]
    line = f'{where}: {"; ".join(parts)}{_values(span.offending["pixels"] or by_loss)}'
    offending = [tally for kind in KINDS for tally in span.offending[kind]] or by_loss
    if offending:
        line += f' in {span.offending_samples} of {span.samples} images'
        if span.empty_images:
            line += f', {span.empty_images} left without an instance'
        line += f', first: {shorten(str(offending[0].source))}'
    return line


def _instances(span: Span) -> str:
    """``2 of 9 instances skipped (value 600; 1 box without area)``."""
    amount = _amount(span.instances, 'instances')
    values = _listed({value for tally in span.offending['instances'] for value in tally.values})
    details = '; '.join(([values] if values else []) + describe_boxes(span.instances.reasons))
    return f'{amount} ({details})' if amount and details else amount


def _amount(tally: Tally, unit: str) -> str:
    changes = []
    if tally.skipped:
        changes.append(f'{tally.skipped:,} of {tally.total:,} {unit} skipped')
    if tally.remapped:
        changes.append(f'{tally.remapped:,} of {tally.total:,} {unit} remapped')
    return ', '.join(changes)


def _values(tallies: List[Tally]) -> str:
    listed = _listed({value for tally in tallies for value in tally.values})
    return f' ({listed})' if listed else ''


def _listed(values: Set[int]) -> str:
    shown = ', '.join(map(str, sorted(values)[:6])) + (', ...' if len(values) > 6 else '')
    return f'value{"s" if len(values) > 1 else ""} {shown}' if values else ''


def closing_table(mode: str, ledger: Ledger, top_k: int, out_file: Optional[str]) -> str:
    """The totals, and for each kind a table of the ``top_k`` files with the most skipped or remapped elements."""
    lines = [_table_of_files(mode, kind, ledger, top_k) for kind in KINDS if ledger.files[kind]]
    for total, unit in ((ledger.pixels, 'px'), (ledger.instances, 'instances')):
        if total.total:
            lines.append(
                f'{unit}: {total.skipped:,} of {total.total:,} skipped ({percent(total.skipped, total.total)}), '
                f'{total.remapped:,} remapped'
            )
    lines += [
        f'loss {name}: {count.skipped:,} of {count.seen:,} labels skipped, {count.remapped:,} remapped'
        for name, count in ledger.losses.items()
        if count
    ]
    if ledger.empty_images:
        lines.append(f'{ledger.empty_images:,} images seen without any instance')
    offending = {tally.source for tally in ledger.tallies()}
    lines.append(
        f'{len(offending):,} of {len(ledger.sources):,} files, '
        f'{ledger.offending_iterations:,} of {ledger.iterations:,} iterations'
    )
    for kind in KINDS:
        reasons = describe_reasons(ledger.over_all_files(kind))
        if reasons:
            lines.append(f'{kind}: {reasons}')
    if out_file:
        lines.append(f'every iteration: {out_file}')
    return '\n'.join(lines)


def _table_of_files(mode: str, kind: str, ledger: Ledger, top_k: int) -> str:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f'mmguard: {mode}, {kind}', title_justify='left')
    ranked = sorted(ledger.files[kind].values(), key=lambda t: (-(t.skipped + t.remapped), str(t.source)))
    names = [ledger.shorten(str(tally.source)) for tally in ranked[:top_k]]
    # A file name is there to be copied: rather break the values than the name.
    table.add_column('file', overflow='fold', min_width=min(max(map(len, names), default=0), 80))
    for title in ('skipped', 'remapped'):
        table.add_column(title, justify='right')
    table.add_column('values', overflow='fold')
    for name, tally in zip(names, ranked):
        values = [f'{v}: {n:,}' for v, n in sorted(tally.values.items(), key=lambda item: -item[1])[:6]]
        row = ', '.join(values + describe_boxes(tally.reasons))
        table.add_row(name, f'{tally.skipped:,}', f'{tally.remapped:,}', row)
    if len(ranked) > top_k:
        table.add_row(f'... and {len(ranked) - top_k:,} more files', '', '', '')
    # A file name may hold brackets and colons; they are no markup.
    # The log file keeps this table, so its width is not that of some terminal.
    console = Console(file=io.StringIO(), width=110, color_system=None, markup=False, emoji=False)
    console.print(table)
    return console.file.getvalue().rstrip()  # type: ignore[attr-defined]


def percent(part: int, whole: int) -> str:
    return f'{100 * part / whole:.3g} %' if whole else '0 %'


class Pace:
    """Lets the first lines through, then one per period; tells how many it held back.

    Args:
        first (int): Lines that always pass.
        seconds (float): Least time between later lines, seconds.
    """

    def __init__(self, first: int = 20, seconds: float = 10.0) -> None:
        self._left = first
        self._seconds = seconds
        self._last = float('-inf')
        self.held_back = 0

    def lets_pass(self) -> bool:
        now = time.monotonic()
        if self._left > 0 or now - self._last >= self._seconds:
            self._left -= 1
            self._last = now
            return True
        self.held_back += 1
        return False

    def take_held_back(self) -> int:
        held_back, self.held_back = self.held_back, 0
        return held_back
