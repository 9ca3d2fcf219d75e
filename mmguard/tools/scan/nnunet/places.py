"""Where in a volume voxels lie, in words."""

from __future__ import annotations

from typing import List, Mapping, Tuple

_MOST_RANGES = 6


def describe_slices(counts: Mapping[int, int]) -> str:
    """Slices that hold something, and the one that holds most.

    Args:
        counts (dict[int, int]): Slice, from 0 -> voxels.

    Example:
        >>> describe_slices({3: 1, 4: 9, 5: 2, 9: 1})
        'slices 3-5, 9 (most in 4: 9)'
        >>> describe_slices({7: 12}), describe_slices({7: 1, 8: 1})
        ('slice 7', 'slices 7-8')
    """
    if not counts:
        return ''
    ranges = _ranges(sorted(counts))
    texts = [f'{first}-{last}' if last > first else str(first) for first, last in ranges[:_MOST_RANGES]]
    rest = f' and {len(ranges) - _MOST_RANGES} more ranges' if len(ranges) > _MOST_RANGES else ''
    if len(counts) == 1:
        return f'slice {texts[0]}'
    fullest = _fullest_slice(counts)
    if counts[fullest] == min(counts.values()):
        return f'slices {", ".join(texts)}{rest}'
    return f'slices {", ".join(texts)}{rest} (most in {fullest}: {counts[fullest]:,})'


def _fullest_slice(counts: Mapping[int, int]) -> int:
    """The slice that holds most; the first of several."""
    return min(counts, key=lambda place: (-counts[place], place))


def _ranges(places: List[int]) -> List[Tuple[int, int]]:
    found: List[Tuple[int, int]] = []
    for place in places:
        if found and place == found[-1][1] + 1:
            found[-1] = (found[-1][0], place)
        else:
            found.append((place, place))
    return found
