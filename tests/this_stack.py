"""In what the two OpenMMLab stacks differ for the tests: which one is here, and what its stock code does."""

from __future__ import annotations

from importlib import metadata
from typing import Tuple

from mmguard.compat.stack import ONEDL, base_source, stacks_among

#: The onedl forks are here, not OpenMMLab's packages.
IS_ONEDL = ONEDL in stacks_among(str(found.metadata['Name']) for found in metadata.distributions())


def weighted_cases_that_fail(shape: str, ignored: str) -> int:
    """Of the 8 with class weights, mean, no avg_factor, half of them with avg_non_ignore: how many stock fails on.

    Args:
        shape (str): ``'2-D'``, ``'4-D'`` scores.
        ignored (str): What is ignored: ``'nothing'``, ``'in range'``, else a value that is no class.
    """
    if IS_ONEDL:  # F3: the mask fits where labels are flat and none is ignored
        return 0 if (shape, ignored) == ('2-D', 'nothing') else 4
    return 8 if ignored not in ('nothing', 'in range') else 0  # F1


def base_line(name: str) -> str:
    """``_base_`` as ``mmguard apply`` writes it: the short name where this mmengine resolves it."""
    is_short = not (IS_ONEDL and name.startswith('mmseg::'))
    return f'_base_ = [{name!r}]' if is_short else f'_base_ = [{base_source(name)}]'


def is_here(codes: Tuple[str, ...]) -> bool:
    """Whether a report with one of these codes as its cause can be of this stack: MG214 is F1."""
    return not (IS_ONEDL and 'MG214' in codes)
