"""check_target(loss=...): a loss or a metric of somebody's own, and what it makes of ignored elements."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from mmguard.functional import binary_cross_entropy_with_logits, check_target

GENERATOR = torch.Generator().manual_seed(3)
VOID = 255
LABEL = torch.randint(0, 4, (2, 8, 8), generator=GENERATOR).masked_fill(torch.arange(8) < 2, VOID)
LOGITS = torch.randn(2, 4, 8, 8, generator=GENERATOR)
YES = torch.randint(0, 2, (2, 1, 8, 8), generator=GENERATOR).float().masked_fill(torch.arange(8) < 2, -1)


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
        check_target(LOGITS, LABEL, ignore_index=VOID, loss=loss)


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
    assert '128' in check_target(LOGITS, LABEL, ignore_index=VOID, loss=loss)


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
        check_target(LOGITS, LABEL, ignore_index=VOID, loss=broken)
    with pytest.raises(KeyError, match=r'decode\.loss_ce'):
        check_target(LOGITS, LABEL.masked_fill(LABEL == VOID, 0), ignore_index=VOID, loss=broken)


def test_nothing_of_the_model_is_touched() -> None:
    weight = torch.ones(4, requires_grad=True)
    logits = LOGITS * weight.view(1, -1, 1, 1)
    check_target(logits, LABEL, ignore_index=VOID, loss=torch.nn.CrossEntropyLoss(ignore_index=VOID))
    assert weight.grad is None
