"""check_target: what is wrong with a batch, or with a loss of somebody's own, and what to write instead."""

from __future__ import annotations

import re
from typing import Any, Callable, List

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_cases import STABLE

from mmguard import LabelGuardError
from mmguard.functional import binary_cross_entropy_with_logits, check_target, cross_entropy

GENERATOR = torch.Generator().manual_seed(0)
LABEL = torch.randint(0, 3, (2, 16, 16), generator=GENERATOR)
MASK = (torch.rand((2, 16, 16), generator=GENERATOR) > 0.5).long()


def scores(classes: int, like: Tensor = LABEL) -> Tensor:
    return torch.zeros(like.shape[0], classes, *like.shape[1:])


def refused(logits: Tensor, target: Tensor, error: Any = LabelGuardError, **options: Any) -> str:
    with pytest.raises(error) as caught:
        check_target(logits, target, **options)
    return str(caught.value)


def blob(top: float, size: int = 32) -> Tensor:
    """A round mask of 0 and ``top``, made larger by interpolation."""
    y, x = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing='ij')
    small = ((y - 4) ** 2 + (x - 4) ** 2 < 9).double() * top
    return F.interpolate(small[None, None], size=(size, size), mode='bilinear')[:, 0]


def test_valid_targets_pass() -> None:
    check_target(scores(3), LABEL)
    check_target(scores(3), LABEL.byte(), torch.ones(3))
    check_target(scores(3), LABEL.masked_fill(MASK == 1, 255), ignore_index=255)
    check_target(scores(3), torch.rand(2, 3, 16, 16).softmax(1))
    check_target(torch.zeros(3), torch.tensor(1))
    check_target(torch.zeros(4, 3), torch.rand(4, 3), kind='multilabel')
    check_target(torch.zeros(4, 3), torch.tensor([[0.0, 1.0, -1.0]] * 4), ignore_index=-1, kind='multilabel')
    nan = float('nan')
    check_target(torch.zeros(4, 3), torch.tensor([[0.0, 1.0, nan]] * 4), ignore_index=nan, kind='multilabel')


@pytest.mark.parametrize(
    ('classes', 'target', 'code'),
    [
        (3, LABEL + 1, 'MG115'),
        (2, MASK * 255, 'MG103'),
        (3, LABEL.masked_fill(MASK == 1, 255), 'MG104'),
        (3, LABEL - 1, 'MG105'),
        (3, LABEL.masked_fill(MASK == 1, 3), 'MG102'),
        (3, LABEL * 120, 'MG125'),
        (12, MASK * 128, 'MG121'),
        (21, LABEL * 64, 'MG121'),
        (4, MASK * 128, 'MG125'),
        (2, blob(255).round().long(), 'MG136'),
        (3, LABEL + 2 * MASK, 'MG107'),
        (3, LABEL + 90_000 * MASK, 'MG137'),
    ],
)
def test_causes(classes: int, target: Tensor, code: str) -> None:
    assert re.findall(r'\bMG\d+', refused(scores(classes, target), target))[0] == code


def test_what_the_error_holds() -> None:
    target = LABEL.clone()
    target[1, 3, 4:6] = 77
    with pytest.raises(LabelGuardError) as caught:
        check_target(scores(3), target)
    assert caught.value.positions == [(1, 3, 4), (1, 3, 5)]
    assert (caught.value.tallies[0].total, caught.value.tallies[0].values) == (512, {77: 2})


def test_every_target_is_ignored() -> None:
    target = torch.full_like(LABEL, 255)
    assert F.cross_entropy(scores(3), target, ignore_index=255).isnan()
    refused(scores(3), target, ignore_index=255)
    refused(torch.zeros(0, 3), torch.zeros(0).long())


@pytest.mark.parametrize('row', [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 2.0, 0.5], [0.9, 0.9, 0.9]])
def test_probabilities(row: List[float]) -> None:
    with pytest.raises(LabelGuardError) as caught:
        check_target(torch.zeros(2, 3), torch.tensor([[0.0, 1.0, 0.0], row]))
    assert (caught.value.positions, caught.value.tallies[0].total) == ([(1,)], 2)


@pytest.mark.parametrize('value', [255.0, -1.0, float('nan'), 3.0, 1.7])
def test_multilabel(value: float) -> None:
    with pytest.raises(LabelGuardError) as caught:
        check_target(torch.zeros(1, 3), torch.tensor([[0.0, 1.0, value]]), kind='multilabel')
    assert caught.value.positions == [(0, 2)]


@STABLE
@given(st.lists(st.integers(-3, 6) | st.sampled_from([255, 2**40]), min_size=1, max_size=8), st.integers(1, 5))
def test_it_raises_exactly_where_something_is_wrong(values: list, classes: int) -> None:
    """And says as many as the loss counts."""
    target = torch.tensor(values)
    logits = torch.zeros(len(values), classes)
    _, counts = cross_entropy(logits, target, ignore_index=255, return_tally=True)
    if classes == 1:
        refused(logits, target, ValueError, ignore_index=255)
    elif counts[1] or (target == 255).all():
        with pytest.raises(LabelGuardError) as caught:
            check_target(logits, target, ignore_index=255)
        assert caught.value.tallies[0].skipped == counts[1]
    else:
        check_target(logits, target, ignore_index=255)
        assert F.cross_entropy(logits, target, ignore_index=255).isfinite()


