"""torchvision's detectors by docs/recipes.md: what they do of a label that is no class, and what they do guarded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, List

import pytest
import torch
from torch import Tensor
from torchvision.models.detection.image_list import ImageList
from torchvision.ops import box_iou
from torchvision_models import DETECTORS, NUM_CLASSES, SIZE, batch, step

from mmguard.detection import guard_batch, guard_targets

RECIPES = (Path(__file__).parents[2] / 'docs/recipes.md').read_text(encoding='utf-8')


def typed(detector: str) -> Dict[str, Any]:
    """What the recipes say to write for it."""
    rows = [row.split('|') for row in re.findall(r'^\| torchvision .*\|$', RECIPES, re.M)]
    (row,) = [row for row in rows if re.search(rf'\b{detector.replace(" R-CNN", "")}\b', row[1])]
    return dict(num_classes=NUM_CLASSES, min_label=int(row[3]), box_format=row[4].strip(" `'"))


#: Two stages, and SSD: label 0 is their background.
WITH_BACKGROUND = [detector for detector in DETECTORS if typed(detector)['min_label'] == 1]
WITHOUT = [detector for detector in DETECTORS if detector not in WITH_BACKGROUND]


def test_who_has_a_background() -> None:
    assert sorted(WITHOUT) == ['FCOS', 'RetinaNet']


def same(left: Dict[str, Tensor], right: Dict[str, Tensor]) -> bool:
    """Bit for bit."""
    assert all(value.isfinite().all() for value in (*left.values(), *right.values()))
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def picked(target: Dict[str, Tensor], places: List[int]) -> Dict[str, Tensor]:
    return {name: value if name == 'image_id' else value[places] for name, value in target.items()}


@pytest.mark.parametrize('detector', DETECTORS)
@pytest.mark.parametrize('label', [NUM_CLASSES, 600])
def test_stock_dies_of_a_label_beyond_the_classes(detector: str, label: int) -> None:
    with pytest.raises(IndexError, match=rf'\b{label}\b'):
        step(detector, *batch([1, 3], [label, 2]))


def test_minus_one_is_retinanets_last_class_in_silence() -> None:
    stock = step('RetinaNet', *batch([1, 3], [-1, 2]))
    assert same(stock, step('RetinaNet', *batch([1, 3], [NUM_CLASSES - 1, 2])))


def test_a_negative_label_is_background_to_fcos_in_silence() -> None:
    images, targets = batch([1, 3], [-1, -7])
    assert same(step('FCOS', images, targets), step('FCOS', images, [targets[0], picked(targets[1], [])]))


@pytest.mark.parametrize('detector', ['Faster R-CNN', 'Mask R-CNN', 'Keypoint R-CNN'])
@pytest.mark.parametrize(('label', 'trained_as'), [(0, [0]), (-1, [])])
def test_two_stages_propose_such_an_object_and_then_do_not_train_it_in_silence(
    detector: str, label: int, trained_as: List[int]
) -> None:
    """0 is the background of the second stage; what is negative is never sampled there."""
    images, targets = batch([label])
    stock = step(detector, images, targets)
    assert stock['loss_rpn_box_reg'] > 0
    assert stock['loss_box_reg'] == 0
    assert step(detector, images, [picked(targets[0], [])])['loss_rpn_box_reg'] == 0
    # The proposals are the object itself, which this call adds.
    heads = DETECTORS[detector]().roi_heads
    _, _, (sampled,), _ = heads.select_training_samples([torch.zeros(0, 4)], targets)
    assert sampled.tolist() == trained_as


def test_ssd_trains_the_box_of_a_label_0_and_no_class_of_it_in_silence() -> None:
    stock = step('SSD', *batch([0], [0]))
    assert stock['bbox_regression'] > 0
    assert stock['classification'] == 0


def test_ssd_dies_of_minus_one() -> None:
    with pytest.raises(IndexError, match='-1'):
        step('SSD', *batch([1, 3], [-1, 2]))


def offending(detector: str) -> List[List[int]]:
    """Four images: clean, with two offences around an object, without an object, with offences alone."""
    below = typed(detector)['min_label'] - 1
    return [[1, 3], [NUM_CLASSES, 2, below], [], [600]]


@pytest.mark.parametrize('detector', DETECTORS)
def test_guarded_targets_equal_deletion_by_hand_bit_for_bit(detector: str) -> None:
    images, targets = batch(*offending(detector))
    guarded, tallies = guard_targets(targets, return_tally=True, **typed(detector))
    assert [tally.skipped for tally in tallies] == [0, 2, 0, 1]
    by_hand = [targets[0], picked(targets[1], [1]), targets[2], picked(targets[3], [])]
    assert same(step(detector, images, guarded), step(detector, images, by_hand))


@pytest.mark.parametrize('detector', DETECTORS)
def test_a_guarded_batch_equals_one_without_the_offending_image_bit_for_bit(detector: str) -> None:
    images, targets = batch(*offending(detector))
    kept, guarded = guard_batch(images, targets, **typed(detector))
    by_hand = [targets[0], picked(targets[1], [1]), targets[2]]
    assert same(step(detector, kept, guarded), step(detector, images[:3], by_hand))


@pytest.mark.parametrize('detector', DETECTORS)
def test_clean_targets_are_the_same_objects(detector: str) -> None:
    images, targets = batch([1, NUM_CLASSES - 1], [], [typed(detector)['min_label']])
    kept, guarded = guard_batch(images, targets, **typed(detector))
    assert kept is images
    assert guarded is targets


@pytest.mark.parametrize('detector', WITH_BACKGROUND)
def test_without_min_label_a_label_0_stays(detector: str) -> None:
    _, targets = batch([0, 2])
    assert guard_targets(targets, **{**typed(detector), 'min_label': 0}) is targets


def test_a_box_outside_of_the_image_takes_every_anchor_in_silence_and_is_left_out_here() -> None:
    """RetinaNet gives a box its best anchors; where none overlaps all are equally good."""
    images, targets = batch([1], [3])
    targets[1]['boxes'] += 200
    model = DETECTORS['RetinaNet']()
    anchors = model.anchor_generator(ImageList(torch.stack(images), [(SIZE, SIZE)] * 2), [torch.zeros(1, 1, 8, 8)])[0]
    taken = [int((model.proposal_matcher(box_iou(target['boxes'], anchors)) >= 0).sum()) for target in targets]
    assert 0 < taken[0] < 8
    assert taken[1] == len(anchors) == 2 * 8 * 8
    kept, guarded, tallies = guard_batch(images, targets, return_tally=True, **typed('RetinaNet'))
    assert [tally.reasons for tally in tallies] == [{}, {'box_outside': 1}]
    assert same(step('RetinaNet', kept, guarded), step('RetinaNet', images[:1], targets[:1]))


@pytest.mark.parametrize('detector', DETECTORS)
def test_a_box_without_area_ends_the_training_there_and_is_left_out_here(detector: str) -> None:
    images, targets = batch([1, 3], [2])
    targets[0]['boxes'][1, 2] = targets[0]['boxes'][1, 0]
    with pytest.raises((ValueError, AssertionError)):
        step(detector, images, targets)
    kept, guarded = guard_batch(images, targets, **typed(detector))
    assert same(step(detector, kept, guarded), step(detector, images, [picked(targets[0], [0]), targets[1]]))
