"""A story as a table."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from mmguard.report.html import visible
from mmguard.trace.changes import Change
from mmguard.trace.story import Leg, Story
from mmguard.words import counted

_SIGNS = {'appears': '+', 'vanishes': '-', 'grows': '+', 'becomes': '→', 'is ignored': '-', 'is trained': '+'}
_PLURAL = {'appears': 'appear', 'vanishes': 'vanish', 'grows': 'grow', 'becomes': 'become'}
#: Sentences shown per step.
MOST = 12


class Space:
    """Which values are valid, for marking the others.

    Args:
        num_classes (int, optional): Of label maps.
        ignore_index (int): Of label maps.
        instance_classes (int, optional): Of instances.
    """

    def __init__(
        self, num_classes: Optional[int] = None, ignore_index: int = 255, instance_classes: Optional[int] = None
    ) -> None:
        self.num_classes = num_classes
        self.ignore_index = ignore_index
        self.instance_classes = instance_classes

    def is_invalid(self, value: int, kind: str) -> bool:
        limit = self.num_classes if kind == 'pixels' else self.instance_classes
        return limit is not None and not 0 <= value < limit and (kind == 'instances' or value != self.ignore_index)


def print_story(console: Any, story: Story, space: Space, value: Optional[int]) -> None:
    """Prints the way of a sample.

    Args:
        console (rich.console.Console): With markup off.
        story (Story): It.
        space (Space): What is valid.
        value (int, optional): The value that is asked for: its count stands at every step.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f'sample {story.index}: {visible(story.image)}', title_justify='left')
    table.add_column('after', overflow='fold')
    table.add_column('size', justify='right', no_wrap=True)
    if value is not None:
        table.add_column(str(value), justify='right', style='bold')
    table.add_column('what changed', overflow='fold')
    for leg in story.legs:
        row: List[Any] = [Text(leg.name), _size(leg)]
        if value is not None:
            row.append(_count(leg, value))
        table.add_row(*row, _told(leg, space))
    console.print(table)
    for mixed in story.mixed:
        console.print(f'mixed in: {visible(mixed)}')
    if story.error:
        console.print(f'the pipeline ended here: {visible(story.error)}', style='bold red')


def _size(leg: Leg) -> str:
    return '' if leg.after.size is None else f'{leg.after.size[0]} x {leg.after.size[1]}'


def _count(leg: Leg, value: int) -> str:
    after = leg.after
    if after.label is not None:
        return f'{after.values.get(value, 0):,}'
    if after.instances is not None:
        return f'{after.labels.get(value, 0):,}'
    return ''


def _told(leg: Leg, space: Space) -> Any:
    from rich.text import Text

    lines = Text()
    if leg.after.note:
        lines.append(f'{visible(leg.after.note)}\n', style='yellow')
    if not leg.changes and leg.name in ('disk', 'annotation file'):
        lines.append(_summary(leg, space))
    # What is wrong comes before what is usual.
    sentences = sorted(grouped(leg.changes, space), key=lambda told: not told.invalid)
    for told in sentences[:MOST]:
        style = 'bold red' if told.invalid else 'dim' if told.sign == '-' else ''
        lines.append(f'{told}\n', style=style)
    if len(sentences) > MOST:
        lines.append(f'... and {len(sentences) - MOST} more\n')
    lines.rstrip()
    return lines


class Told(NamedTuple):
    """Changes of several values that have one origin, as one sentence."""

    sign: str
    words: str
    invalid: bool

    def __str__(self) -> str:
        return f'{self.sign} {self.words}'


def grouped(changes: Sequence[Change], space: Space) -> List[Told]:
    """``+ 225, 241 appear (17 px), invalid: interpolation by Resize ...``: one sentence per origin."""
    groups: Dict[Tuple[Any, ...], List[Change]] = {}
    for change in changes:
        key = (change.what, change.to, change.kind, change.origin, _makes_invalid(change, space))
        groups.setdefault(key, []).append(change)
    told = []
    for (what, to, kind, origin, invalid), group in groups.items():
        count = sum(change.count for change in group)
        verb = _PLURAL.get(what, what) if len(group) > 1 else what
        words = f'{ranges(sorted(change.value for change in group))} {verb}'
        words += '' if to is None else f' {to}'
        words += f' ({amount(count, kind)}{", invalid" if invalid else ""}): {visible(origin)}'
        told.append(Told(_SIGNS[what], words, invalid))
    return told


def _makes_invalid(change: Change, space: Space) -> bool:
    return change.makes is not None and space.is_invalid(change.makes, change.kind)


def _summary(leg: Leg, space: Space) -> str:
    """What is in the files: ``values 0..18, 255; invalid: 24 (28 px)``."""
    parts: List[str] = []
    for kind, counts in (('pixels', leg.after.values), ('instances', leg.after.labels)):
        if counts:
            invalid = [f'{v} ({amount(n, kind)})' for v, n in sorted(counts.items()) if space.is_invalid(v, kind)]
            marked = f'; invalid: {", ".join(invalid[:MOST])}' if invalid else ''
            parts.append(f'{"values" if kind == "pixels" else "labels"} {ranges(sorted(counts))}{marked}')
    aside = sum(instance.ignored for instance in leg.after.instances or ())
    if aside:
        parts.append(f'{amount(aside, "instances")} ignored: crowds, difficult ones')
    return '\n'.join(parts)


def amount(count: int, kind: str) -> str:
    """``1,204 px``, ``1 instance``."""
    return counted(count, 'px' if kind == 'pixels' else 'instance')


def ranges(values: List[int]) -> str:
    """``0..18, 255``."""
    parts: List[List[int]] = []
    for value in values:
        if parts and value == parts[-1][-1] + 1:
            parts[-1].append(value)
        else:
            parts.append([value])
    told = [str(p[0]) if len(p) == 1 else f'{p[0]}..{p[-1]}' for p in parts]
    return ', '.join(told[:MOST]) + (f' and {len(told) - MOST} more' if len(told) > MOST else '')
