"""Half precision: no NaN (F4), averages in float32, class weights as they were given."""

from __future__ import annotations

from typing import Any, Tuple

import pytest
import torch
from this_torch import skip_without_half_precision
from torch import Tensor

from mmguard.functional import mask_cross_entropy, sigmoid_cross_entropy, softmax_cross_entropy

HALF = (torch.float16, torch.bfloat16)


def inputs(dtype: torch.dtype) -> Tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(1, 3, 40, 50, generator=generator).to(dtype)
    label = torch.randint(0, 3, (1, 40, 50), generator=generator)
    label[0, :5] = 255
    label[0, 5:9] = 19
    return scores, label


def run(function: Any, scores: Tensor, *args: Any, **kwargs: Any) -> Tuple[Tensor, Tensor]:
    leaf = scores.clone().requires_grad_()
    loss, _ = function(leaf, *args, **kwargs)
    loss.backward()
    return loss.detach(), leaf.grad


@pytest.mark.parametrize('dtype', HALF)
@pytest.mark.parametrize('avg_non_ignore', [False, True])
@pytest.mark.parametrize('function', [softmax_cross_entropy, sigmoid_cross_entropy])
def test_no_overflow(function: Any, avg_non_ignore: bool, dtype: torch.dtype) -> None:
    skip_without_half_precision(dtype)
    scores, label = inputs(dtype)
    # Summed, these exceed 65504, the largest float16.
    options = {'class_weight': torch.tensor([60.0, 90.0, 75.0]), 'ignore_index': 255, 'avg_non_ignore': avg_non_ignore}
    loss, grad = run(function, scores, label, **options)
    expected, expected_grad = run(function, scores.float(), label, **options)
    assert loss.dtype == torch.float32
    assert grad.dtype == dtype
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(loss, expected, rtol=4 * eps, atol=0)
    torch.testing.assert_close(grad.float(), expected_grad, rtol=8 * eps, atol=1e-4)


@pytest.mark.parametrize('dtype', HALF)
def test_sums_are_float32(dtype: torch.dtype) -> None:
    skip_without_half_precision(dtype)
    scores = torch.zeros(200_000, 2, dtype=dtype)
    loss, _ = softmax_cross_entropy(scores, torch.zeros(200_000, dtype=torch.long), reduction='sum')
    assert loss.item() == pytest.approx(200_000 * 0.6931, rel=3e-3)


@pytest.mark.parametrize('dtype', HALF)
def test_class_weights_are_not_rounded_or_infinite(dtype: torch.dtype) -> None:
    """One class alone: its weight cancels, if it is the same above and below the fraction line."""
    skip_without_half_precision(dtype)
    scores = torch.zeros(4, 2, dtype=dtype)
    one = softmax_cross_entropy(scores, torch.ones(4, dtype=torch.long))[0]
    for weight in (1.00390625, 0.3331, 1e6, 1e-9):
        element = softmax_cross_entropy(
            scores, torch.ones(4, dtype=torch.long), class_weight=torch.tensor([1.0, weight]), reduction='none'
        )[0]
        torch.testing.assert_close(element[0].float(), one * weight, rtol=1e-6, atol=0)
    loss = softmax_cross_entropy(scores, torch.ones(4, dtype=torch.long), class_weight=torch.tensor([1.0, 1e6]))[0]
    torch.testing.assert_close(loss, one, rtol=1e-6, atol=0)


@pytest.mark.parametrize('dtype', HALF)
def test_all_invalid(dtype: torch.dtype) -> None:
    skip_without_half_precision(dtype)
    scores, label = inputs(dtype)
    for function in (softmax_cross_entropy, sigmoid_cross_entropy):
        loss, grad = run(function, scores, torch.full_like(label, 99), class_weight=torch.ones(3))
        assert loss == 0
        assert grad.eq(0).all()


@pytest.mark.parametrize('dtype', HALF)
def test_masks(dtype: torch.dtype) -> None:
    skip_without_half_precision(dtype)
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 2, 28, 28, generator=generator).to(dtype)
    target = (torch.rand(3, 28, 28, generator=generator) > 0.5).float()
    label, options = torch.tensor([0, 9, 1]), {'class_weight': torch.tensor([50.0, 90.0])}
    loss, grad = run(mask_cross_entropy, scores, target, label, **options)
    expected, _ = run(mask_cross_entropy, scores.float(), target, label, **options)
    torch.testing.assert_close(loss, expected, rtol=4 * torch.finfo(dtype).eps, atol=0)
    assert grad.isfinite().all()


def test_double_precision_stays() -> None:
    scores, label = inputs(torch.float64)
    for function in (softmax_cross_entropy, sigmoid_cross_entropy):
        loss, _ = run(function, scores, label, class_weight=torch.ones(3), ignore_index=255)
        assert loss.dtype == torch.float64
