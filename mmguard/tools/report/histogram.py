"""The histogram of values: classes, what is ignored, what is invalid."""

from __future__ import annotations

import math
from typing import List, NamedTuple, Optional, Tuple

from mmguard.findings import LabelFacts

#: Values with a row of their own: the invalid ones and the most frequent.
ROWS = 48
_SAID = {'valid': 'class', 'ignored': 'ignored', 'invalid': 'invalid'}


class Row(NamedTuple):
    """A value; its bar has a ``height`` in (0, 1]."""

    kind: str
    value: int
    said: str
    name: str
    times: int
    share: str
    height: float


class Histogram(NamedTuple):
    """Rows; ``left`` is the number of values without one."""

    title: str
    legend: List[Tuple[str, str]]
    rows: List[Row]
    left: int

    @property
    def named(self) -> bool:
        return any(row.name for row in self.rows)


def histogram_of(facts: LabelFacts) -> Optional[Histogram]:
    """Every value with its count; where only the invalid ones are known (in training), those."""
    counts = facts.histogram or facts.values
    if not counts:
        return None
    if facts.histogram and len(counts) <= ROWS and facts.num_classes <= ROWS:
        # A class that never occurs is worth a row: it cannot be learned.
        counts = {**dict.fromkeys(range(facts.num_classes), 0), **counts}
    kinds = {value: kind_of(value, facts) for value in counts}
    shown = sorted(counts, key=lambda value: (kinds[value] != 'invalid', -counts[value]))[:ROWS]
    whole, most = sum(counts.values()), max(counts.values())
    rows = []
    for value in sorted(shown):
        count, kind = counts[value], kinds[value]
        said = _SAID[kind] if count else 'never seen'
        name = facts.name_of(value)
        rows.append(Row(kind, value, said, name, count, share(count, whole), _logarithmic(count, most)))
    names = {
        'valid': f'valid (0 to {facts.num_classes - 1})',
        'ignored': f'ignored ({facts.ignore_index})',
        'invalid': 'invalid',
    }
    legend = [(kind, name) for kind, name in names.items() if kind in kinds.values()]
    title = f'{facts.kind.capitalize()} per {"" if facts.histogram else "invalid "}value'
    return Histogram(title, legend, rows, len(counts) - len(rows))


def _logarithmic(count: int, most: int) -> float:
    """In (0, 1]: a class of 1 % and a slip of 3 pixels are both to be seen."""
    return (1 + math.log10(max(count, 1))) / (1 + math.log10(max(most, 1)))


def kind_of(value: int, facts: LabelFacts) -> str:
    """``'valid'``, ``'ignored'`` or ``'invalid'``."""
    if value == facts.ignore_index:
        return 'ignored'
    return 'valid' if 0 <= value < facts.num_classes else 'invalid'


def share(part: int, whole: int) -> str:
    """``'12.3 %'``; what is there is never rounded to nothing."""
    percent = 100 * part / whole if whole else 0.0
    if percent == 0 or percent >= 0.01:
        return f'{percent:.2f} %' if percent < 99.995 or percent == 100 else '> 99.99 %'
    return '< 0.01 %'
