"""The histogram of values: classes, what is ignored, what is invalid."""

from __future__ import annotations

import math
from typing import Dict, List, Tuple

from mmguard.diagnosis import LabelFacts
from mmguard.report.html import Markup, element
from mmguard.words import counted

#: Values with a row of their own; more are drawn as columns, with the most frequent in rows.
ROWS = 48
_KINDS = {'valid': 'class', 'ignored': 'ignored', 'invalid': 'invalid'}


def histogram(facts: LabelFacts) -> Markup:
    """Every value with its count; where only the invalid ones are known (in training), those."""
    counts = facts.histogram or facts.values
    if not counts:
        return Markup('')
    what = 'Pixels' if facts.kind == 'pixels' else 'Instances'
    title = f'{what} per value' if facts.histogram else f'{what} per invalid value'
    if facts.histogram and len(counts) <= ROWS and facts.num_classes <= ROWS:
        # A class that never occurs is worth a row: it cannot be learned.
        counts = {**dict.fromkeys(range(facts.num_classes), 0), **counts}
    shown = sorted(counts)
    many = len(shown) > ROWS
    if many:
        frequent = sorted(counts, key=lambda v: (kind_of(v, facts) != 'invalid', -counts[v]))
        shown = sorted(frequent[:ROWS])
    named = any(map(facts.name_of, shown))
    rows = _rows(shown, counts, facts, named)
    table = element(
        'div',
        element('table', element('thead', _heads(named)), element('tbody', *rows)),
        class_='scroll',
    )
    if many:
        left = len(counts) - len(shown)
        table = element(
            'details', element('summary', f'{counted(len(shown), "value")} in numbers ({left:,} more not shown)'), table
        )
    return element(
        'div',
        element('h3', title),
        element('div', _legend(facts, counts), _columns(counts, facts) if many else None, table, class_='card'),
    )


def kind_of(value: int, facts: LabelFacts) -> str:
    """``'valid'``, ``'ignored'`` or ``'invalid'``."""
    if value == facts.ignore_index:
        return 'ignored'
    return 'valid' if 0 <= value < facts.num_classes else 'invalid'


def _heads(named: bool) -> Markup:
    names = element('th', 'name') if named else None
    return element(
        'tr',
        element('th', 'value', class_='number'),
        element('th', ''),
        names,
        element('th', 'count', class_='number'),
        element('th', 'share', class_='number'),
        element('th', 'logarithmic', class_='bar'),
    )


def _rows(values: List[int], counts: Dict[int, int], facts: LabelFacts, named: bool) -> List[Markup]:
    whole, most = sum(counts.values()), max(counts.values())
    rows = []
    for value in values:
        count, kind = counts[value], kind_of(value, facts)
        rows.append(
            element(
                'tr',
                element('td', value, class_='number value'),
                element('td', _KINDS[kind] if count else 'never seen', class_='small soft kind'),
                element('td', facts.name_of(value)) if named else None,
                element('td', f'{count:,}', class_='number'),
                element('td', share(count, whole), class_='number soft'),
                element('td', _bar(_height(count, most)) if count else None, class_='bar'),
                class_=kind,
            )
        )
    return rows


def _bar(height: float) -> Markup:
    return element('i', style=f'width:{100 * height:.1f}%')


def _columns(counts: Dict[int, int], facts: LabelFacts) -> Markup:
    """All values side by side: gray levels and interpolation show as a comb or a carpet."""
    low, high = min(min(counts), 0), max(counts)
    span = high - low + 1
    bins = min(span, 256)
    heights: Dict[Tuple[int, str], int] = {}
    for value, count in counts.items():
        column = ((value - low) * bins // span, kind_of(value, facts))
        heights[column] = heights.get(column, 0) + count
    most = max(heights.values())
    width, height = 1024.0 / bins, 170.0
    bars = []
    for (place, kind), count in sorted(heights.items()):
        tall = max(2.0, height * _height(count, most))
        bars.append(
            element(
                'rect',
                x=f'{place * width:.2f}',
                y=f'{height - tall:.2f}',
                width=f'{max(width - 0.6, 0.6):.2f}',
                height=f'{tall:.2f}',
                fill=f'var(--{kind})',
            )
        )
    return element(
        'div',
        element('div', class_='up'),
        element('svg', *bars, viewBox='0 0 1024 170', preserveAspectRatio='none', role='img', aria_label='all values'),
        element('div', element('span', low), element('span', high), class_='along'),
        class_='plot',
    )


def _legend(facts: LabelFacts, counts: Dict[int, int]) -> Markup:
    names = {
        'valid': f'valid (0 to {facts.num_classes - 1})',
        'ignored': f'ignored ({facts.ignore_index})',
        'invalid': 'invalid',
    }
    present = {kind_of(value, facts) for value in counts}
    keys = [
        element('span', element('i', class_=f'key {kind}'), name) for kind, name in names.items() if kind in present
    ]
    return element('div', *keys, class_='legend')


def _height(count: int, most: int) -> float:
    """In (0, 1], logarithmic: a class of 1 % and a slip of 3 pixels are both to be seen."""
    return (1 + math.log10(max(count, 1))) / (1 + math.log10(max(most, 1)))


def share(part: int, whole: int) -> str:
    """``'12.3 %'``; what is there is never rounded to nothing."""
    percent = 100 * part / whole if whole else 0.0
    if percent == 0 or percent >= 0.01:
        return f'{percent:.2f} %' if percent < 99.995 or percent == 100 else '> 99.99 %'
    return '< 0.01 %'