OF_LOSSES = torch.Generator().manual_seed(3)
VOID = 255
WITH_VOID = torch.randint(0, 4, (2, 8, 8), generator=OF_LOSSES).masked_fill(torch.arange(8) < 2, VOID)
LOGITS = torch.randn(2, 4, 8, 8, generator=OF_LOSSES)
YES = torch.randint(0, 2, (2, 1, 8, 8), generator=OF_LOSSES).float().masked_fill(torch.arange(8) < 2, -1)


def dice_one_hot_first(logits: Tensor, target: Tensor) -> Tensor:
    """As PaddleSeg had it: ignored labels are one-hot encoded, and masked afterwards."""
    one_hot = F.one_hot(target, logits.shape[1]).movedim(-1, 1)
    probs, mask = logits.softmax(1), (target != VOID).unsqueeze(1)
    return 1 - (2 * (probs * one_hot * mask).sum() + 1) / (((probs + one_hot) * mask).sum() + 1)


def dice_masked_first(logits: Tensor, target: Tensor) -> Tensor:
    valid = target != VOID
    one_hot = F.one_hot(target.masked_fill(~valid, 0), logits.shape[1]).movedim(-1, 1)
    probs = logits.softmax(1) * valid.unsqueeze(1)
    return 1 - (2 * (probs * one_hot).sum() + 1) / ((probs + one_hot * valid.unsqueeze(1)).sum() + 1)


def dice_clamped(logits: Tensor, target: Tensor) -> Tensor:
    """Does not fail: the ignored label becomes the last class."""
    one_hot = F.one_hot(target.clamp(max=logits.shape[1] - 1), logits.shape[1]).movedim(-1, 1)
    return 1 - 2 * (logits.softmax(1) * one_hot).sum() / (logits.softmax(1) + one_hot).sum()


def weights_looked_up(logits: Tensor, target: Tensor) -> Tensor:
    return (torch.ones(4)[target] * F.cross_entropy(logits, target, ignore_index=VOID, reduction='none')).mean()


def highest_label(logits: Tensor, target: Tensor) -> str:
    """A metric, as torchmetrics checks its input."""
    if target.max() >= logits.shape[1]:
        raise ValueError('The highest label in `target` should be smaller than `num_classes`.')
    return 'updated'


def smooth(logits: Tensor, target: Tensor) -> Tensor:
    """A focal loss whose ignore_index zeroes the modulation alone."""
    log = logits.log_softmax(1)
    picked = log.gather(1, target.masked_fill(target == VOID, 0).unsqueeze(1)).squeeze(1)
    return -((1 - picked.exp()).masked_fill(target == VOID, 1) ** 2 * picked).mean()


@pytest.mark.parametrize(
    'loss', [dice_one_hot_first, weights_looked_up, highest_label, dice_clamped, smooth, torch.nn.CrossEntropyLoss()]
)
def test_a_loss_that_does_not_leave_out_what_is_ignored(loss: Callable[[Tensor, Tensor], Any]) -> None:
    with pytest.raises(ValueError, match=rf'{getattr(loss, "__name__", type(loss).__name__)}.*\b255\b'):
        check_target(LOGITS, WITH_VOID, ignore_index=VOID, loss=loss)


@pytest.mark.parametrize(
    'loss',
    [
        torch.nn.CrossEntropyLoss(ignore_index=VOID),
        torch.nn.CrossEntropyLoss(ignore_index=VOID, reduction='none', label_smoothing=0.1),
        dice_masked_first,
        lambda logits, target: logits.argmax(1).eq(target)[target != VOID].float().mean(),
        lambda logits, target: 0.0,
    ],
)
def test_a_loss_that_does_passes(loss: Callable[[Tensor, Tensor], Any]) -> None:
    assert '128' in check_target(LOGITS, WITH_VOID, ignore_index=VOID, loss=loss)


def test_binary_targets() -> None:
    check_target(
        LOGITS[:, :1], YES, ignore_index=-1, loss=lambda x, y: binary_cross_entropy_with_logits(x, y, ignore_index=-1)
    )
    for ignored in (-1, float('nan')):
        target = YES.masked_fill(YES == -1, ignored)
        with pytest.raises(ValueError, match=rf'32 of 32.*\({ignored}\)'):
            check_target(LOGITS[:, :1], target, ignore_index=ignored, loss=F.binary_cross_entropy_with_logits)


def test_the_error_of_a_loss_that_fails_on_any_target_is_its_own() -> None:
    def broken(logits: Tensor, target: Tensor) -> Tensor:
        raise KeyError('decode.loss_ce')

    with pytest.raises(KeyError, match=r'decode\.loss_ce'):
        check_target(LOGITS, WITH_VOID, ignore_index=VOID, loss=broken)
    with pytest.raises(KeyError, match=r'decode\.loss_ce'):
        check_target(LOGITS, WITH_VOID.masked_fill(WITH_VOID == VOID, 0), ignore_index=VOID, loss=broken)


def test_nothing_of_the_model_is_touched() -> None:
    weight = torch.ones(4, requires_grad=True)
    logits = LOGITS * weight.view(1, -1, 1, 1)
    check_target(logits, WITH_VOID, ignore_index=VOID, loss=torch.nn.CrossEntropyLoss(ignore_index=VOID))
    assert weight.grad is None
