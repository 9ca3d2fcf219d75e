"""The overlap mask of mmyolo's instance segmentation counts the instances that are trained on."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np
import pytest
import torch
from mmdet.structures import DetDataSample
from mmengine.structures import BaseDataElement, InstanceData, PixelData

from mmguard.labels.tally import LabelGuardError, tallies_of
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


BOX = [0.0, 0.0, 0.0, 4.0, 2.0, 1.5, 0.3]


def packed(labels: List[int], boxes: Optional[List[List[float]]] = None, /, **image: Any) -> Dict[str, Any]:
    sample = BaseDataElement(metainfo={'lidar_path': 'points/000.bin'})
    count = len(labels)
    sample.gt_instances_3d = InstanceData(
        labels_3d=torch.tensor(labels), bboxes_3d=torch.tensor(boxes or [BOX] * count), depths=torch.arange(count)
    )
    sample.gt_instances = InstanceData(**image)
    return {'data_samples': sample}


def guarded(results: Dict[str, Any], **arguments: Any) -> Any:
    return GuardInstanceLabels(3, **arguments)(results)['data_samples']


@pytest.mark.parametrize('on_invalid', ['ignore', 'drop'])
def test_an_object_with_an_invalid_label_is_removed_with_all_its_fields(on_invalid: str) -> None:
    sample = guarded(packed([0, 7, 2, -2]), on_invalid=on_invalid)
    assert sample.gt_instances_3d.labels_3d.tolist() == [0, 2]
    assert sample.gt_instances_3d.depths.tolist() == [0, 2]
    assert len(sample.gt_instances_3d.bboxes_3d) == 2
    tally = tallies_of(sample)['instances']
    assert (tally.total, tally.skipped, tally.values) == (4, 2, {7: 1, -2: 1})
    assert tally.source == 'points/000.bin'


def test_a_category_that_is_not_listed_is_no_offence() -> None:
    sample = guarded(packed([-1, 1, -1], [[0, 0, 0, -1, -1, -1, 0], BOX, BOX]))  # as KITTI's DontCare has them
    assert sample.gt_instances_3d.labels_3d.tolist() == [1]
    tally = tallies_of(sample)['instances']
    assert not tally
    assert (tally.total, tally.mapped) == (3, 2)


def test_boxes_want_a_size_and_finite_geometry_and_may_have_no_velocity() -> None:
    flat, unknown, still = [*BOX[:3], 4.0, 0.0, 1.5, 0.3], [float('nan'), *BOX[1:]], BOX
    nan = float('nan')
    boxes = [[*box, nan, nan] for box in (flat, unknown, still)]
    sample = guarded(packed([0, 0, 0], boxes))
    assert len(sample.gt_instances_3d) == 1
    assert tallies_of(sample)['instances'].reasons == {'box_no_area': 1, 'box_not_finite': 1}
    assert len(guarded(packed([0, 0, 0], boxes), check_boxes=False).gt_instances_3d) == 3


def test_clip_and_raise() -> None:
    sample = guarded(packed([0, 7, -1]), on_invalid='clip')
    assert sample.gt_instances_3d.labels_3d.tolist() == [0, 2]
    assert tallies_of(sample)['instances'].remapped == 1
    with pytest.raises(LabelGuardError) as caught:
        guarded(packed([0, 7, -1]), on_invalid='raise')
    (tally,) = caught.value.tallies
    assert (tally.source, tally.values) == ('points/000.bin', {7: 1})


def test_boxes_in_the_image_belong_to_the_objects() -> None:
    """Monocular detectors index both by the same numbers."""
    image = {'labels': torch.tensor([0, 7, 9, 2]), 'bboxes': torch.arange(16.0).view(4, 4)}
    sample = guarded(packed([0, 7, 1, -1], **image))
    assert sample.gt_instances_3d.depths.tolist() == [0]
    assert sample.gt_instances.bboxes[:, 0].tolist() == [0]
    tally = tallies_of(sample)['instances']
    assert (tally.total, tally.skipped, tally.mapped, tally.values) == (4, 2, 1, {7: 1, 9: 1}), 'each object once'


def test_boxes_of_other_objects_are_judged_apart() -> None:
    image = {'labels': torch.tensor([5, 1]), 'bboxes': torch.tensor([[0.0, 0, 5, 5], [1, 1, 6, 6]])}
    sample = guarded(packed([0, 7, 1], **image))
    assert sample.gt_instances_3d.labels_3d.tolist() == [0, 1]
    assert sample.gt_instances.labels.tolist() == [1]
    assert sample.ignored_instances.labels.tolist() == [5]
    tally = tallies_of(sample)['instances']
    assert (tally.total, tally.skipped, tally.values) == (5, 2, {5: 1, 7: 1})


def test_before_the_pack_transform() -> None:
    results = {
        'gt_labels_3d': np.array([0, 4]),
        'gt_bboxes_3d': torch.tensor([BOX, BOX]),
        'centers_2d': np.zeros((2, 2)),
        'lidar_points': {'lidar_path': 'a.bin'},
    }
    results = GuardInstanceLabels(3)(results)
    assert [len(results[key]) for key in ('gt_labels_3d', 'gt_bboxes_3d', 'centers_2d')] == [1, 1, 1]
    assert tallies_of(results)['instances'].source == 'a.bin'


def test_without_annotations_nothing_happens() -> None:
    sample = BaseDataElement(gt_instances=InstanceData(), gt_instances_3d=InstanceData())
    assert 'label_guard' not in GuardInstanceLabels(3)({'data_samples': sample})['data_samples']
