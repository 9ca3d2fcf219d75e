from __future__ import annotations

import pickle
from typing import Any, Dict, List, Optional, Sequence

import numpy as np
import pytest
import torch
from mmdet.datasets.transforms import PackDetInputs
from mmdet.structures import DetDataSample, TrackDataSample
from mmdet.structures.bbox import BaseBoxes, HorizontalBoxes, register_box
from mmdet.structures.mask import BitmapMasks, PolygonMasks
from mmengine.registry import TRANSFORMS
from mmengine.structures import BaseDataElement, InstanceData

from mmguard import GuardInstanceLabels, LabelGuardError
from mmguard.labels.tally import LABEL_GUARD, Tally, get_tallies

HEIGHT, WIDTH = 40, 60
#: One box per instance: five good ones (the last reaches out of the image).
BOXES = [[0, 0, 10, 10], [5, 5, 20, 30], [30, 10, 50, 20], [1, 1, 2, 2], [50, 30, 90, 70]]
LABELS = [0, 264, 600, 263, -1]


class CentredBoxes(BaseBoxes):
    """Another box type: center, width, height, angle."""

    box_dim = 5


def _not_needed(self: Any, *args: Any, **kwargs: Any) -> None:
    raise AssertionError('the guard has no business here')


for _name in list(CentredBoxes.__abstractmethods__):
    setattr(CentredBoxes, _name, _not_needed)
CentredBoxes.__abstractmethods__ = frozenset()
register_box('centred_of_this_test', CentredBoxes, force=True)


def masks_of(kind: str, instances: int, height: int = HEIGHT, width: int = WIDTH) -> Any:
    """Masks that tell which instance they belong to: number n covers n + 1 pixels."""
    if kind == 'bitmap':
        masks = np.zeros((instances, height, width), np.uint8)
        for number in range(instances):
            masks[number].flat[: number + 1] = 1
        return BitmapMasks(masks, height, width)
    return PolygonMasks([[np.array([0, 0, n + 1, 0, n + 1, 5.0])] for n in range(instances)], height, width)


def sample_of(
    labels: Sequence[int] = LABELS, boxes: Any = None, masks: Optional[str] = 'bitmap', flags: Any = None, **more: Any
) -> Dict[str, Any]:
    labels = np.array(labels, dtype=np.int64)
    results: Dict[str, Any] = dict(
        img=np.zeros((HEIGHT, WIDTH, 3), np.uint8),
        img_shape=(HEIGHT, WIDTH),
        img_path='train/a.jpg',
        gt_bboxes=HorizontalBoxes(torch.tensor(BOXES[: len(labels)], dtype=torch.float32).reshape(-1, 4))
        if boxes is None
        else boxes,
        gt_bboxes_labels=labels,
        gt_ignore_flags=np.zeros(len(labels), bool) if flags is None else np.array(flags, bool),
        **more,
    )
    if masks is not None:
        results['gt_masks'] = masks_of(masks, len(labels))
    return results


def pack(results: Dict[str, Any]) -> Dict[str, Any]:
    return PackDetInputs(meta_keys=('img_path', 'img_shape', LABEL_GUARD))(results)


def guarded(results: Dict[str, Any], after_pack: bool, **arguments: Any) -> DetDataSample:
    """The packed sample, guarded before or after it was packed."""
    guard = GuardInstanceLabels(264, **arguments)
    return guard(pack(results))['data_samples'] if after_pack else pack(guard(results))['data_samples']


def owners(instances: InstanceData) -> List[int]:
    """Which instance of ``sample_of`` each mask belongs to."""
    if isinstance(instances.masks, BitmapMasks):
        return [int(mask.sum()) - 1 for mask in instances.masks.masks]
    return [int(polygons[0][2]) - 1 for polygons in instances.masks.masks]


both_places = pytest.mark.parametrize('after_pack', [False, True], ids=['before', 'after'])
both_masks = pytest.mark.parametrize('masks', ['bitmap', 'polygon'])


