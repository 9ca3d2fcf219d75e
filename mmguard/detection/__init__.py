"""Guards for targets of detectors outside of OpenMMLab: torchvision, DETR and its variants, MLPerf's RetinaNet.

Imports :mod:`mmguard.functional` and the packages below it; no framework.
"""

from mmguard.detection.targets import guard_batch, guard_targets

__all__ = ['guard_batch', 'guard_targets']
