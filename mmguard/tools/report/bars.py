"""Bars of characters, for terminals."""

from __future__ import annotations

from typing import List, Sequence

_EIGHTHS = ' ▁▂▃▄▅▆▇█'


def bars(counts: Sequence[int], rows: int = 4) -> List[str]:
    """Counts as columns, one character wide.

    Args:
        counts (sequence of int): None below 0.
        rows (int): Lines of text.

    Returns:
        list[str]: the lines, the top one first; a count above 0 is always seen.

    Example:
        >>> bars([0, 1, 4, 8], rows=1)
        [' ▁▄█']
    """
    most = max(counts, default=0)
    steps = [max(1, round(8 * rows * count / most)) if count else 0 for count in counts]
    return [''.join(_EIGHTHS[min(max(step - 8 * row, 0), 8)] for step in steps) for row in reversed(range(rows))]
