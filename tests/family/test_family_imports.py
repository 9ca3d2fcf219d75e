"""All of the family imports, in one environment."""

from __future__ import annotations

import mmcv
import mmdet3d.models
import mmpretrain.models
import mmrotate.models
import mmyolo_here  # noqa: F401
from mmyolo.registry import MODELS as YOLO_MODELS


def test_every_framework_registers_its_models_beside_the_others() -> None:
    assert mmcv.__version__ == '2.1.0', 'as it was before mmyolo was imported'
    assert 'YOLOv8Head' in YOLO_MODELS
    assert mmpretrain.models.MODELS.get('LinearClsHead')
    assert mmrotate.models.RotatedFCOSHead
    assert mmdet3d.models.PAConvHead
