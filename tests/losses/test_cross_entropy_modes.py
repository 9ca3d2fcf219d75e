"""Mask mode, and weights that are broadcast: against the stock losses or their formula."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import pytest
import torch
import torch.nn.functional as F
from loss_cases import CLASS_WEIGHT, CROSS_ENTROPY, assert_equal, assert_same_bits
from loss_checks import value_and_grad
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
    assert_same_bits(actual, expected)


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


SMALLER = [(2, 8, 1), (8, 5), (8, 1), (5,), (1,), (), (2, 1, 1), (1, 1, 5)]
#: mmseg asserts that a weight has the dimensions of the loss.
LARGER = [(3, 2, 8, 5), (3, 1, 1, 5), (1, 1, 1, 1)]
CALLS: Dict[str, Dict[str, Any]] = {
    'mean': {},
    'sum': {'reduction_override': 'sum'},
    'none': {'reduction_override': 'none'},
    'factor': {'avg_factor': 3.0},
}


@pytest.mark.parametrize('avg_non_ignore', [False, True])
@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize(
    ('scope', 'shape'),
    [(scope, shape) for scope in CROSS_ENTROPY for shape in SMALLER + (LARGER if scope == 'mmdet' else [])],
)
def test_valid_targets(scope: str, shape: tuple, call: str, avg_non_ignore: bool) -> None:
    scores = torch.randn(2, 8, 5)
    target = torch.randint(0, 2, scores.shape).float()
    stock, guarded = (cls(use_sigmoid=True, avg_non_ignore=avg_non_ignore) for cls in CROSS_ENTROPY[scope])
    args = (target, torch.rand(shape))
    assert_equal(
        value_and_grad(guarded, scores, *args, **CALLS[call]), value_and_grad(stock, scores, *args, **CALLS[call])
    )


@pytest.mark.parametrize('shape', SMALLER + LARGER)
def test_invalid_targets_are_deleted(shape: tuple) -> None:
    """Those of one row, which a stock loss gets as an ignored one that leaves the average."""
    scores = torch.randn(2, 8, 5)
    target = torch.randint(0, 2, scores.shape).float()
    target[:, 3] = 7.0
    weight = torch.rand(shape)
    (_, guarded_class) = CROSS_ENTROPY['mmdet']
    kept = [0, 1, 2, 4, 5, 6, 7]
    rows = weight[..., kept, :] if weight.dim() > 1 and weight.shape[-2] == 8 else weight
    loss, grad = value_and_grad(guarded_class(use_sigmoid=True), scores, target, weight)
    expected = value_and_grad(guarded_class(use_sigmoid=True), scores[:, kept], target[:, kept], rows)
    assert_equal((loss, grad[:, kept]), expected)
    assert grad[:, 3].eq(0).all()


@pytest.mark.parametrize('scope', CROSS_ENTROPY)
@pytest.mark.parametrize('mode', [{}, {'use_sigmoid': True}])
def test_one_weight_for_all_labels(scope: str, mode: Dict[str, Any]) -> None:
    scores, label = torch.randn(6, 5), torch.randint(0, 5, (6,))
    guarded = CROSS_ENTROPY[scope][1](**mode)
    for call in CALLS.values():
        value, grad = value_and_grad(guarded, scores, label, torch.tensor(0.25), **call)
        expected, expected_grad = value_and_grad(guarded, scores, label, torch.full((6,), 0.25), **call)
        assert_equal((value, grad), (expected, expected_grad))
