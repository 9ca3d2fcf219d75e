"""Warnings about sanitized targets for callers without the tally: a silent guard hides the fault."""

from __future__ import annotations

import warnings
from typing import Dict, List

from mmguard.labels.instances import describe_reasons
from mmguard.labels.tally import Tally
from mmguard.text import quantity, visible_name

_offending_batches = 0
#: Advice about masks -> batches.
_batches: Dict[str, int] = {}


def warn_of(tallies: List[Tally], stacklevel: int) -> None:
    """Warn of a batch with invalid instances: the first of this process, the second, the fourth, the eighth, ..."""
    global _offending_batches
    _offending_batches += 1
    if _offending_batches & (_offending_batches - 1):  # not a power of two
        return
    offending = [tally for tally in tallies if tally]
    total = sum(tallies, Tally())
    amounts = [f'{n:,} {what}' for n, what in ((total.skipped, 'left out'), (total.remapped, 'remapped')) if n]
    reasons = describe_reasons(total)
    first = f', first: {visible_name(str(offending[0].source))}' if offending[0].source else ''
    warnings.warn(
        f'mmguard: of {total.total:,} instances {" and ".join(amounts)}{f" ({reasons})" if reasons else ""} in '
        f'{len(offending)} of {len(tallies)} images{first}. {_offending_batches:,} such batches so far. Training '
        f'continues, but the annotations are wrong: `mmguard scan` on their file names the cause; return_tally=True '
        f'returns the counts of every image (and ends this warning)',
        stacklevel=stacklevel + 1,
    )


def warn_of_empty_masks(empty: int, total: int, source: str, stacklevel: int) -> None:
    """Warn of masks without a pixel, as often as :func:`warn_of` does."""
    _warn_now_and_then(
        f'{empty:,} of {total:,} masks hold no pixel, first: {visible_name(source)}',
        'A crop or a resize leaves such masks if it keeps the box of an object that it cut away: drop them after '
        'it, keep = masks.flatten(1).any(1). The files are at fault only if a mask is empty before any '
        'transform',
        stacklevel + 1,
    )


def warn_of_sizes(differing: str, stacklevel: int) -> None:
    """Warn of masks of another size than their image, as often as :func:`warn_of` does."""
    _warn_now_and_then(
        differing,
        'A resize or crop changed only one of them, or height and width are swapped: the masks teach other pixels',
        stacklevel + 1,
    )


def _warn_now_and_then(what: str, advice: str, stacklevel: int) -> None:
    _batches[advice] = number = _batches.get(advice, 0) + 1
    if not number & (number - 1):
        text = f'mmguard: {what}. {quantity(number, "such batch", "such batches")} so far. {advice}'
        warnings.warn(text, stacklevel=stacklevel + 1)