@both_places
@both_masks
def test_ignore_moves_instances_with_all_that_belongs_to_them(after_pack: bool, masks: str) -> None:
    sample = guarded(sample_of(masks=masks), after_pack)
    assert sample.gt_instances.labels.tolist() == [0, 263]
    assert sample.gt_instances.bboxes.tensor.tolist() == [BOXES[0], BOXES[3]]
    assert owners(sample.gt_instances) == [0, 3]
    assert sample.ignored_instances.labels.tolist() == [264, 600, -1]
    assert sample.ignored_instances.bboxes.tensor.tolist() == [BOXES[1], BOXES[2], BOXES[4]]
    assert owners(sample.ignored_instances) == [1, 2, 4]
    assert get_tallies(sample) == {'instances': Tally(5, 3, 0, {264: 1, 600: 1, -1: 1}, 'train/a.jpg', {'label': 3})}


@both_places
@both_masks
def test_drop_removes_them(after_pack: bool, masks: str) -> None:
    sample = guarded(sample_of(masks=masks), after_pack, on_invalid='drop')
    assert owners(sample.gt_instances) == [0, 3]
    assert len(sample.ignored_instances) == 0
    assert get_tallies(sample)['instances'].skipped == 3


@both_places
def test_clip_keeps_all_of_them(after_pack: bool) -> None:
    sample = guarded(sample_of(), after_pack, on_invalid='clip')
    assert sample.gt_instances.labels.tolist() == [0, 263, 263, 263, 0]
    assert owners(sample.gt_instances) == [0, 1, 2, 3, 4]
    tally = get_tallies(sample)['instances']
    assert (tally.skipped, tally.remapped, tally.reasons) == (0, 3, {'label': 3})


@both_places
def test_raise_names_the_file(after_pack: bool) -> None:
    with pytest.raises(LabelGuardError) as caught:
        guarded(sample_of(), after_pack, on_invalid='raise')
    (tally,) = caught.value.tallies
    assert (tally.source, tally.total, tally.skipped) == ('train/a.jpg', 5, 3)


@both_places
def test_label_map_comes_first(after_pack: bool) -> None:
    sample = guarded(sample_of(), after_pack, label_map={600: 7, 0: 1})
    assert sample.gt_instances.labels.tolist() == [1, 7, 263]
    tally = get_tallies(sample)['instances']
    assert (tally.skipped, tally.mapped, tally.values) == (2, 2, {264: 1, -1: 1})


FAULTY = [
    ([float('nan'), 0, 10, 10], 'box_not_finite'),
    ([0, 0, float('inf'), 10], 'box_not_finite'),
    ([float('-inf'), 0, float('inf'), 10], 'box_not_finite'),
    ([5, 5, 5, 20], 'box_no_area'),
    ([5, 5, 20, 5], 'box_no_area'),
    ([20, 5, 5, 20], 'box_no_area'),
    ([20, 20, 5, 5], 'box_no_area'),
    ([60, 0, 70, 10], 'box_outside'),
    ([0, 40, 10, 50], 'box_outside'),
    ([-9, 0, 0, 10], 'box_outside'),
    ([0, -9, 10, 0], 'box_outside'),
]


@both_places
@pytest.mark.parametrize(('box', 'reason'), FAULTY)
@pytest.mark.parametrize('kind', ['hbox', 'tensor', 'array'])
def test_unusable_boxes_are_dropped_under_their_own_reason(
    after_pack: bool, box: List[float], reason: str, kind: str
) -> None:
    boxes: Any = torch.tensor([BOXES[0], box, BOXES[4]])
    boxes = HorizontalBoxes(boxes) if kind == 'hbox' else boxes.numpy() if kind == 'array' else boxes
    sample = guarded(sample_of([5, 6, 7], boxes), after_pack)
    assert sample.gt_instances.labels.tolist() == [5, 7]
    assert owners(sample.gt_instances) == [0, 2]
    assert get_tallies(sample)['instances'] == Tally(3, 1, 0, {}, 'train/a.jpg', {reason: 1})
    assert len(sample.ignored_instances) == 0


