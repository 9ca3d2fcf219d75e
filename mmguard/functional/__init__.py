"""Pure functions on tensors: they do not need a registry and, by default, do not wait for the device.

A loss has four stages, as in torchmetrics, with one file each: ``validate`` checks shapes and dtypes, ``format``
sanitizes the labels, ``update`` counts elements, ``compute`` averages their losses.

Imports :mod:`mmguard.labels` and the packages below it, but not a framework; ``target_values`` imports
:mod:`mmguard.findings` only when a label is invalid.
"""

import logging
import os

from mmguard.functional.check_target import check_target
from mmguard.functional.compute import reduce_loss, scale_avg_factor
from mmguard.functional.cross_entropy import binary_cross_entropy_with_logits, cross_entropy
from mmguard.functional.format import Sanitized, sanitize_target
from mmguard.functional.framework_losses import mask_cross_entropy, sigmoid_cross_entropy, softmax_cross_entropy

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
    'softmax_cross_entropy',
]

if os.environ.get('MMGUARD_TRITON') == '1':
    try:
        from mmguard.functional import label_kernel

        label_kernel.enable()
    except (ImportError, AttributeError) as error:  # no triton, an old one, or torch < 2.4
        logging.getLogger('mmguard').warning('mmguard: MMGUARD_TRITON=1 has no effect: %s', error)
