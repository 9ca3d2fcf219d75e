"""Targets as torchvision, MLPerf and DETR have them: what is invalid leaves, all else stays as it was."""

from __future__ import annotations

import copy
import re
import warnings
from typing import Any, Dict, List, Optional

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mmguard import LabelGuardError, Tally
from mmguard.detection import guard_batch, guard_targets
from mmguard.detection import targets as of_targets

NAN = float('nan')
GOOD = [1.0, 2.0, 30.0, 40.0]


def target(labels: List[int], boxes: Optional[List[List[float]]] = None, image_id: int = 7) -> Dict[str, Any]:
    """An image of COCO as torchvision's reference scripts give it, and fields of one's own."""
    number = len(labels)
    return {
        'boxes': torch.tensor(boxes if boxes is not None else [GOOD] * number).reshape(-1, 4),
        'labels': torch.tensor(labels, dtype=torch.int64),
        'masks': torch.arange(number * 4, dtype=torch.uint8).reshape(number, 2, 2),
        'keypoints': torch.arange(number * 6.0).reshape(number, 2, 3),
        'area': torch.arange(number) + 0.5,
        'iscrowd': torch.zeros(number, dtype=torch.int64),
        'image_id': torch.tensor([image_id]),
        'orig_size': torch.tensor([480, 640]),
        'size': torch.tensor([480, 640]),
        'track_ids': torch.arange(number) + 100,
        'names': [f'object {i}' for i in range(number)],
        'polygons': np.arange(number * 2).reshape(number, 2),
        'file_name': 'a.jpg',
        'flipped': torch.tensor(True),
    }


PER_INSTANCE = ('boxes', 'labels', 'masks', 'keypoints', 'area', 'iscrowd', 'track_ids', 'names', 'polygons')


def picked(one: Dict[str, Any], rows: List[int]) -> Dict[str, Any]:
    """What somebody would write by hand to keep these instances alone."""
    out = dict(one)
    for key in PER_INSTANCE:
        value = one[key]
        out[key] = [value[row] for row in rows] if isinstance(value, list) else value[rows]
    return out


