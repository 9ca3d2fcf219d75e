"""torchvision's detectors, made small: its own classes and losses on a backbone of one layer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
import torch
from loss_checks import same
from torch import Tensor, nn
from torchvision.models.detection import (
    FCOS,
    FasterRCNN,
    KeypointRCNN,
    MaskRCNN,
    RetinaNet,
    ssdlite320_mobilenet_v3_large,
)
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.image_list import ImageList
from torchvision.models.detection.keypoint_rcnn import KeypointRCNNHeads, KeypointRCNNPredictor
from torchvision.ops import MultiScaleRoIAlign, box_iou

from mmguard.detection import guard_batch, guard_targets

NUM_CLASSES, SIZE, CHANNELS, KEYPOINTS = 5, 64, 32, 3
Batch = Tuple[List[Tensor], List[Dict[str, Tensor]]]


def retinanet() -> nn.Module:
    return RetinaNet(_backbone(), NUM_CLASSES, anchor_generator=_anchors(16, 24), **_SIZES)


def fcos() -> nn.Module:
    return FCOS(_backbone(), NUM_CLASSES, anchor_generator=_anchors(8), center_sampling_radius=1.5, **_SIZES)


def faster_rcnn() -> nn.Module:
    return FasterRCNN(_backbone(), NUM_CLASSES, **_two_stages())


def mask_rcnn() -> nn.Module:
    return MaskRCNN(_backbone(), NUM_CLASSES, mask_roi_pool=_pool(14), **_two_stages())


def keypoint_rcnn() -> nn.Module:
    heads = dict(
        keypoint_head=KeypointRCNNHeads(CHANNELS, (CHANNELS,)),
        keypoint_predictor=KeypointRCNNPredictor(CHANNELS, KEYPOINTS),
    )
    return KeypointRCNN(_backbone(), NUM_CLASSES, keypoint_roi_pool=_pool(14), **heads, **_two_stages())


def ssdlite() -> nn.Module:
    return ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=NUM_CLASSES)


#: As docs/recipes.md names them.
DETECTORS: Dict[str, Callable[[], nn.Module]] = {
    'RetinaNet': retinanet,
    'FCOS': fcos,
    'Faster R-CNN': faster_rcnn,
    'Mask R-CNN': mask_rcnn,
    'Keypoint R-CNN': keypoint_rcnn,
    'SSD': ssdlite,
}
_SIZES = dict(min_size=SIZE, max_size=SIZE)


def _backbone() -> nn.Module:
    layers = nn.Sequential(nn.Conv2d(3, CHANNELS, 8, 8), nn.ReLU())
    layers.out_channels = CHANNELS
    return layers


def _anchors(*sizes: int) -> AnchorGenerator:
    return AnchorGenerator(sizes=(sizes,), aspect_ratios=((1.0,),))


def _pool(size: int) -> MultiScaleRoIAlign:
    return MultiScaleRoIAlign(featmap_names=['0'], output_size=size, sampling_ratio=2)


def _two_stages() -> Dict[str, Any]:
    few = dict(rpn_post_nms_top_n_train=50, box_batch_size_per_image=16)
    return dict(rpn_anchor_generator=_anchors(16, 24), box_roi_pool=_pool(7), **few, **_SIZES)


def batch(*labels: List[int]) -> Batch:
    """One image per list, with one instance per label: box, mask, keypoints, and what evaluation reads."""
    generator = torch.Generator().manual_seed(0)
    images, targets = [], []
    for number, one in enumerate(labels):
        corner = torch.randint(0, 40, (len(one), 2), generator=generator)
        masks = torch.zeros(len(one), SIZE, SIZE, dtype=torch.uint8)
        for mask, (x, y) in zip(masks, corner.tolist()):
            mask[y : y + 20, x : x + 20] = 1
        points = corner[:, None] + torch.tensor([[4, 4], [10, 10], [16, 8]])
        images.append(torch.rand(3, SIZE, SIZE, generator=generator))
        targets.append(
            {
                'boxes': torch.cat([corner, corner + 20], 1).float(),
                'labels': torch.tensor(one, dtype=torch.int64),
                'masks': masks,
                'keypoints': torch.cat([points, torch.ones(len(one), KEYPOINTS, 1)], 2),
                'area': torch.full((len(one),), 400.0),
                'iscrowd': torch.zeros(len(one), dtype=torch.int64),
                'image_id': torch.tensor([number]),
            }
        )
    return images, targets


def step(detector: str, images: List[Tensor], targets: List[Dict[str, Tensor]]) -> Dict[str, Tensor]:
    """Losses and gradients of a fresh model, always the same one; it samples anchors by torch's generator."""
    torch.manual_seed(0)
    model = DETECTORS[detector]().train()
    losses = model(images, targets)
    sum(losses.values()).backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    return {**{name: loss.detach() for name, loss in losses.items()}, **gradients}


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


def picked(target: Dict[str, Tensor], places: List[int]) -> Dict[str, Tensor]:
    return {name: value if name == 'image_id' else value[places] for name, value in target.items()}


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
