"""Imports mmrotate beside OpenMMLab's mmdet: its metrics import one by a name that onedl-mmdetection alone has."""

from __future__ import annotations

import mmdet.evaluation

if not hasattr(mmdet.evaluation, 'FasterCocoMetric'):
    mmdet.evaluation.FasterCocoMetric = mmdet.evaluation.CocoMetric

import mmrotate.datasets
import mmrotate.evaluation
import mmrotate.models  # noqa: F401
