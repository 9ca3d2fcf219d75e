"""Warnings about sanitized targets for callers without the tally: a silent guard hides the fault."""

from __future__ import annotations

import warnings
from typing import Dict, List

from mmguard.labels.instances import describe_reasons
from mmguard.labels.tally import Tally
from mmguard.text import quantity, visible_name

#: Advice -> batches.
_batches: Dict[str, int] = {}
_OF_LABELS = (
    'Training continues, but the annotations are wrong: `mmguard scan` on their file names the cause; '
    'return_tally=True returns the counts of every image (and ends this warning)'
)
_OF_EMPTY_MASKS = (
    'A crop or a resize leaves such masks if it keeps the box of an object that it cut away: drop them after it, keep '
    '= masks.flatten(1).any(1). The files are at fault only if a mask is empty before any transform'
)
_OF_SIZES = 'A resize or crop changed only one of them, or height and width are swapped: the masks teach other pixels'


def warn_of(tallies: List[Tally], stacklevel: int) -> None:
    """Warn of a batch with invalid instances: the 1st, 2nd, 4th, 8th, ... of this process."""
    if not _is_due(_OF_LABELS):
        return
    offending = [tally for tally in tallies if tally]
    total = sum(tallies, Tally())
    amounts = [f'{n:,} {what}' for n, what in ((total.skipped, 'left out'), (total.remapped, 'remapped')) if n]
    reasons = describe_reasons(total)
    first = f', first: {visible_name(str(offending[0].source))}' if offending[0].source else ''
    what = (
        f'of {total.total:,} instances {" and ".join(amounts)}{f" ({reasons})" if reasons else ""} in '
        f'{len(offending)} of {len(tallies)} images{first}'
    )
    _warn(what, _OF_LABELS, stacklevel + 1)


def warn_of_empty_masks(empty: int, total: int, source: str, stacklevel: int) -> None:
    """Warn of masks without a pixel, as often as :func:`warn_of` does."""
    if _is_due(_OF_EMPTY_MASKS):
        what = f'{empty:,} of {total:,} masks have no pixels, first: {visible_name(source)}'
        _warn(what, _OF_EMPTY_MASKS, stacklevel + 1)


def warn_of_sizes(differing: str, stacklevel: int) -> None:
    """Warn of masks whose size differs from their image, as often as :func:`warn_of` does."""
    if _is_due(_OF_SIZES):
        _warn(differing, _OF_SIZES, stacklevel + 1)


def _is_due(advice: str) -> bool:
    """Count a batch; return True for the 1st, 2nd, 4th, 8th, ..."""
    _batches[advice] = number = _batches.get(advice, 0) + 1
    return not number & (number - 1)


def _warn(what: str, advice: str, stacklevel: int) -> None:
    number = quantity(_batches[advice], 'such batch', 'such batches')
    warnings.warn(f'mmguard: {what}. {number} so far. {advice}', stacklevel=stacklevel + 1)
