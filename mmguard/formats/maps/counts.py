"""Counts of label maps after `mmguard fix`, without writing files."""

from __future__ import annotations

import os
from copy import copy
from typing import Dict, Optional

from mmguard.formats.faults import Examples
from mmguard.formats.maps.read import FEW_FRACTIONS
from mmguard.formats.maps.summary import MAX_COLOURS, MapSummary
from mmguard.formats.options import Colour, FixOptions
from mmguard.labels.space import apply_label_map

_COLOURED = ('rgb', 'rgba')


def convert_counts(summary: MapSummary, options: FixOptions) -> Optional[MapSummary]:
    """Return the counts that a scan of the corrected copies would give; ``None`` if they are not known exactly.

    Values that no option maps are kept, so that they are visible; `mmguard fix` ignores them.
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
    """Return class index -> pixels."""
    if summary.lossy and options.threshold is None:
        return None
    if summary.fractions or options.scale is not None:
        return _scale_counts(summary, options)
    coloured = sum(summary.forms.get(form, 0) for form in _COLOURED)
    channels = coloured + summary.forms.get('gray_alpha', 0)
    counts: Dict[int, int] = {}
    if options.colours:
        # In a mixed folder, gray and colour values can be separated only if no colour is gray.
        apart = not summary.gray_in_colour or coloured == sum(summary.forms.values())
        if summary.uncounted or len(summary.colours) >= MAX_COLOURS or not apart:
            return None
        for name, count in summary.colours.items():
            index = options.colours.get(_rgb(name))
            if index is None:
                return None
            index = apply_label_map(options.label_map, index, options.ignore_index)
            counts[index] = counts.get(index, 0) + count
        if coloured == sum(summary.forms.values()):
            return counts
    elif channels != summary.gray_in_colour:
        return None
    for value, count in summary.raw.items():
        index = options.label_of(value)
        counts[index] = counts.get(index, 0) + count
    return counts


def _scale_counts(summary: MapSummary, options: FixOptions) -> Optional[Dict[int, int]]:
    """Return the counts of files that are scaled or whose values are fractions."""
    if options.scale is None or len(summary.fractions) >= FEW_FRACTIONS or set(summary.forms) != {'float'}:
        return None
    values: Dict[float, int] = {float(value): count for value, count in summary.raw.items()}
    for text, count in summary.fractions.items():
        values[int(float(text))] -= count  # the fraction was counted at its truncated value
        values[float(text)] = count
    counts: Dict[int, int] = {}
    for value, count in values.items():
        scaled = value * options.scale
        # Fractions are recorded with six digits.
        if abs(scaled - round(scaled)) > 1e-5 * options.scale:
            return None
        if count:
            index = options.label_of(round(scaled))
            counts[index] = counts.get(index, 0) + count
    return counts


def _rgb(name: str) -> Colour:
    red, green, blue = map(int, name.split(','))
    return red, green, blue


def name_of_copy(path: str) -> str:
    """Return the name of a label map as `mmguard fix` writes it."""
    stem, ending = os.path.splitext(path)
    return path if ending.lower() == '.png' else f'{stem}.png'
