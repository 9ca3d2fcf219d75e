"""Guarded losses inside mmdet's real heads, through their real ``loss``."""

from __future__ import annotations

import pytest
import torch
from factors import factor_left
from head_cases import CLASSES, HEADS, INVALID, Calls, counts_of, data_for, pair_of, samples, trained
from mmdet.models.losses import QualityFocalLoss

NAMES = pytest.mark.parametrize('name', HEADS)


@NAMES
def test_clean_labels_give_the_stock_head(name: str) -> None:
    bare, guarded = pair_of(name)
    data = data_for(name)
    for _ in range(2):
        expected, actual = trained(bare, name, data), trained(guarded, name, data)
        assert actual[0].keys() == expected[0].keys()
        torch.testing.assert_close(actual[0], expected[0], rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(actual[1], expected[1], rtol=1e-5, atol=1e-6)
    assert counts_of(guarded)[1:] == [0, 0]
    buffers = dict(bare.named_buffers())
    for what, buffer in guarded.named_buffers():
        stock_name = what.replace('loss_cls.loss.', 'loss_cls.')
        if stock_name in buffers:
            torch.testing.assert_close(buffer, buffers[stock_name])


#: What stock does today with a label above the classes, on the CPU; on a GPU an IndexError is a device-side assert.
FAILS = {
    'RetinaHead, FocalLoss': RuntimeError,
    'FCOSHead, FocalLoss': RuntimeError,
    'FCOSHead, FocalCustomLoss': RuntimeError,
    'Shared2FCBBoxHead, softmax': IndexError,
    'Shared2FCBBoxHead, SeesawLoss': IndexError,
    'Shared2FCBBoxHead, EQLV2Loss': IndexError,
    'Shared2FCBBoxHead, CrossEntropyCustomLoss': IndexError,
}
TRAINS_AS_BACKGROUND = ('RetinaHead, GHMC', 'GFLHead, QualityFocalLoss', 'RPNHead, sigmoid')


@pytest.mark.parametrize('name', FAILS)
def test_stock_fails_on_a_label_above_the_classes(name: str) -> None:
    bare, _ = pair_of(name)
    with pytest.raises(FAILS[name]):
        trained(bare, name, data_for(name, INVALID))


@pytest.mark.parametrize('name', TRAINS_AS_BACKGROUND)
def test_stock_trains_a_label_above_the_classes_as_background(name: str) -> None:
    """To it the box might as well carry the label of the background."""
    bare, guarded = pair_of(name)
    background = trained(bare, name, data_for(name, CLASSES))
    bare, _ = pair_of(name)
    losses, grads = trained(bare, name, data_for(name, INVALID))
    torch.testing.assert_close(losses, background[0])
    torch.testing.assert_close(grads, background[1])
    ours, _ = trained(guarded, name, data_for(name, INVALID))
    assert any((ours[what] - losses[what]).abs() > 1e-3 for what in losses if '_cls' in what)


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


@pytest.mark.parametrize('name', [name for name in HEADS if name.startswith('DETR')])
def test_detr_fails_before_any_loss(name: str) -> None:
    """Its matcher gathers scores by label: only the pipeline can protect it."""
    for head in pair_of(name):
        with pytest.raises(IndexError):
            trained(head, name, data_for(name, INVALID))


def test_detr_hands_a_pair_to_a_guarded_quality_focal_loss() -> None:
    _, guarded = pair_of('DETRHead, QualityFocalLoss')
    assert isinstance(guarded.loss_cls, QualityFocalLoss)
    calls = Calls(guarded.loss_cls)
    trained(guarded, 'DETRHead, QualityFocalLoss', samples())
    assert all(isinstance(args[1], tuple) for args, _, _ in calls.seen)


@pytest.mark.parametrize('name', [name for name in HEADS if not name.startswith('DETR')])
def test_every_label_invalid(name: str) -> None:
    """Every parameter still gets a gradient, or DDP would wait."""
    _, guarded = pair_of(name)
    data = samples(((INVALID, INVALID), (INVALID,)), 'Shared' in name)
    losses, grads = trained(guarded, name, data)
    assert all(part.isfinite().all() for part in losses.values())
    assert all(grad.isfinite().all() for grad in grads)