@both_places
def test_boxes_are_left_alone_on_request(after_pack: bool) -> None:
    sample = guarded(
        sample_of([5, 6], HorizontalBoxes(torch.tensor([BOXES[0], [5.0, 5, 5, 5]]))), after_pack, check_boxes=False
    )
    assert len(sample.gt_instances) == 2
    assert not get_tallies(sample)['instances']


@both_places
def test_boxes_of_another_type_are_not_checked_but_their_labels_are(after_pack: bool) -> None:
    boxes = CentredBoxes(torch.tensor([[10, 10, 5, 5, 0.1], [10, 10, 0, 5, 0], [20, 10, 4, 4, 2]]))
    sample = guarded(sample_of([1, 2, 999], boxes), after_pack)
    assert sample.gt_instances.labels.tolist() == [1, 2]
    assert sample.ignored_instances.labels.tolist() == [999]
    assert type(sample.gt_instances.bboxes) is CentredBoxes
    assert get_tallies(sample)['instances'].reasons == {'label': 1}


@both_places
def test_crowds_keep_their_place_and_lose_only_unusable_boxes(after_pack: bool) -> None:
    boxes = HorizontalBoxes(torch.tensor([BOXES[0], BOXES[1], [5.0, 5, 5, 5], BOXES[3]]))
    sample = guarded(sample_of([1, 999, 2, 700], boxes, flags=[0, 1, 1, 0]), after_pack)
    assert sample.gt_instances.labels.tolist() == [1]
    assert sample.ignored_instances.labels.tolist() == [999, 700]
    assert owners(sample.ignored_instances) == [1, 3]
    assert get_tallies(sample)['instances'] == Tally(4, 2, 0, {700: 1}, 'train/a.jpg', {'box_no_area': 1, 'label': 1})


@both_places
@both_masks
@pytest.mark.parametrize('on_invalid', ['ignore', 'drop'])
def test_an_image_that_loses_every_instance_stays_usable(after_pack: bool, masks: str, on_invalid: str) -> None:
    sample = guarded(sample_of([264, 600, 999], masks=masks), after_pack, on_invalid=on_invalid)
    instances = sample.gt_instances
    assert (instances.labels.shape, instances.labels.dtype) == ((0,), torch.int64)
    assert (instances.bboxes.tensor.shape, instances.bboxes.tensor.dtype) == ((0, 4), torch.float32)
    assert (len(instances.masks), instances.masks.height, instances.masks.width) == (0, HEIGHT, WIDTH)
    assert instances.masks.to_tensor(torch.uint8, 'cpu').shape == (0, HEIGHT, WIDTH)
    assert len(sample.ignored_instances) == (3 if on_invalid == 'ignore' else 0)
    none = guarded(sample_of([], masks=masks), after_pack, on_invalid=on_invalid)
    assert (len(none.gt_instances), get_tallies(none)['instances']) == (0, Tally(0, source='train/a.jpg'))


@pytest.mark.parametrize('dtype', [np.int32, np.uint8, np.int64, np.int16])
@both_places
def test_labels_of_any_integer_type_become_int64(after_pack: bool, dtype: type) -> None:
    results = sample_of([3, 0])
    results['gt_bboxes_labels'] = np.array([3, 200], dtype=dtype)
    guard = GuardInstanceLabels(100)
    packed = guard(pack(results)) if after_pack else pack(guard(results))
    sample = packed['data_samples']
    assert sample.gt_instances.labels.dtype == torch.int64
    assert sample.gt_instances.labels.tolist() == [3]
    assert get_tallies(sample)['instances'].values == {200: 1}


def test_labels_that_are_no_class_indices_are_reported(refuses: Any) -> None:
    for labels, error in ((np.array([3.0, 0.0]), TypeError), (np.eye(2, dtype=np.int64), ValueError)):
        with refuses(error, match=r'train/a\.jpg'):
            GuardInstanceLabels(264)({**sample_of([3, 0]), 'gt_bboxes_labels': labels})


