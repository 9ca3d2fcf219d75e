"""mmdet's TripletLoss: no label is left out by it, and all that are would be one person."""

from __future__ import annotations

from typing import List

import pytest
import torch
from loss_cases import assert_equal, value_and_grad
from mmdet.models.losses import TripletLoss
from torch import Tensor

from mmguard import LabelGuardError
from mmguard.losses.mmdet import GuardedLoss

IDENTITIES = [0, 0, 1, 1, 2, 2, 1, 0]


def features(number: int = len(IDENTITIES)) -> Tensor:
    return torch.randn(number, 5, generator=torch.Generator().manual_seed(0))


def planted(invalid: List[int]) -> Tensor:
    """The last images get other labels."""
    return torch.tensor([*IDENTITIES[: len(IDENTITIES) - len(invalid)], *invalid])


def test_valid_identities_give_the_stock_loss() -> None:
    for labels in (IDENTITIES, [7, 7, 900, 900, 3, 3, 3, 2**40]):  # any integer from 0 on is an identity
        label = torch.tensor(labels)
        guarded, stock = (
            value_and_grad(loss, features(), label) for loss in (GuardedLoss(TripletLoss()), TripletLoss())
        )
        assert_equal(guarded, stock)


@pytest.mark.parametrize('invalid', [[-100, -100], [-1, -100], [4, 5, -1], [4]], ids=str)
def test_images_without_an_identity_are_deleted(invalid: List[int]) -> None:
    """Stock makes one person of all that have -100, and compares the others with it."""
    kept = len(IDENTITIES) - len(invalid)
    label = planted(invalid)
    loss, gradient = value_and_grad(GuardedLoss(TripletLoss(), num_classes=4), features(), label)
    wanted, wanted_gradient = value_and_grad(TripletLoss(), features()[:kept], label[:kept])
    torch.testing.assert_close(loss, wanted)
    torch.testing.assert_close(gradient[:kept], wanted_gradient)
    assert not gradient[kept:].any()
    assert value_and_grad(TripletLoss(), features(), label)[0] != loss


@pytest.mark.parametrize('labels', [[-100, -100, -1], [1, 1, -100], [-1, 2, -1]], ids=str)
def test_where_nothing_is_left_to_compare_the_loss_is_0(labels: List[int]) -> None:
    loss, gradient = value_and_grad(GuardedLoss(TripletLoss()), features(3), torch.tensor(labels))
    assert loss == 0
    assert not gradient.any()


def test_one_person_alone_is_refused_as_by_stock() -> None:
    label = torch.zeros(4, dtype=torch.long)
    for loss in (TripletLoss(), GuardedLoss(TripletLoss())):
        with pytest.raises(RuntimeError, match='numel'):
            loss(features(4), label)


def test_what_is_ignored_is_no_offence() -> None:
    loss = GuardedLoss(TripletLoss(), num_classes=4)
    loss(features(), planted([-100, -1, 4]))
    assert loss.take_counts().tolist() == [8, 2, 0]
    with pytest.raises(LabelGuardError, match=r'Valid are 0\.\.3 or ignore_index=-100'):
        GuardedLoss(TripletLoss(), num_classes=4, on_invalid='raise')(features(), planted([9]))
