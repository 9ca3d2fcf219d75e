"""Targets of detectors outside of OpenMMLab: torchvision, DETR and its family, MLPerf's RetinaNet."""

from mmguard.detection.targets import guard_batch, guard_targets

__all__ = ['guard_batch', 'guard_targets']
