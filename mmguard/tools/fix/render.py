"""What ``mmguard fix`` says: how many files it wrote, and what it changed in the first of them."""

from __future__ import annotations

from pathlib import Path

from mmguard.text.visible import visible_name
from mmguard.text.words import counted
from mmguard.tools.fix.copies import MANIFEST, Copies

_SHOWN = 10


def show(out: Path, copies: Copies) -> None:
    """Prints what is in the folder ``out`` now."""
    changed = [record for record in copies.done if record['changes']]
    files, unchanged = counted(len(copies.done), 'file'), len(copies.done) - len(changed)
    print(f'{files} in {visible_name(str(out))}: {len(changed):,} corrected, {unchanged:,} copied unchanged')
    if copies.linked:
        print(f'{counted(copies.linked, "image")} linked, not copied: the same bytes on disk')
    for record in changed[:_SHOWN]:
        print(f'  {visible_name(record["file"])}: {visible_name("; ".join(record["changes"]))}')
    if len(changed) > _SHOWN:
        print(f'  and {len(changed) - _SHOWN:,} more, see {visible_name(str(out / MANIFEST))}')
    if copies.left_out:
        print(f'{len(copies.left_out):,} left out:')
        for entry in copies.left_out[:_SHOWN]:
            print(f'  {visible_name(entry["file"])}: {visible_name(entry["reason"])}')
    if not changed and not copies.left_out:
        print('nothing to change')
