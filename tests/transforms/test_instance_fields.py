"""The overlap mask of mmyolo's instance segmentation counts the instances that are trained on."""

from __future__ import annotations

from typing import Any, Dict

import numpy as np
import pytest
import torch
from mmdet.structures import DetDataSample
from mmengine.structures import BaseDataElement, InstanceData, PixelData

from mmguard.transforms import GuardInstanceLabels

#: Four instances, the second and the last with a label that no head knows; 0 is no object.
LABELS = (0, 9, 1, 9)
MAP = torch.tensor([[[0, 1, 1], [2, 3, 3], [4, 4, 0]]], dtype=torch.uint8)
LEFT = [[[0, 1, 1], [0, 2, 2], [0, 0, 0]]]
BOXES = torch.tensor([[0.0, 0, 2, 2]]).repeat(4, 1)


def packed_overlap(**fields: Any) -> Dict[str, Any]:
    sample = DetDataSample(metainfo=dict(img_path='a.jpg', img_shape=(3, 3)))
    sample.gt_instances = InstanceData(labels=torch.tensor(LABELS), bboxes=BOXES, **fields)
    sample.gt_panoptic_seg = PixelData(pan_seg=MAP)
    return dict(data_samples=sample)


@pytest.mark.parametrize('on_invalid', ['drop', 'ignore'])
def test_the_map_of_a_packed_sample_counts_what_stays(on_invalid: str) -> None:
    sample = GuardInstanceLabels(2, on_invalid)(packed_overlap())['data_samples']
    assert sample.gt_instances.labels.tolist() == [0, 1]
    assert sample.gt_panoptic_seg.pan_seg.tolist() == LEFT
    assert sample.gt_panoptic_seg.pan_seg.dtype == torch.uint8


@pytest.mark.parametrize('on_invalid', ['drop', 'ignore'])
def test_the_map_of_a_sample_before_packing_counts_what_will_be_packed(on_invalid: str) -> None:
    results = dict(gt_bboxes_labels=np.array(LABELS), gt_bboxes=BOXES.numpy(), gt_panoptic_seg=MAP)
    if on_invalid == 'ignore':
        results['gt_ignore_flags'] = np.zeros(4, bool)
    assert GuardInstanceLabels(2, on_invalid)(results)['gt_panoptic_seg'].tolist() == LEFT


def test_a_clean_sample_keeps_its_map_and_one_with_masks_of_its_own_does_too() -> None:
    clean = packed_overlap()
    assert GuardInstanceLabels(10)(clean)['data_samples'].gt_panoptic_seg.pan_seg is MAP
    panoptic = packed_overlap(masks=torch.zeros(4, 3, 3))
    assert GuardInstanceLabels(2, 'drop')(panoptic)['data_samples'].gt_panoptic_seg.pan_seg is MAP


def test_a_map_of_segment_ids_is_none_of_these() -> None:
    results = dict(gt_bboxes_labels=np.array(LABELS), gt_bboxes=BOXES.numpy(), gt_panoptic_seg=MAP * 9)
    assert GuardInstanceLabels(2, 'drop')(results)['gt_panoptic_seg'].tolist() == (MAP * 9).tolist()


def test_objects_in_space_are_refused(refuses: Any) -> None:
    with refuses(ValueError):
        GuardInstanceLabels(3)({'gt_labels_3d': np.array([0, 4]), 'img_path': 'a.png'})
    sample = BaseDataElement(gt_instances=InstanceData(), gt_instances_3d=InstanceData())
    with refuses(ValueError):
        GuardInstanceLabels(3)({'data_samples': sample})
