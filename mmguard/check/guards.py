"""mmguard's own parts in a config."""

from __future__ import annotations

from typing import List

from mmguard.check.parts import Part

TRANSFORMS = ('GuardSegLabels', 'GuardInstanceLabels')
LOSSES = ('GuardedCrossEntropyLoss', 'GuardedLoss')


def guards_in(pipeline: List[Part]) -> List[Part]:
    """The guards of a pipeline."""
    return [transform for transform in pipeline if transform.name in TRANSFORMS]


def is_guarded(loss: Part) -> bool:
    """Whether a loss is a guarded one, or stands inside one."""
    return loss.name in LOSSES or loss.path.endswith('.loss')
