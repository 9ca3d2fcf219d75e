"""Mask mode: one mask per instance and class, against the stock losses."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import pytest
import torch
import torch.nn.functional as F
from gradients import value_and_grad
from loss_cases import CLASS_WEIGHT, CROSS_ENTROPY, assert_equal
from torch import Tensor

pytestmark = pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')


def masks(instances: int = 5, size: Tuple[int, ...] = (3, 6)) -> Tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(instances, 4, *size, generator=generator)
    target = (torch.rand(instances, *size, generator=generator) > 0.5).float()
    return scores, target, torch.randint(0, 4, (instances,), generator=generator)


@pytest.mark.parametrize('scope', CROSS_ENTROPY)
@pytest.mark.parametrize('size', [(3, 6), (2, 3, 4)])
@pytest.mark.parametrize('override', [None, 'mean'])
@pytest.mark.parametrize('avg_non_ignore', [False, True])
def test_equals_stock(scope: str, size: Tuple[int, ...], override: Optional[str], avg_non_ignore: bool) -> None:
    scores, target, label = masks(size=size)
    reduction = 'mean' if override is None else 'none'
    stock, guarded = (
        cls(use_mask=True, loss_weight=0.5, reduction=reduction, avg_non_ignore=avg_non_ignore)
        for cls in CROSS_ENTROPY[scope]
    )
    expected = value_and_grad(stock, scores, target, label, None, override, None)
    actual = value_and_grad(guarded, scores, target, label, None, override, None)
    assert actual[0].shape == expected[0].shape == (1,)
    assert_equal(actual, expected)


@pytest.mark.parametrize('scope', CROSS_ENTROPY)
@pytest.mark.parametrize(
    ('reduction', 'avg_factor', 'override', 'ignore_index'),
    [
        ('none', None, None, None),
        ('sum', None, None, None),
        ('mean', None, 'sum', None),
        ('mean', 3.0, None, None),
        ('mean', torch.tensor(3.0), None, None),
        ('mean', None, None, 255),
    ],
)
def test_same_misuse(
    scope: str, reduction: str, avg_factor: object, override: Optional[str], ignore_index: Optional[int]
) -> None:
    scores, target, label = masks()
    for loss_class in CROSS_ENTROPY[scope]:
        with pytest.raises(AssertionError):
            loss_class(use_mask=True, reduction=reduction)(
                scores, target, label, avg_factor, override, ignore_index=ignore_index
            )


@pytest.mark.parametrize('scope', CROSS_ENTROPY)
def test_class_weight_is_the_one_of_the_instance(scope: str) -> None:
    """Stock broadcasts the class weights along the width of the masks."""
    scores, target, label = masks()
    guarded = CROSS_ENTROPY[scope][1](use_mask=True, class_weight=CLASS_WEIGHT)

    def by_hand(leaf: Tensor) -> Tensor:
        rows = [
            CLASS_WEIGHT[c] * F.binary_cross_entropy_with_logits(leaf[i, c], target[i])
            for i, c in enumerate(label.tolist())
        ]
        return torch.stack(rows).mean()[None]

    assert_equal(value_and_grad(guarded, scores, target, label), value_and_grad(by_hand, scores))


@pytest.mark.parametrize('scope', CROSS_ENTROPY)
@pytest.mark.parametrize('invalid', [4, -1, 255, -(2**40)])
def test_an_instance_of_no_class_counts_as_absent(scope: str, invalid: int) -> None:
    scores, target, label = masks()
    kept = torch.tensor([0, 2, 3])
    stock, guarded = (cls(use_mask=True) for cls in CROSS_ENTROPY[scope])
    expected = value_and_grad(stock, scores[kept], target[kept], label[kept], ignore_index=None)
    label[[1, 4]] = invalid
    loss, grad = value_and_grad(guarded, scores, target, label)
    assert_equal((loss, grad[kept]), expected)
    assert grad[[1, 4]].eq(0).all()
    assert guarded.take_counts().tolist() == [5, 2, 0]


@pytest.mark.parametrize('scope', CROSS_ENTROPY)
@pytest.mark.parametrize('instances', [0, 3])
def test_nothing_to_train_on_gives_zero(scope: str, instances: int) -> None:
    scores, target, label = masks(instances)
    loss, grad = value_and_grad(CROSS_ENTROPY[scope][1](use_mask=True), scores, target, label.fill_(80))
    assert loss.tolist() == [0]
    assert grad.eq(0).all()


def test_the_class_of_each_instance_is_required(refuses: Any) -> None:
    scores, target, label = masks()
    for arguments, error in (
        ((target,), ValueError),
        ((target, label[:4]), ValueError),
        ((target[..., :5], label), ValueError),
        ((target, label.float()), TypeError),
    ):
        with refuses(error):
            CROSS_ENTROPY['mmdet'][1](use_mask=True)(scores, *arguments)
    with refuses(ValueError, match='class_weight'):
        CROSS_ENTROPY['mmdet'][1](use_mask=True, class_weight=[1.0, 2.0])(scores, target, label)
