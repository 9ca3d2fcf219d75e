"""Guarded losses inside mmdet's real heads, also of those that call a loss once per level."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple

import pytest
import torch
from head_cases import (
    ANCHORS,
    CLASSES,
    DENSE,
    FOCAL,
    HEADS,
    INVALID,
    L1,
    MAX_IOU,
    QUALITY,
    Calls,
    counts_of,
    data_for,
    pair_of,
    samples,
    trained,
    wrapped,
)
from loss_cases import EXACT
from loss_checks import factor_left
from mmdet.models.losses import QualityFocalLoss
from mmdet.registry import MODELS
from mmdet.structures import DetDataSample
from mmengine.config import ConfigDict
from mmengine.structures import InstanceData
from torch import Tensor

NAMES = pytest.mark.parametrize('name', HEADS)


@NAMES
def test_clean_labels_give_the_stock_head(name: str) -> None:
    bare, guarded = pair_of(name)
    data = data_for(name)
    for _ in range(2):
        expected, actual = trained(bare, name, data), trained(guarded, name, data)
        assert actual[0].keys() == expected[0].keys()
        torch.testing.assert_close(actual[0], expected[0], rtol=EXACT, atol=EXACT)
        torch.testing.assert_close(actual[1], expected[1], rtol=EXACT, atol=EXACT)
    assert counts_of(guarded)[1:] == [0, 0]
    buffers = dict(bare.named_buffers())
    for what, buffer in guarded.named_buffers():
        stock_name = what.replace('loss_cls.loss.', 'loss_cls.')
        if stock_name in buffers:
            torch.testing.assert_close(buffer, buffers[stock_name], rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize('name', [name for name in HEADS if not name.startswith('DETR')])
def test_the_guarded_head_leaves_the_elements_of_that_label_out(name: str) -> None:
    """Each call equals a stock call with those elements deleted, and taken out of the factor."""
    bare, guarded = pair_of(name)
    owner, bare_owner = (head.bbox_head if 'Shared' in name else head for head in (guarded, bare))
    calls = Calls(owner.loss_cls)
    losses, grads = trained(guarded, name, data_for(name, INVALID))
    assert all(grad.isfinite().all() for grad in grads)
    assert all(part.isfinite().all() for part in losses.values())
    assert counts_of(guarded)[1] > 0
    skipped = 0
    for args, kwargs, result in calls.seen:
        scores, target = args[:2]
        label, *quality = target if isinstance(target, tuple) else (target,)
        weight = args[2] if len(args) > 2 else kwargs.get('weight')
        keep = label != INVALID
        skipped += int((~keep).sum())
        stock_kwargs = {k: v for k, v in kwargs.items() if k != 'weight'}
        if 'GHMC' not in name and 'EQLV2' not in name:
            positives = not name.startswith(('Shared', 'RPN'))
            counted = (label != CLASSES) if positives else torch.ones_like(keep)
            counted = counted & (torch.ones_like(keep) if weight is None else weight != 0)
            numbers = (float((counted & keep).sum()), float(counted.sum()))
            stock_kwargs['avg_factor'] = factor_left(float(kwargs['avg_factor']), *numbers)
        left = tuple(part[keep] for part in (label, *quality))
        kept_weight = None if weight is None else weight[keep]
        expected = bare_owner.loss_cls(scores[keep], left if quality else left[0], kept_weight, **stock_kwargs)
        torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-6)
    assert skipped > 0


def test_the_mask_head_leaves_the_masks_of_that_label_out() -> None:
    name = 'Shared2FCBBoxHead, softmax'
    bare, guarded = pair_of(name)
    calls = Calls(guarded.mask_head.loss_mask)
    trained(guarded, name, data_for(name, INVALID))
    [((scores, masks, label), _, result)] = calls.seen
    keep = label != INVALID
    assert 0 < keep.sum() < len(keep)
    torch.testing.assert_close(result, bare.mask_head.loss_mask(scores[keep], masks[keep], label[keep]))
    with pytest.raises(IndexError):
        bare.mask_head.loss_mask(scores, masks, label)


def test_detr_hands_a_pair_to_a_guarded_quality_focal_loss() -> None:
    _, guarded = pair_of('DETRHead, QualityFocalLoss')
    assert isinstance(guarded.loss_cls, QualityFocalLoss)
    calls = Calls(guarded.loss_cls)
    trained(guarded, 'DETRHead, QualityFocalLoss', samples())
    assert all(isinstance(args[1], tuple) for args, _, _ in calls.seen)


SIZE = 512
STRIDES = [8, 16, 32, 64]
GIOU = {'type': 'GIoULoss', 'loss_weight': 2.0}
NORM = {'norm_cfg': {'type': 'GN', 'num_groups': 2}}
ON_ANCHORS = {'anchor_generator': {**ANCHORS, 'strides': STRIDES, 'ratios': [0.5, 1.0, 2.0]}}
ATSS = {'assigner': {'type': 'ATSSAssigner', 'topk': 9}, 'allowed_border': -1, 'pos_weight': -1}
ON_SQUARES = {'anchor_generator': {**ANCHORS, 'strides': STRIDES, 'octave_base_scale': 8}, 'train_cfg': ATSS, **NORM}
PER_LEVEL: Dict[str, Dict[str, Any]] = {
    'RetinaHead': {
        **ON_ANCHORS,
        'loss_cls': FOCAL,
        'loss_bbox': L1,
        'train_cfg': {
            'assigner': MAX_IOU,
            'sampler': {'type': 'PseudoSampler'},
            'allowed_border': -1,
            'pos_weight': -1,
        },
    },
    'FCOSHead': {
        'strides': STRIDES,
        'regress_ranges': ((-1, 64), (64, 128), (128, 256), (256, 1e8)),
        'loss_cls': FOCAL,
        **NORM,
    },
    'ATSSHead': {**ON_SQUARES, 'loss_cls': FOCAL, 'loss_bbox': GIOU},
    'GFLHead': {**ON_SQUARES, 'loss_cls': QUALITY, 'loss_bbox': GIOU},
    'RTMDetHead': {
        'anchor_generator': {'type': 'MlvlPointGenerator', 'offset': 0, 'strides': STRIDES},
        'bbox_coder': {'type': 'DistancePointBBoxCoder'},
        'with_objectness': False,
        'train_cfg': {
            'assigner': {'type': 'DynamicSoftLabelAssigner', 'topk': 13},
            'allowed_border': -1,
            'pos_weight': -1,
        },
        'loss_cls': QUALITY,
        'loss_bbox': GIOU,
        **NORM,
    },
}
#: The place of the labels in what get_targets returns.
LABELS_AT = {'ATSSHead': 1, 'GFLHead': 1, 'RTMDetHead': 1}


def scene() -> List[DetDataSample]:
    """Two images of many small objects, some larger ones and one that fills most of it."""
    generator = torch.Generator().manual_seed(0)
    made = []
    for _ in range(2):
        boxes = []
        for number, low, high in ((60, 20, 50), (12, 60, 120), (4, 130, 240), (1, 300, 380)):
            extent = low + (high - low) * torch.rand(number, 2, generator=generator)
            corner = (SIZE - extent) * torch.rand(number, 2, generator=generator)
            boxes.append(torch.cat([corner, corner + extent], 1))
        instances = InstanceData(bboxes=torch.cat(boxes))
        instances.labels = torch.randint(0, CLASSES, (len(instances),), generator=generator)
        shape = {'img_shape': (SIZE, SIZE), 'pad_shape': (SIZE, SIZE), 'batch_input_shape': (SIZE, SIZE)}
        made.append(DetDataSample(gt_instances=instances, metainfo={**shape, 'scale_factor': (1.0, 1.0)}))
    return made


class Levels(NamedTuple):
    """The loss of each level (FCOSHead: of all), and the gradients of its scores."""

    losses: List[Tensor]
    grads: List[Tensor]


class Step(NamedTuple):
    """A training step, guarded and by hand, and which share of all positives was left."""

    ours: Levels
    by_hand: Levels
    left: float


def step(name: str, level: int, share: float) -> Step:
    """Gives ``share`` of the positives of ``level`` an invalid label, where the head assigns labels."""
    torch.manual_seed(0)
    config = {**DENSE, **PER_LEVEL[name], 'loss_cls': wrapped(PER_LEVEL[name]['loss_cls'])}
    head: Any = MODELS.build(ConfigDict(type=name, **config))
    calls = Calls(head.loss_cls)
    assign = head.get_targets

    def get_targets(*args: Any, **kwargs: Any) -> Any:
        targets = assign(*args, **kwargs)
        labels = targets[LABELS_AT.get(name, 0)][level]
        positives = (labels < CLASSES).nonzero()
        planted = positives[torch.randperm(len(positives))[: round(share * len(positives))]]
        assert len(planted)
        labels[tuple(planted.t())] = INVALID
        return targets

    head.get_targets = get_targets
    features = [torch.randn(2, 8, SIZE // stride, SIZE // stride) for stride in STRIDES]
    losses = head.loss(features, scene())['loss_cls']
    losses = losses if isinstance(losses, list) else [losses]
    sums, counted, kept = [], 0.0, 0.0
    for args, _, _ in calls.seen:
        label, *quality = args[1] if isinstance(args[1], tuple) else (args[1],)
        keep = label != INVALID
        target = (label[keep], quality[0][keep]) if quality else label[keep]
        weight = args[2][keep] if len(args) > 2 else None
        sums.append(head.loss_cls.loss(args[0][keep], target, weight, reduction_override='sum'))
        # RTMDetHead divides by the qualities of all positives, the others by their number.
        positive = quality[0] if name == 'RTMDetHead' else (label != CLASSES).float()
        counted, kept = counted + float(positive.sum()), kept + float(positive[keep].sum())
    by_hand = [value / max(kept, 1.0) for value in sums]
    scores = [args[0] for args, _, _ in calls.seen]
    assert len(scores) == len(losses)
    return Step(
        Levels(losses, list(torch.autograd.grad(sum(losses), scores, retain_graph=True))),
        Levels(by_hand, list(torch.autograd.grad(sum(by_hand), scores))),
        kept / counted,
    )


@pytest.mark.parametrize('share', [0.01, 0.3, 1.0])
@pytest.mark.parametrize('level', [0, 2])
@pytest.mark.parametrize('name', PER_LEVEL)
def test_a_level_is_divided_by_what_is_left_of_all_levels(name: str, level: int, share: float) -> None:
    """The level with the invalid labels is exact. The others, which cannot know of them, weigh the less by their share:
    within 5 % for up to 5 % of all positives. FCOSHead counts valid labels alone; RTMDetHead divides on its own."""
    taken = step(name, level, share)
    assert taken.ours.losses
    for number, (ours, grad, loss, expected) in enumerate(zip(*taken.ours, *taken.by_hand)):
        knows = name == 'FCOSHead' or (number == level and name != 'RTMDetHead')
        ratio = 1.0 if knows else taken.left
        torch.testing.assert_close(ours, ratio * loss, rtol=1e-4, atol=1e-7)
        torch.testing.assert_close(grad, ratio * expected, rtol=1e-4, atol=1e-8)
