"""Rotated and quadrilateral boxes of mmrotate, and boxes in space of mmdet3d, keep their type and are judged by it."""

from __future__ import annotations

from typing import Any, List

import mmdet3d.structures
import numpy as np
import pytest
import torch
from mmdet3d.datasets.transforms import Pack3DDetInputs
from mmengine.structures import InstanceData
from mmrotate.structures.bbox import QuadriBoxes, RotatedBoxes

from mmguard.labels.tally import tallies_of
from mmguard.transforms import GuardInstanceLabels
from mmguard.transforms.instance_fields import box_faults

#: In an image of 100 x 100: inside; its centre outside but a part of it inside; wholly outside; no area; not finite.
ROTATED = [
    [50, 50, 30, 10, 0.7],
    [-5, 50, 40, 10, 0.0],
    [-50, 50, 40, 10, 0.0],
    [50, 50, 0, 10, 0.7],
    [50, 50, 30, 10, float('nan')],
]
QUADRI = [
    [10, 10, 20, 12, 18, 22, 8, 20],
    [-30, 0, 10, 0, 10, 10, -30, 10],
    [-30, 0, -10, 0, -10, 10, -30, 10],
    [10, 10, 20, 20, 5, 5, 15, 15],
    [10, 10, 20, 12, 18, 22, 8, float('inf')],
]


@pytest.mark.parametrize(('kind', 'boxes'), [(RotatedBoxes, ROTATED), (QuadriBoxes, QUADRI)])
def test_faults_are_those_of_the_box_as_it_lies(kind: Any, boxes: List[List[float]]) -> None:
    faults = box_faults(kind(boxes), (100, 100))
    assert faults is not None
    assert faults.tolist() == [0, 0, 3, 2, 1]
    assert box_faults(kind(boxes[:2]), (100, 100)) is None


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize(('kind', 'boxes'), [(RotatedBoxes, ROTATED), (QuadriBoxes, QUADRI)])
def test_the_guard_keeps_the_type_of_the_boxes(kind: Any, boxes: List[List[float]]) -> None:
    results = {
        'gt_bboxes': kind(boxes),
        'gt_bboxes_labels': np.array([1, 15, 2, 2, 2]),
        'gt_ignore_flags': np.zeros(5, bool),
        'img_shape': (100, 100),
        'img_path': 'P0001.png',
    }
    results = GuardInstanceLabels(15)(results)
    assert type(results['gt_bboxes']) is kind
    assert results['gt_bboxes_labels'].tolist() == [1, 15]
    assert results['gt_ignore_flags'].tolist() == [False, True]
    tally = tallies_of(results)['instances']
    assert tally.reasons == {'label': 1, 'box_outside': 1, 'box_no_area': 1, 'box_not_finite': 1}


@pytest.mark.parametrize('kind', ['LiDARInstance3DBoxes', 'CameraInstance3DBoxes', 'DepthInstance3DBoxes'])
def test_boxes_in_space_keep_their_type(kind: str) -> None:
    boxes = getattr(mmdet3d.structures, kind)(torch.tensor([[0.0, 0, 0, 4, 2, 1, 0.5]] * 3))
    results = {'gt_bboxes_3d': boxes, 'gt_labels_3d': np.array([0, 3, -1])}
    packed = Pack3DDetInputs(keys=['gt_bboxes_3d', 'gt_labels_3d'])(results)
    sample = GuardInstanceLabels(3)(packed)['data_samples']
    assert isinstance(sample.gt_instances_3d, InstanceData)
    assert type(sample.gt_instances_3d.bboxes_3d) is type(boxes)
    assert sample.gt_instances_3d.labels_3d.tolist() == [0]
    assert (tallies_of(sample)['instances'].skipped, tallies_of(sample)['instances'].mapped) == (1, 1)
