"""Guards for targets of detectors outside of OpenMMLab: torchvision, DETR and its variants, MLPerf's RetinaNet.

This package imports :mod:`mmguard.functional` and lower packages, but no framework.
"""

from mmguard.detection.targets import guard_batch, guard_targets

__all__ = ['guard_batch', 'guard_targets']