@both_places
def test_a_list_of_labels_is_named_with_its_fix(after_pack: bool, refuses: Any) -> None:
    results = sample_of([3, 0])
    key = 'gt_instances.labels' if after_pack else 'gt_bboxes_labels'
    if after_pack:
        results = pack(results)
        results['data_samples'].gt_instances.labels = [3, 0]
    else:
        results[key] = [3, 0]
    with refuses(TypeError, match=rf'train/a\.jpg: {key} '):
        GuardInstanceLabels(264)(results)


@both_places
@both_masks
def test_masks_of_another_size_are_reported(after_pack: bool, masks: str) -> None:
    results = sample_of([1, 2])
    results['gt_masks'] = masks_of(masks, 2, HEIGHT + 1, WIDTH)
    with pytest.raises(ValueError, match=r'train/a\.jpg.*41 x 60.*40 x 60'):
        guarded(results, after_pack)


@both_places
def test_annotations_in_the_coordinates_of_the_file_are_valid(after_pack: bool) -> None:
    """mmdet's test pipelines load them behind Resize, and do not resize them."""
    results = sample_of([1, 2, 3], HorizontalBoxes(torch.tensor([BOXES[0], [90.0, 5, 99, 20], [121.0, 5, 130, 20]])))
    results['gt_masks'] = masks_of('bitmap', 3, 2 * HEIGHT, 2 * WIDTH)
    results['ori_shape'] = (2 * HEIGHT, 2 * WIDTH)
    guard = GuardInstanceLabels(264)
    meta_keys = ('img_path', 'img_shape', 'ori_shape', LABEL_GUARD)
    packed = PackDetInputs(meta_keys)(results if after_pack else guard(results))
    sample = (guard(packed) if after_pack else packed)['data_samples']
    assert sample.gt_instances.labels.tolist() == [1, 2]
    assert get_tallies(sample)['instances'].reasons == {'box_outside': 1}


def test_fields_out_of_line_are_reported() -> None:
    results = sample_of([1, 2])
    results['gt_keypoints'] = np.zeros((3, 17, 3))
    with pytest.raises(ValueError, match=r'train/a\.jpg: gt_keypoints .*\b3\b.*\b2\b'):
        GuardInstanceLabels(264)(results)


def test_every_other_field_of_an_instance_stays_in_line() -> None:
    seg_map = np.zeros((HEIGHT, WIDTH), np.uint8)
    results = sample_of(
        gt_keypoints=np.arange(5)[:, None, None] * np.ones((5, 17, 3)),
        gt_keypoints_visible=np.arange(5)[:, None] * np.ones((5, 17)),
        gt_instances_ids=np.arange(5),
        gt_names=['a', 'b', 'c', 'd', 'e'],
        gt_scores=torch.arange(5),
        gt_seg_map=seg_map,
        instances=[{}] * 5,
    )
    sanitized = GuardInstanceLabels(264, on_invalid='drop')(results)
    assert sanitized['gt_keypoints'][:, 0, 0].tolist() == [0, 3]
    assert sanitized['gt_keypoints_visible'][:, 0].tolist() == [0, 3]
    assert sanitized['gt_instances_ids'].tolist() == [0, 3]
    assert sanitized['gt_names'] == ['a', 'd']
    assert sanitized['gt_scores'].tolist() == [0, 3]
    assert sanitized['gt_seg_map'] is seg_map


def test_packed_fields_of_other_packages_stay_in_line() -> None:
    packed = pack(sample_of())
    packed['data_samples'].gt_instances.keypoints = torch.arange(5)[:, None, None] * torch.ones(5, 17, 2)
    packed['data_samples'].gt_instances.names = list('abcde')
    sample = GuardInstanceLabels(264)(packed)['data_samples']
    assert sample.gt_instances.keypoints[:, 0, 0].tolist() == [0, 3]
    assert sample.gt_instances.names == ['a', 'd']
    assert len(sample.ignored_instances) == 3


