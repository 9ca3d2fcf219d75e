"""The arithmetic: pure functions of tensors, asynchronous, without a registry.

Imports :mod:`mmguard.labels` and what is below it, no framework; ``batch_messages`` imports findings when a label is
invalid.
"""

from mmguard.functional.check_target import check_target
from mmguard.functional.cross_entropy import cross_entropy
from mmguard.functional.mask import mask_cross_entropy
from mmguard.functional.multilabel import binary_cross_entropy_with_logits
from mmguard.functional.reduction import reduce_loss, scale_avg_factor
from mmguard.functional.sanitize import Sanitized, sanitize_target
from mmguard.functional.sigmoid import sigmoid_cross_entropy
from mmguard.functional.soft import soft_cross_entropy
from mmguard.functional.softmax import softmax_cross_entropy

__all__ = [
    'Sanitized',
    'binary_cross_entropy_with_logits',
    'check_target',
    'cross_entropy',
    'mask_cross_entropy',
    'sanitize_target',
    'reduce_loss',
    'scale_avg_factor',
    'sigmoid_cross_entropy',
    'soft_cross_entropy',
    'softmax_cross_entropy',
]
