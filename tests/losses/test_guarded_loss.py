"""Every wrapped loss: equal to the bare one on valid labels, safe on all others."""

from __future__ import annotations

from typing import Any, Callable, Dict

import pytest
import torch
from loss_cases import assert_equal
from loss_checks import value_and_grad
from torch import Tensor, nn
from torch.nn import functional as F
from wrapped_cases import ALL, BINARY, FOCAL, MULTI_CLASS, batch, build, one_hot

from mmguard import LabelGuardError
from mmguard.losses.mmdet import GuardedCrossEntropyLoss as MMDetCrossEntropy
from mmguard.losses.mmseg import GuardedCrossEntropyLoss, GuardedLoss

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
        label[:, 1, 2:] = 255
        assert_equal(value_and_grad(GuardedLoss(build(name)), scores, label), bare(name, scores, label), name)


@NAMES
def test_invalid_columns_might_as_well_not_be_there(name: str) -> None:
    """On maps of one row, pixels can really be deleted."""
    scores, label = batch(name, height=1, width=12)
    kept = torch.tensor([0, 1, 3, 4, 6, 7, 11])
    gone = torch.tensor([2, 5, 8, 9, 10])
    expected = bare(name, scores[..., kept], label[..., kept])
    for invalid in INVALID if name != 'boundary' else (7,):
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


ODD_BATCHES: Dict[str, Callable[[Tensor], Any]] = {
    'an image without a label': lambda label: label[1].fill_(255),
    'an image of invalid labels': lambda label: label[1].fill_(77),
    'one pixel that is not ignored': lambda label: label.fill_(255)[0, 0, 0].fill_(0),
    'one pixel that is valid': lambda label: label.fill_(77)[1, 3, 5].fill_(1),
}


@NAMES
@pytest.mark.parametrize('odd', ODD_BATCHES)
def test_an_odd_batch_has_a_finite_loss_and_gradient(name: str, odd: str) -> None:
    scores, label = batch(name)
    ODD_BATCHES[odd](label)
    loss, grad = value_and_grad(GuardedLoss(build(name)), scores, label)
    assert loss.isfinite().all()
    assert grad.isfinite().all()
    assert grad[0].ne(0).any() or 'image' not in odd


@NAMES
def test_a_batch_of_one_pixel_and_of_none(name: str) -> None:
    for images in (0, 1):
        scores, label = batch(name, images=images, height=1, width=1)
        loss, grad = value_and_grad(GuardedLoss(build(name)), scores, label)
        assert loss.isfinite().all()
        assert grad.isfinite().all()
        assert images or loss.sum() == 0


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


class OwnLoss(nn.Module):
    def forward(self, pred: Tensor, target: Tensor, ignore_index: int = 255, power: float = 1.0) -> Tensor:
        return F.cross_entropy(pred, target, ignore_index=ignore_index) ** power


@pytest.mark.parametrize('name', ['focal', 'dice, sigmoid', 'dice, softmax', 'own'])
def test_ignore_index_by_position(name: str) -> None:
    loss, between = (OwnLoss(), ()) if name == 'own' else (build(name), (None, None, None))
    scores, label = batch('focal' if name == 'own' else name)
    label[0, 0] = 200
    by_name, by_position = GuardedLoss(loss), GuardedLoss(loss)
    expected = value_and_grad(by_name, scores, label, ignore_index=200, **({'power': 2.0} if name == 'own' else {}))
    more = (200, 2.0) if name == 'own' else (200,)
    assert_equal(value_and_grad(by_position, scores, label, *between, *more), expected, name)
    taken = [loss.take_counts() for loss in (by_name, by_position)]
    assert [None if counts is None else counts.tolist()[1] for counts in taken] == [0, 0]


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


ODD = pytest.mark.parametrize('odd', [float('nan'), float('inf'), -float('inf')])


def spoilt(scores: Tensor, where: Tensor, odd: float) -> Tensor:
    return scores.movedim(1, -1).masked_fill(where.unsqueeze(-1), odd).movedim(-1, 1)


@ODD
@pytest.mark.parametrize('name', ALL)
def test_at_invalid_labels_of_a_wrapped_loss(name: str, odd: float) -> None:
    scores, label = batch(name)
    invalid = torch.rand(label.shape) < 0.3
    label = label.masked_fill(invalid, 77)
    loss = GuardedLoss(build(name))
    value, grad = value_and_grad(loss, spoilt(scores, invalid, odd), label)
    assert spoilt(grad, ~invalid, 0.0).eq(0).all()
    expected, expected_grad = value_and_grad(loss, scores, label)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(grad, expected_grad)


@pytest.mark.parametrize('name', ALL)
def test_at_valid_labels_a_wrapped_loss_shows_them(name: str) -> None:
    scores, label = batch(name)
    scores[0, :, 1, 2] = float('nan')
    _, grad = value_and_grad(GuardedLoss(build(name)), scores, label)
    _, stock = value_and_grad(build(name), scores, one_hot(label) if name in FOCAL else label)
    assert stock.isnan().any() or 'binary' in name  # the hinge of NaN has no gradient
    assert grad.isnan().equal(stock.isnan())


@ODD
@pytest.mark.parametrize('loss', [GuardedCrossEntropyLoss, MMDetCrossEntropy])
@pytest.mark.parametrize('weight', [None, [0.5, 1.0, 2.0]])
def test_at_invalid_labels_of_sigmoid_cross_entropy(loss: type, weight: object, odd: float) -> None:
    scores, label = batch('ohem')
    invalid = torch.rand(label.shape) < 0.3
    label = label.masked_fill(invalid, 77)
    for target in (label, one_hot(label).masked_fill(invalid.unsqueeze(1), 77.0)):
        criterion = loss(use_sigmoid=True, class_weight=weight)
        value, grad = value_and_grad(criterion, spoilt(scores, invalid, odd), target)
        assert spoilt(grad, ~invalid, 0.0).eq(0).all()
        torch.testing.assert_close((value, grad), value_and_grad(criterion, scores, target))
        shown = value_and_grad(criterion, spoilt(scores, ~invalid, float('nan')), target)
        assert shown[0].isnan()
        assert spoilt(shown[1], invalid, float('nan')).isnan().all()


@ODD
def test_at_invalid_instances_of_masks(odd: float) -> None:
    scores, label = torch.randn(4, 3, 5, 6), torch.tensor([0, 80, 2, -1])
    masks = torch.randint(0, 2, (4, 5, 6)).float()
    invalid = torch.tensor([False, True, False, True])
    criterion = MMDetCrossEntropy(use_mask=True)
    expected = value_and_grad(criterion, scores, masks, label)
    scores[invalid], masks[invalid] = odd, float('nan')
    actual = value_and_grad(criterion, scores, masks, label)
    torch.testing.assert_close(actual, expected)