def assert_same(left: Dict[str, Any], right: Dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    for key, value in left.items():
        other = right[key]
        if isinstance(value, torch.Tensor):
            assert value.dtype == other.dtype, key
            assert torch.equal(value, other), key
        else:
            np.testing.assert_array_equal(value, other, err_msg=key)


@given(
    st.lists(st.lists(st.sampled_from([0, 1, 4, 5, 600, -1, 2**40]), max_size=5), min_size=1, max_size=4),
    st.integers(0, 1),
)
@settings(deadline=None, max_examples=60)
def test_it_keeps_what_a_filter_by_hand_keeps_and_counts_the_rest(labels: List[List[int]], min_label: int) -> None:
    batch = [target(one, image_id=place) for place, one in enumerate(labels)]
    before = copy.deepcopy(batch)
    guarded, tallies = guard_targets(
        batch,
        5,
        min_label=min_label,
        box_format='xyxy',
        return_tally=True,
        instance_keys=('track_ids', 'names', 'polygons'),
    )
    assert len(guarded) == len(tallies) == len(batch)
    again = guard_targets(guarded, 5, min_label=min_label, box_format='xyxy')
    assert again is guarded  # nothing is left to do
    for place, one in enumerate(labels):
        rows = [row for row, label in enumerate(one) if min_label <= label < 5]
        out = [label for label in one if not min_label <= label < 5]
        assert_same(guarded[place], picked(before[place], rows))
        assert_same(batch[place], before[place])  # nobody's dict or tensor was written to
        reasons = {'label': len(out)} if out else {}
        values = {value: out.count(value) for value in set(out)}
        assert tallies[place] == Tally(len(one), len(out), 0, values, f'image_id {place}', reasons)


def test_valid_targets_are_given_back_themselves() -> None:
    batch = [target([0, 4]), target([]), target([3])]
    images = [torch.zeros(3, 2, 2)] * 3
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert guard_targets(batch, 5, box_format='xyxy') is batch
        assert guard_targets(batch, 5, label_map={9: 1}) is batch
        same = guard_batch(images, batch, 5, box_format='xyxy')
    assert same[0] is images
    assert same[1] is batch
    guarded, tallies = guard_targets(tuple(batch), 5, return_tally=True)
    assert all(new is old for new, old in zip(guarded, batch))
    assert [tally.total for tally in tallies] == [2, 0, 1]
    assert not any(tallies)


@pytest.mark.parametrize(
    ('box_format', 'unusable'),
    [
        ('xyxy', [[3.0, 3, 3, 5], [3, 3, 5, 3], [5, 5, 1, 9]]),
        ('xywh', [[3.0, 3, 0, 5], [3, 3, 5, -1]]),
        ('cxcywh', [[0.5, 0.5, 0, 0.1], [0.5, 0.5, 0.1, 0]]),
        (None, []),
    ],
)
def test_boxes_are_judged_in_their_format(box_format: Optional[str], unusable: List[List[float]]) -> None:
    good = [[0.5, 0.5, 0.1, 0.2]] if box_format in ('cxcywh', None) else [GOOD]
    rows = [*good, *unusable, [NAN, 1, 2, 3], [0, 0, float('inf'), 5], *good]
    (guarded,), (tally,) = guard_targets([target([1] * len(rows), rows)], 5, box_format=box_format, return_tally=True)
    assert guarded['track_ids'].tolist() == [100, 99 + len(rows)]
    reasons = {'box_not_finite': 2, 'box_no_area': len(unusable)}
    assert tally.reasons == {reason: count for reason, count in reasons.items() if count}
    assert tally.skipped == len(rows) - 2
    assert tally.values == {}


def test_boxes_in_line_are_not_counted_twice_and_may_be_left_alone() -> None:
    rows = [[NAN] * 4, GOOD, GOOD]
    ((guarded,), (tally,)) = guard_targets([target([600, 600, 1], rows)], 5, box_format='xyxy', return_tally=True)
    assert guarded['labels'].tolist() == [1]
    assert tally.reasons == {'box_not_finite': 1, 'label': 1}
    assert tally.skipped == 2
    (guarded,) = guard_targets([target([0, 0, 1], rows)], 5, box_format='xyxy', check_boxes=False)
    assert len(guarded['boxes']) == 3


def test_clip_and_label_map() -> None:
    batch = [target([0, 7, -3, 90])]
    (guarded,), (tally,) = guard_targets(batch, 5, 'clip', label_map={90: 2}, min_label=1, return_tally=True)
    assert guarded['labels'].tolist() == [1, 4, 1, 2]
    assert guarded['boxes'] is batch[0]['boxes']
    assert (tally.skipped, tally.remapped, tally.mapped, tally.values) == (0, 3, 1, {0: 1, 7: 1, -3: 1})
    with warnings.catch_warnings():
        warnings.simplefilter('error')  # a label map is meant
        (guarded,) = guard_targets([target([90, 3])], 5, label_map={90: 2})
    assert guarded['labels'].tolist() == [2, 3]


def test_labels_keep_their_dtype_where_it_holds_the_classes() -> None:
    for dtype, num_classes, wanted in ((torch.uint8, 200, torch.uint8), (torch.int8, 200, torch.int64)):
        one = {'labels': torch.tensor([100, 5], dtype=dtype)}
        (guarded,) = guard_targets([one], num_classes, label_map={5: 150})
        assert guarded['labels'].tolist() == [100, 150]
        assert guarded['labels'].dtype == wanted
    (guarded,), (tally,) = guard_targets([{'labels': torch.tensor([200, 5], dtype=torch.uint8)}], 6, return_tally=True)
    assert guarded['labels'].dtype == torch.uint8
    assert tally.values == {200: 1}


def test_raise_names_image_value_and_ways_out(refuses: Any) -> None:
    with refuses(LabelGuardError) as caught:
        guard_targets([target([1]), target([1, 600, 600], image_id=42)], 264, 'raise', min_label=1)
    assert caught.value.tallies[0] == Tally(3, 2, values={600: 2}, source='image_id 42', reasons={'label': 2})
    assert caught.value.positions == [(1,), (2,)]
    with refuses(LabelGuardError, match=r'^targets\[1\]'):
        guard_targets([{'labels': torch.tensor([1])}, {'labels': torch.tensor([9])}], 5, 'raise')
    with refuses(LabelGuardError, match=r'^b\.jpg') as caught:
        guard_targets([target([1], [[1, 1, 1, 1]])], 5, 'raise', box_format='xyxy', sources=['b.jpg'])
    assert caught.value.tallies[0].reasons == {'box_no_area': 1}


# ---- which fields belong to the instances


def test_a_field_that_only_looks_per_instance_in_one_image_is_left_alone() -> None:
    batch = [target([0, 9]), target([1])]
    for one in batch:
        one['centre'] = torch.tensor([3.0, 4.0])  # as many as the first image has instances
    guarded, _ = guard_targets(batch, 5, return_tally=True)
    assert guarded[0]['centre'].tolist() == [3.0, 4.0]
    assert guarded[0]['track_ids'].tolist() == [100]


def test_named_fields_are_the_only_ones_of_ones_own_that_are_cut(refuses: Any) -> None:
    one = target([0, 9])
    one['centre'] = torch.tensor([3.0, 4.0])
    guarded, _ = guard_targets([one], 5, instance_keys=('track_ids',), return_tally=True)
    assert len(guarded[0]['centre']) == 2
    assert len(guarded[0]['track_ids']) == len(guarded[0]['masks']) == 1
    one['track_ids'] = torch.arange(3)
    with refuses(ValueError, match=r"targets\[0\]\['track_ids'\]"):
        guard_targets([one], 5, instance_keys=('track_ids',))


def test_mlperf_leaves_area_out_of_line_and_so_do_we() -> None:
    """Its data set drops a box without area from boxes and labels, not from area and iscrowd."""
    one = target([0, 9])
    one['area'] = one['iscrowd'] = torch.arange(3)
    (guarded,), _ = guard_targets([one], 5, return_tally=True)
    assert guarded['area'].tolist() == [0, 1, 2]
    assert guarded['labels'].tolist() == [0]


@pytest.mark.parametrize(('labels', 'rows'), [([9], []), ([9, 1], [1])])
def test_what_belongs_to_the_image_stays_though_it_has_as_many_elements(labels: List[int], rows: List[int]) -> None:
    one = target(labels)  # image_id has 1 element, size and orig_size have 2
    (guarded,), _ = guard_targets([one], 5, return_tally=True)
    assert_same(guarded, picked(one, rows))


def test_labels_under_another_name(refuses: Any) -> None:
    """As in Hugging Face's detectors."""
    one = target([0, 9, 2])
    one['class_labels'] = one.pop('labels')
    arguments: Dict[str, Any] = dict(label_key='class_labels', box_format='xyxy', return_tally=True)
    for keys in (None, ('track_ids',)):
        kept, (guarded,), (tally,) = guard_batch(torch.zeros(1, 3, 50, 50), [one], 5, instance_keys=keys, **arguments)
        assert len(kept) == 1
        assert guarded['class_labels'].tolist() == [0, 2]
        assert guarded['track_ids'].tolist() == [100, 102]
        assert tally.values == {9: 1}
    (guarded,), _ = guard_targets([one], 5, 'clip', label_key='class_labels', return_tally=True)
    assert guarded['class_labels'].tolist() == [0, 4, 2]
    with refuses(ValueError, match='class_labels'):
        guard_targets([one], 5)
    with refuses(TypeError, match=r"targets\[0\]\['class_labels'\]"):
        guard_targets([{'class_labels': torch.zeros(2)}], 5, label_key='class_labels')


def test_without_an_id_a_tally_names_no_source() -> None:
    """A place in the batch would name another image the next time."""
    _, (tally,) = guard_targets([{'labels': torch.tensor([9])}], 5, return_tally=True)
    assert tally == Tally(1, 1, 0, {9: 1}, None, {'label': 1})


def test_targets_of_masks_alone() -> None:
    """As MaskFormer-like models have them."""
    masks = torch.rand(2, 4, 4)
    (guarded,), _ = guard_targets([{'labels': torch.tensor([600, 1]), 'masks': masks}], 5, return_tally=True)
    assert torch.equal(guarded['masks'], masks[1:])


def test_gradients_flow_through_what_is_kept() -> None:
    boxes = torch.tensor([GOOD, GOOD], requires_grad=True)
    (guarded,), _ = guard_targets([{'labels': torch.tensor([600, 1]), 'boxes': boxes}], 5, return_tally=True)
    guarded['boxes'].sum().backward()
    assert boxes.grad.sum(dim=1).tolist() == [0.0, 4.0]


def test_an_empty_batch() -> None:
    assert guard_targets([], 5, box_format='xyxy', return_tally=True) == ([], [])


# ---- images that leave the batch


@pytest.mark.parametrize('stacked', [False, True])
def test_images_whose_every_instance_is_invalid_leave_the_batch(stacked: bool) -> None:
    batch = [target([9]), target([]), target([9, 1]), target([8, 9]), target([3])]
    images: Any = [torch.full((3, 2, 2), float(place)) for place in range(5)]
    images = torch.stack(images) if stacked else images
    kept, targets, tallies = guard_batch(images, batch, 5, return_tally=True)
    assert type(kept) is type(images)
    assert [int(image.mean()) for image in kept] == [1, 2, 4]  # empty on purpose stays
    assert [one['labels'].tolist() for one in targets] == [[], [1], [3]]
    assert [tally.skipped for tally in tallies] == [1, 0, 1, 2, 0]  # of what came in


def test_a_rank_keeps_something_to_run() -> None:
    images = (torch.zeros(3, 2, 2), torch.zeros(3, 2, 2))
    kept, targets, _ = guard_batch(images, (target([9]), target([8, 9])), 5, return_tally=True)
    assert kept is images
    assert [len(one['boxes']) for one in targets] == [0, 0]


def test_images_that_cannot_be_taken_apart_are_reported(refuses: Any) -> None:
    with refuses(TypeError, match='dict'):
        guard_batch({}, [target([9])], 5)
    with refuses(ValueError):
        guard_batch(torch.zeros(2, 3, 2, 2), [target([1])], 5)


@pytest.mark.parametrize('stacked', [False, True])
def test_boxes_outside_of_the_image_leave_where_the_images_are_there(stacked: bool) -> None:
    # Width 20, height 10; two boxes reach in by a bit.
    xyxy = [[-5.0, 0, 0, 5], [20, 0, 30, 5], [3, -9, 8, 0], [3, 10, 8, 12], [-5, -5, 0.5, 0.5], [19.5, 9.5, 40, 40]]
    images: Any = [torch.zeros(3, 10, 20), torch.zeros(3, 10, 20)]
    images = torch.stack(images) if stacked else images
    xywh = [[x, y, right - x, bottom - y] for x, y, right, bottom in xyxy]
    for box_format, rows in (('xyxy', xyxy), ('xywh', xywh)):
        batch = [target([1] * 6, rows), target([1], [[1, 1, 2, 2]])]
        _, (guarded, _), (tally, _) = guard_batch(images, batch, 5, box_format=box_format, return_tally=True)
        assert guarded['track_ids'].tolist() == [104, 105]
        assert tally.reasons == {'box_outside': 4}
        assert guard_targets(batch, 5, box_format=box_format) is batch  # knows of no image
        assert guard_batch(images, batch, 5)[1] is batch  # knows of no format
        assert guard_batch(images, batch, 5, box_format=box_format, check_boxes=False)[1] is batch
    normalised = [target([1], [[0.5, 0.5, 0.9, 0.9]])]
    assert guard_batch(images[:1], normalised, 5, box_format='cxcywh')[1] is normalised


def test_images_with_channels_last_say_nothing_of_boxes() -> None:
    batch = [target([1], [[30.0, 30, 40, 40]])]
    assert guard_batch([torch.zeros(64, 64, 3)], batch, 5, box_format='xyxy')[1] is batch


# ---- it tells


def test_it_warns_where_nobody_takes_the_tally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_targets, '_offending_batches', 0)
    batch = [target([1]), target([600, 1, 600], image_id=42)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        for _ in range(9):
            guard_targets(batch, 5)
        guard_targets(batch, 5, return_tally=True)
    said = [str(one.message) for one in caught]
    assert [number for text, number in zip(said, (1, 2, 4, 8)) if re.search(rf'image_id 42.*\b{number}\b', text)] == [
        *(1, 2, 4, 8)
    ]
    assert len(said) == 4
    assert '600' in said[0]
    assert {one.filename for one in caught} == {__file__}
