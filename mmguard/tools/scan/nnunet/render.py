"""Cases on the screen: every one that has something wrong, with its file, voxels and slices."""

from __future__ import annotations

from mmguard.findings.volumes import VolumeFacts
from mmguard.text.console import Console, Table, Text
from mmguard.tools.scan.names import printable

#: Rows on the screen; the JSON holds all.
_MOST_ROWS = 60


def show_cases(console: Console, volumes: VolumeFacts) -> None:
    """Prints what is wrong with each case.

    Args:
        console (Console): Where to.
        volumes (VolumeFacts): What was seen.
    """
    rows = sorted(
        (fault.case, fault.file, kind, number, fault)
        for kind in volumes.faults
        for number, fault in enumerate(volumes.of(kind))
    )
    if not rows:
        return
    table = Table(title='cases', title_justify='left', show_edge=False, pad_edge=False)
    for heading in ('case', 'file'):
        table.add_column(heading, overflow='fold')
    table.add_column('voxels', justify='right')
    table.add_column('what', overflow='fold')
    for case, file, kind, _number, fault in rows[:_MOST_ROWS]:
        number = f'{fault.voxels:,}' if fault.voxels else ''
        cells = (case, file, number, f'{kind}: {fault.detail}')
        table.add_row(*(Text(printable(cell)) for cell in cells))
    console.print(table)
    if len(rows) > _MOST_ROWS:
        console.print(Text(f'... and {len(rows) - _MOST_ROWS:,} more: --json FILE lists all', style='dim'))