def test_a_map_as_high_as_there_are_instances_is_no_field_of_theirs() -> None:
    labels = np.arange(HEIGHT) % 300 + 250
    boxes = HorizontalBoxes(torch.tensor([[0, 0, 10, 10.0]]).repeat(HEIGHT, 1))
    results = sample_of(labels, boxes, masks=None, gt_edges=np.zeros((HEIGHT, WIDTH)), gt_seg_map=np.zeros((HEIGHT, 9)))
    sanitized = GuardInstanceLabels(264, on_invalid='drop')(results)
    assert len(sanitized['gt_bboxes_labels']) == (labels < 264).sum() < HEIGHT
    assert sanitized['gt_edges'].shape == (HEIGHT, WIDTH)
    assert sanitized['gt_seg_map'].shape == (HEIGHT, 9)


@both_places
def test_flags_are_made_where_the_sample_has_none(after_pack: bool) -> None:
    results = sample_of()
    del results['gt_ignore_flags']
    sample = guarded(results, after_pack)
    assert owners(sample.gt_instances) == [0, 3]
    assert owners(sample.ignored_instances) == [1, 2, 4]


def test_boxes_alone_and_labels_alone() -> None:
    results = sample_of([0, 0], HorizontalBoxes(torch.tensor([BOXES[0], [5.0, 5, 5, 5]])))
    del results['gt_bboxes_labels']
    sanitized = GuardInstanceLabels(264)(results)
    assert len(sanitized['gt_bboxes']) == 1
    assert 'gt_bboxes_labels' not in sanitized
    results = sample_of([0, 999], masks='polygon')
    del results['gt_bboxes']
    assert guarded(results, after_pack=True).gt_instances.labels.tolist() == [0]


def test_a_sample_without_annotations_passes() -> None:
    results = dict(img=np.zeros((4, 4, 3), np.uint8), img_path='a.jpg')
    assert GuardInstanceLabels(3)(dict(results)).keys() == results.keys()
    packed = pack(dict(results))
    assert LABEL_GUARD not in GuardInstanceLabels(3)(packed)['data_samples']


def test_the_frames_of_a_video_are_refused(refuses: Any) -> None:
    frame = DetDataSample(gt_instances=InstanceData(labels=torch.tensor([9])))
    for video in (
        {'data_samples': TrackDataSample(video_data_samples=[frame])},
        {'img_path': ['0.png', '1.png'], 'gt_bboxes_labels': [np.array([9]), np.array([9])]},
    ):
        with refuses(ValueError):
            GuardInstanceLabels(2)(video)


def test_two_guards_count_each_instance_once() -> None:
    guard = GuardInstanceLabels(264, on_invalid='drop')
    sample = guard(pack(guard(sample_of())))['data_samples']
    assert get_tallies(sample)['instances'] == Tally(5, 3, 0, {264: 1, 600: 1, -1: 1}, 'train/a.jpg', {'label': 3})


def test_clean_samples_are_not_touched() -> None:
    packed = pack(sample_of([1, 2]))
    instances = packed['data_samples'].gt_instances
    fields = {key: id(value) for key, value in instances.items()}
    sample = GuardInstanceLabels(264)(packed)['data_samples']
    assert sample.gt_instances is instances
    assert {key: id(value) for key, value in instances.items()} == fields


def test_is_registered_pickles_and_says_what_it_is() -> None:
    guard = TRANSFORMS.build(dict(type='GuardInstanceLabels', num_classes=3, on_invalid='drop', label_map={7: 1}))
    text = (
        "GuardInstanceLabels(num_classes=3, on_invalid='drop', label_map={7: 1}, check_boxes=True, keep_ignored=True)"
    )
    assert repr(pickle.loads(pickle.dumps(guard))) == text


def test_objects_in_space_are_refused(refuses: Any) -> None:
    with refuses(ValueError):
        GuardInstanceLabels(3)({'gt_labels_3d': np.array([0, 4]), 'img_path': 'a.png'})
    sample = BaseDataElement(gt_instances=InstanceData(), gt_instances_3d=InstanceData())
    with refuses(ValueError):
        GuardInstanceLabels(3)({'data_samples': sample})
