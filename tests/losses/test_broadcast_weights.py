"""Weights that are broadcast with dense sigmoid targets, as mmdet's DETR-like heads bring them."""

from __future__ import annotations

from typing import Any, Dict

import pytest
import torch
from gradients import value_and_grad
from loss_cases import CROSS_ENTROPY, assert_equal

pytestmark = pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')

SHAPES = [(2, 8, 1), (8, 5), (8, 1), (5,), (1,), (), (2, 1, 1), (1, 1, 5)]
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
    [(scope, shape) for scope in CROSS_ENTROPY for shape in SHAPES + (LARGER if scope == 'mmdet' else [])],
)
def test_valid_targets(scope: str, shape: tuple, call: str, avg_non_ignore: bool) -> None:
    scores = torch.randn(2, 8, 5)
    target = torch.randint(0, 2, scores.shape).float()
    stock, guarded = (cls(use_sigmoid=True, avg_non_ignore=avg_non_ignore) for cls in CROSS_ENTROPY[scope])
    args = (target, torch.rand(shape))
    assert_equal(
        value_and_grad(guarded, scores, *args, **CALLS[call]), value_and_grad(stock, scores, *args, **CALLS[call])
    )


@pytest.mark.parametrize('shape', SHAPES + LARGER)
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
