"""The arithmetic: pure torch, asynchronous, without a registry."""

from mmguard.functional.mask import mask_cross_entropy
from mmguard.functional.mend import Mended, mend_target
from mmguard.functional.reduction import reduce_loss, scale_avg_factor
from mmguard.functional.sigmoid import sigmoid_cross_entropy
from mmguard.functional.softmax import softmax_cross_entropy

__all__ = [
    'Mended',
    'mask_cross_entropy',
    'mend_target',
    'reduce_loss',
    'scale_avg_factor',
    'sigmoid_cross_entropy',
    'softmax_cross_entropy',
]
