"""Counts as bars side by side: over the iterations of a training, over the values of labels."""

from __future__ import annotations

import math
from typing import Dict, List, NamedTuple, Tuple

#: Bars of a plot; iterations beyond it share one.
COLUMNS = 240
#: What is there is always seen.
_LOWEST = 1 / 75


class Bar(NamedTuple):
    """One bar: its column, its height in (0, 1], and what a pointer shows."""

    kind: str
    place: int
    height: float
    title: str = ''


class Plot(NamedTuple):
    """Bars, and what stands at the ends of the axes."""

    what: str
    bars: List[Bar]
    columns: int
    along: Tuple[str, ...]
    up: Tuple[str, ...] = ()
    caption: str = ''


def plots_of(history: Dict[str, Dict[int, int]]) -> List[Plot]:
    """One plot per thing that is counted, all over the same iterations.

    Args:
        history (dict[str, dict[int, int]]): What -> iteration -> count.
    """
    places = [place for counts in history.values() for place in counts]
    return [
        _over_iterations(what, counts, min(places), max(places))
        for what, counts in history.items()
        if any(counts.values())
    ]


def binned(counts: Dict[int, int], first: int, last: int, columns: int) -> List[int]:
    """The largest count in each of up to ``columns`` stretches of equal length: a single peak is not averaged away."""
    span = last - first + 1
    columns = min(columns, span)
    heights = [0] * columns
    for iteration, count in counts.items():
        place = (iteration - first) * columns // span
        heights[place] = max(heights[place], count)
    return heights


def _over_iterations(what: str, counts: Dict[int, int], first: int, last: int) -> Plot:
    heights = binned(counts, first, last, COLUMNS)
    most = max(heights)
    bars = [
        Bar('invalid', place, max(_LOWEST, count / most), f'up to {count:,}')
        for place, count in enumerate(heights)
        if count
    ]
    each = ' (the most of each stretch)' if last - first + 1 > len(heights) else ''
    along = (f'iteration {first:,}', f'{last:,}' if last > first else '')
    caption = f'{what} per iteration{each}; {sum(counts.values()):,} in all'
    return Plot(what, bars, len(heights), along, (f'{most:,}', '0'), caption)


def plot_of_values(counts: Dict[int, int], kinds: Dict[int, str]) -> Plot:
    """All values side by side: gray levels and interpolation show as a comb or a carpet.

    Args:
        counts (dict[int, int]): Value -> count.
        kinds (dict[int, str]): Value -> ``'valid'``, ``'ignored'`` or ``'invalid'``.
    """
    low, high = min(min(counts), 0), max(counts)
    span = high - low + 1
    columns = min(span, 256)
    heights: Dict[Tuple[int, str], int] = {}
    for value, count in counts.items():
        column = ((value - low) * columns // span, kinds[value])
        heights[column] = heights.get(column, 0) + count
    most = max(heights.values())
    bars = [Bar(kind, place, logarithmic(count, most)) for (place, kind), count in sorted(heights.items())]
    return Plot('all values', bars, columns, (str(low), str(high)))


def logarithmic(count: int, most: int) -> float:
    """In (0, 1]: a class of 1 % and a slip of 3 pixels are both to be seen."""
    return (1 + math.log10(max(count, 1))) / (1 + math.log10(max(most, 1)))
