"""Says that targets were mended where nobody asked for the tally: a guard that is silent hides the fault."""

from __future__ import annotations

import warnings
from typing import List

from mmguard.instances import describe_reasons
from mmguard.tally import Tally

_offending_batches = 0


def warn_of(tallies: List[Tally], stacklevel: int) -> None:
    """Warns of a batch with invalid instances: the first one of this process, the second, the fourth, the eighth, ...

    Args:
        tallies (list[Tally]): One per image.
        stacklevel (int): As in ``warnings.warn``, seen from here.
    """
    global _offending_batches
    _offending_batches += 1
    if _offending_batches & (_offending_batches - 1):  # no power of two
        return
    offending = [tally for tally in tallies if tally]
    total = sum(tallies, Tally())
    amounts = [f'{n:,} {what}' for n, what in ((total.skipped, 'left out'), (total.remapped, 'remapped')) if n]
    reasons = describe_reasons(total)
    first = f', first: {offending[0].source}' if offending[0].source else ''
    warnings.warn(
        f'mmguard: of {total.total:,} instances {" and ".join(amounts)}{f" ({reasons})" if reasons else ""} in '
        f'{len(offending)} of {len(tallies)} images{first}. {_offending_batches:,} such batches so far. Training goes '
        f'on, but the annotations are wrong: `mmguard scan` on their file names the cause; return_tally=True gives the '
        f'counts of every image (and ends this warning)',
        stacklevel=stacklevel + 1,
    )
