"""What a training skipped, over its iterations."""

from __future__ import annotations

from typing import Dict, List

from mmguard.report.html import Markup, element

#: Columns of a plot; iterations beyond it share one.
COLUMNS = 240
_WIDTH, _HEIGHT = 1024.0, 150.0


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
    step = _WIDTH / len(heights)
    parts = [
        element('line', x1=0, x2=_WIDTH, y1=y, y2=y, class_=name)
        for y, name in ((0, 'grid'), (_HEIGHT / 2, 'grid'), (_HEIGHT, 'axis'))
    ]
    for place, count in enumerate(heights):
        if count:
            tall = max(2.0, _HEIGHT * count / most)
            # A title: the number, where there is a pointer to ask.
            parts.append(
                element(
                    'rect',
                    element('title', f'up to {count:,}'),
                    x=f'{place * step:.2f}',
                    y=f'{_HEIGHT - tall:.2f}',
                    width=f'{max(min(step * 0.9, 40), 1):.2f}',
                    height=f'{tall:.2f}',
                    fill='var(--invalid)',
                )
            )
    each = ' (the most of each stretch)' if last - first + 1 > len(heights) else ''
    view = f'0 0 {_WIDTH:g} {_HEIGHT:g}'
    end = f'{last:,}' if last > first else ''
    return element(
        'figure',
        element('figcaption', f'{what} per iteration{each}; {sum(counts.values()):,} in all'),
        element(
            'div',
            element('div', element('span', f'{most:,}'), element('span', '0'), class_='up'),
            element('svg', *parts, viewBox=view, preserveAspectRatio='none', role='img', aria_label=what),
            element('div', element('span', f'iteration {first:,}'), element('span', end), class_='along'),
            class_='plot',
        ),
    )
