"""Losses that GuardedLoss refuses, and why."""

from __future__ import annotations

_OWN_CLASS = (
    "it has a guarded class of its own, which also mends what is wrong inside it. Write type='GuardedCrossEntropyLoss' "
    'with the same arguments'
)
_NO_LABELS = 'its target holds no class labels, so no label can be out of range. Use it as it is'

REASONS = {
    'mmseg.CrossEntropyLoss': _OWN_CLASS,
    'mmdet.CrossEntropyLoss': _OWN_CLASS,
    'mmseg.HuasdorffDisstanceLoss': (
        'it sets ignored pixels to class 0 and trains on them, so an invalid pixel would be trained as class 0. Mend '
        'the labels in the pipeline with GuardSegLabels, or use another loss'
    ),
    'mmseg.KLDivLoss': _NO_LABELS,
    'mmseg.SiLogLoss': _NO_LABELS,
}
