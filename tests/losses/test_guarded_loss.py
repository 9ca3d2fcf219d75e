"""Every wrapped loss: equal to the bare one on valid labels, safe on all others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gradients import value_and_grad
from loss_cases import assert_equal
from torch import Tensor
from wrapped_cases import ALL, BINARY, FOCAL, MULTI_CLASS, batch, build, one_hot

from mmguard import LabelGuardError
from mmguard.losses.mmseg import GuardedLoss

NAMES = pytest.mark.parametrize('name', ALL)
INVALID = (3, 19, 254, -1, -100, 2**40, -(2**40))


def bare(name: str, scores: Tensor, label: Tensor) -> Any:
    """The stock loss; FocalLoss fails on class indices without CUDA, so it gets the one-hot target."""
    loss = build(name)
    if name not in FOCAL:
        return value_and_grad(loss, scores, label)
    keep = (label != 255).float().flatten()
    loss, grad = value_and_grad(loss, scores, one_hot(label), keep, ignore_index=-1)
    return loss, grad


@NAMES
def test_valid_labels_give_the_bare_loss(name: str) -> None:
    for seed in range(3):
        scores, label = batch(name, seed=seed)
        assert_equal(value_and_grad(GuardedLoss(build(name)), scores, label), bare(name, scores, label), name)


@NAMES
def test_some_ignored_pixels_give_the_bare_loss(name: str) -> None:
    scores, label = batch(name)
    label[:, 1, 2:] = 255
    assert_equal(value_and_grad(GuardedLoss(build(name)), scores, label), bare(name, scores, label), name)


@pytest.mark.parametrize('name', [name for name in ALL if 'boundary' not in name])
def test_invalid_columns_might_as_well_not_be_there(name: str) -> None:
    """On maps of one row, pixels can really be deleted."""
    scores, label = batch(name, height=1, width=12)
    kept = torch.tensor([0, 1, 3, 4, 6, 7, 11])
    gone = torch.tensor([2, 5, 8, 9, 10])
    expected = bare(name, scores[..., kept], label[..., kept])
    for invalid in INVALID:
        label[..., gone] = invalid
        guarded = GuardedLoss(build(name))
        if 'none' in name and name in FOCAL:
            loss = guarded(scores, label)
            assert loss[..., gone].eq(0).all()
            torch.testing.assert_close(loss[..., kept], expected[0])
            continue
        loss, grad = value_and_grad(guarded, scores, label)
        assert_equal((loss, grad[..., kept]), expected, (name, invalid))
        assert grad[..., gone].eq(0).all()
        assert guarded.take_counts().tolist() == [24, 10, 0]


def test_invalid_columns_of_an_edge_map() -> None:
    scores, label = batch('boundary', height=1, width=12)
    kept, gone = torch.tensor([0, 1, 3, 4, 6, 7, 11]), torch.tensor([2, 5, 8, 9, 10])
    expected = bare('boundary', scores[..., kept], label[..., kept])
    label[..., gone] = 7
    loss, grad = value_and_grad(GuardedLoss(build('boundary')), scores, label)
    assert_equal((loss, grad[..., kept]), expected)
    assert grad[..., gone].eq(0).all()


@NAMES
def test_invalid_pixels_anywhere_get_no_gradient(name: str) -> None:
    scores, label = batch(name)
    invalid = torch.zeros(label.shape, dtype=torch.bool)
    invalid[0, 0], invalid[1, 2:, 1] = True, True
    for value in INVALID:
        _, grad = value_and_grad(GuardedLoss(build(name)), scores, label.masked_fill(invalid, value))
        assert grad.isfinite().all()
        assert grad.masked_select(invalid.unsqueeze(1)).eq(0).all()
        assert grad.ne(0).any()


@NAMES
@pytest.mark.parametrize('value', [255, 77, -1])
def test_nothing_to_train_on(name: str, value: int) -> None:
    """F6: stock OHEM gives a constant without a graph, Lovasz fails, others NaN or 1."""
    scores, label = batch(name)
    guarded = GuardedLoss(build(name))
    loss, grad = value_and_grad(guarded, scores, label.fill_(value))
    assert loss.eq(0).all()
    assert grad.eq(0).all()
    assert guarded.take_counts().tolist() == [48, 0 if value == 255 else 48, 0]


@NAMES
def test_one_image_without_a_label(name: str) -> None:
    scores, label = batch(name)
    for value in (255, 77):
        label[1] = value
        loss, grad = value_and_grad(GuardedLoss(build(name)), scores, label)
        assert loss.isfinite().all()
        assert grad.isfinite().all()
        assert grad[0].ne(0).any()


@NAMES
@pytest.mark.parametrize('around', [255, 77])
def test_one_valid_pixel(name: str, around: int) -> None:
    for place in ((0, 0, 0), (1, 3, 5)):
        for value in (0, 1):
            scores, label = batch(name)
            label.fill_(around)[place] = value
            loss, grad = value_and_grad(GuardedLoss(build(name)), scores, label)
            assert loss.isfinite().all()
            assert grad.isfinite().all()


@NAMES
@pytest.mark.parametrize('images', [0, 1])
def test_small_batches(name: str, images: int) -> None:
    scores, label = batch(name, images=images, height=1, width=1)
    loss, grad = value_and_grad(GuardedLoss(build(name)), scores, label)
    assert loss.isfinite().all()
    assert grad.isfinite().all()
    if images == 0:
        assert loss.sum() == 0


@NAMES
@pytest.mark.parametrize('dtype', [torch.uint8, torch.int16, torch.int32])
def test_labels_of_other_dtypes(name: str, dtype: torch.dtype) -> None:
    scores, label = batch(name)
    label[0, 0] = 100
    expected = value_and_grad(GuardedLoss(build(name)), scores, label)
    assert_equal(value_and_grad(GuardedLoss(build(name)), scores, label.to(dtype)), expected)


@NAMES
def test_layouts(name: str) -> None:
    scores, label = batch(name)
    label[0, 0] = 100
    expected = value_and_grad(GuardedLoss(build(name)), scores, label)
    transposed = label.mT.contiguous().mT
    assert not transposed.is_contiguous()
    laid_out = scores.to(memory_format=torch.channels_last)
    loss, grad = value_and_grad(GuardedLoss(build(name)), laid_out, transposed)
    assert_equal((loss, grad.contiguous()), expected)


@NAMES
def test_clip(name: str) -> None:
    scores, label = batch(name)
    label[0, 0, :3], label[1, 1, :2] = 99, -3
    highest = 1 if name in BINARY else 2
    guarded = GuardedLoss(build(name), on_invalid='clip')
    assert_equal(value_and_grad(guarded, scores, label), bare(name, scores, label.clamp(0, highest)), name)
    assert guarded.take_counts().tolist() == [48, 0, 5]


@NAMES
def test_raise(name: str) -> None:
    scores, label = batch(name)
    guarded = GuardedLoss(build(name), on_invalid='raise')
    guarded.sources = ['a.png', 'b.png']
    assert_equal(value_and_grad(guarded, scores, label), bare(name, scores, label))
    label[1, 0, 4:] = 99
    with pytest.raises(LabelGuardError, match=r'b\.png') as caught:
        guarded(scores, label)
    assert caught.value.tallies[0].values == {99: 2}
    assert caught.value.positions == [(1, 0, 4), (1, 0, 5)]


@NAMES
def test_ignore_index_of_the_head(name: str) -> None:
    """Heads pass ignore_index; what the loss itself ignores is another number, or has another name."""
    scores, label = batch(name)
    expected = bare(name, scores, label.masked_fill(label == label[0, 0, 0], 255))
    own = int(label[0, 0, 0])
    guarded = GuardedLoss(build(name))
    assert_equal(value_and_grad(guarded, scores, label, weight=None, ignore_index=own), expected, 'a class')
    far = label.masked_fill(label == own, 200)
    assert_equal(value_and_grad(guarded, scores, far, weight=None, ignore_index=200), expected, 'no class')
    assert_equal(value_and_grad(GuardedLoss(build(name), ignore_index=200), scores, far), expected, 'constructor')
    assert guarded.take_counts()[1:].tolist() == [0, 0]


@NAMES
def test_counters_look_away_under_no_grad(name: str) -> None:
    scores, label = batch(name)
    guarded = GuardedLoss(build(name))
    with torch.no_grad():
        guarded(scores, label.fill_(9))
    assert guarded.take_counts() is None


@pytest.mark.parametrize('name', MULTI_CLASS)
def test_fewer_classes_than_channels(name: str) -> None:
    """The class 2 has a channel, but is none of two classes."""
    scores, label = batch(name, images=1, height=1, width=12)
    gone = label[0, 0] == 2
    label[..., :2][label[..., :2] != 2] = 255
    guarded = GuardedLoss(build(name), num_classes=2)
    loss, grad = value_and_grad(guarded, scores, label)
    assert guarded.take_counts().tolist() == [12, int(gone.sum()), 0]
    assert_equal((loss, grad[..., ~gone]), bare(name, scores[..., ~gone], label[..., ~gone]))
    assert grad[..., gone].eq(0).all()


@NAMES
def test_more_classes_than_channels(name: str) -> None:
    scores, label = batch(name)
    with pytest.raises(ValueError, match=r'num_classes=19.*\b[23]\b'):
        GuardedLoss(build(name), num_classes=19)(scores, label)


@NAMES
def test_wrong_shapes_and_dtypes(name: str) -> None:
    scores, label = batch(name)
    guarded = GuardedLoss(build(name))
    with pytest.raises(ValueError, match=r'\(2, 4, 5\)'):
        guarded(scores, label[..., :5])
    with pytest.raises((ValueError, TypeError), match=r'torch\.float32'):
        guarded(scores, label.float())
