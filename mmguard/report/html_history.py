"""What a training skipped, over its iterations."""

from __future__ import annotations

from typing import Dict, List

from mmguard.report.html import Markup, element

#: Columns of a plot; iterations beyond it share one.
COLUMNS = 240
_WIDTH, _HEIGHT, _LEFT = 1024.0, 150.0, 64.0


def plot(history: Dict[str, Dict[int, int]]) -> Markup:
    """One plot per thing that is counted.

    Args:
        history (dict[str, dict[int, int]]): What -> iteration -> count.
    """
    counted = {what: counts for what, counts in history.items() if any(counts.values())}
    if not counted:
        return Markup('')
    first = min(min(counts) for counts in history.values() if counts)
    last = max(max(counts) for counts in history.values() if counts)
    plots = [_one(what, counts, first, last) for what, counts in counted.items()]
    return element('div', element('h3', 'Over the iterations'), element('div', *plots, class_='card'))


def binned(counts: Dict[int, int], first: int, last: int, columns: int) -> List[int]:
    """The largest count in each of up to ``columns`` stretches of equal length: a single peak is not averaged away."""
    span = last - first + 1
    columns = min(columns, span)
    heights = [0] * columns
    for iteration, count in counts.items():
        place = (iteration - first) * columns // span
        heights[place] = max(heights[place], count)
    return heights


def _one(what: str, counts: Dict[int, int], first: int, last: int) -> Markup:
    heights = binned(counts, first, last, COLUMNS)
    most = max(heights)
    step = (_WIDTH - _LEFT) / len(heights)
    parts = [
        element('line', x1=_LEFT, x2=_WIDTH, y1=f'{y:.1f}', y2=f'{y:.1f}', class_='grid')
        for y in (18.5, 18.5 + _HEIGHT / 2)
    ]
    base = 18.5 + _HEIGHT
    for place, count in enumerate(heights):
        if count:
            tall = max(2.0, _HEIGHT * count / most)
            # A rect with a title: the number, where there is a pointer to ask.
            parts.append(
                element(
                    'rect',
                    element('title', f'up to {count:,}'),
                    x=f'{_LEFT + place * step:.2f}',
                    y=f'{base - tall:.2f}',
                    width=f'{max(min(step * 0.9, 40), 1):.2f}',
                    height=f'{tall:.2f}',
                    fill='var(--invalid)',
                )
            )
    parts += [
        element('line', x1=_LEFT, x2=_WIDTH, y1=base, y2=base, class_='axis'),
        element('text', f'{most:,}', x=_LEFT - 8, y='23', text_anchor='end'),
        element('text', '0', x=_LEFT - 8, y=base, text_anchor='end'),
        element('text', f'iteration {first:,}', x=_LEFT, y=base + 18),
        element('text', f'{last:,}', x=_WIDTH, y=base + 18, text_anchor='end'),
    ]
    each = ' (the most of each stretch)' if last - first + 1 > len(heights) else ''
    return element(
        'figure',
        element('figcaption', f'{what} per iteration{each}; {sum(counts.values()):,} in all'),
        element('svg', *parts, viewBox=f'0 0 {_WIDTH:g} {base + 24:g}', class_='plot', role='img', aria_label=what),
    )
