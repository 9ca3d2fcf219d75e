"""Label maps as `mmguard fix` would leave them: what was counted, as other values; no file is read again."""

from __future__ import annotations

from copy import copy
from typing import Dict, Optional

from mmguard.labels.space import mapped_by
from mmguard.tools.fix.options import FixOptions
from mmguard.tools.scan.faults import Examples
from mmguard.tools.scan.read import FEW_FRACTIONS
from mmguard.tools.scan.summary import MAX_COLOURS, MapSummary, as_colour

_COLOURED = ('rgb', 'rgba')


def converted(summary: MapSummary, options: FixOptions) -> Optional[MapSummary]:
    """Return what a scan of the written copies would count; ``None`` where that is not known exactly.

    Values that no option maps stay as they are, to be seen; `mmguard fix` ignores them.
    """
    counts = _as_indices(summary, options)
    if counts is None or any(not 0 <= value <= 255 for value in counts):
        return None
    other = copy(summary)
    other.raw, other.loaded, other.files_with = counts, dict(counts), {}
    for value, files in summary.files_with.items():
        new = options.label_of(value)
        other.files_with[new] = max(files, other.files_with.get(new, 0))
    other.forms = {'gray8': sum(summary.forms.values())}
    other.lossy = other.gray_in_colour = other.black_palettes = other.uncounted = other.invalid_looked_at = (
        other.invalid_between
    ) = 0
    other.changes, other.fractions, other.colours, other.form_examples, other.examples = {}, {}, {}, {}, {}
    other.all_void = Examples()
    return other


def _as_indices(summary: MapSummary, options: FixOptions) -> Optional[Dict[int, int]]:
    """Class index -> pixels."""
    if summary.lossy and options.threshold is None:
        return None
    if summary.fractions or options.scale is not None:
        return _scaled(summary, options)
    coloured = sum(summary.forms.get(form, 0) for form in _COLOURED)
    channels = coloured + summary.forms.get('gray_alpha', 0)
    counts: Dict[int, int] = {}
    if options.colours:
        # Of a mixed folder the values of gray files differ from those of colours only where no colour is gray.
        apart = not summary.gray_in_colour or coloured == sum(summary.forms.values())
        if summary.uncounted or len(summary.colours) >= MAX_COLOURS or not apart:
            return None
        for name, count in summary.colours.items():
            index = options.colours.get(as_colour(name))
            if index is None:
                return None
            index = mapped_by(options.label_map, index, options.ignore_index)
            counts[index] = counts.get(index, 0) + count
        if coloured == sum(summary.forms.values()):
            return counts
    elif channels != summary.gray_in_colour:
        return None
    for value, count in summary.raw.items():
        index = options.label_of(value)
        counts[index] = counts.get(index, 0) + count
    return counts


def _scaled(summary: MapSummary, options: FixOptions) -> Optional[Dict[int, int]]:
    """Of maps that hold fractions, multiplied; of each file the lowest few are known."""
    if options.scale is None or len(summary.fractions) >= FEW_FRACTIONS or set(summary.forms) != {'float'}:
        return None
    values: Dict[float, int] = {float(value): count for value, count in summary.raw.items()}
    for text, count in summary.fractions.items():
        values[int(float(text))] -= count  # where it was counted, cut off
        values[float(text)] = count
    counts: Dict[int, int] = {}
    for value, count in values.items():
        scaled = value * options.scale
        # A fraction is known by its first six digits.
        if abs(scaled - round(scaled)) > 1e-5 * options.scale:
            return None
        if count:
            index = options.label_of(round(scaled))
            counts[index] = counts.get(index, 0) + count
    return counts
