"""Objects in space, as Pack3DDetInputs packs them."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np
import pytest
import torch
from mmengine.structures import BaseDataElement, InstanceData

from mmguard.labels.errors import LabelGuardError
from mmguard.labels.tally import tallies_of
from mmguard.transforms import GuardInstanceLabels

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
