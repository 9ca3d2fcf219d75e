"""The fused gradient: first and second derivatives, and the scores that must not leak."""

from __future__ import annotations

from typing import Optional

import pytest
import torch
import torch.nn.functional as F

from mmguard.functional.nll import softmax_nll

WEIGHT = torch.tensor([0.5, 1.0, 3.0])
SHAPES = [(4, 3), (2, 3, 5), (2, 3, 2, 2), (1, 3, 2, 1, 2), (0, 3, 2, 2)]


def case(shape: tuple, dtype: torch.dtype = torch.float64) -> tuple:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()
    target = torch.randint(0, 3, (shape[0], *shape[2:]), generator=generator)
    keep = torch.rand(target.shape, generator=generator) < 0.7
    return logits, target, keep


@pytest.mark.parametrize('weight', [None, WEIGHT], ids=['plain', 'weighted'])
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_value_and_gradient_are_those_of_pytorch(shape: tuple, weight: Optional[torch.Tensor]) -> None:
    logits, target, keep = case(shape)
    upstream = torch.randn(target.shape, dtype=torch.float64)
    loss = softmax_nll(logits, target, keep, weight)
    (grad,) = torch.autograd.grad(loss, logits, upstream)
    weight64 = None if weight is None else weight.double()
    expected = F.cross_entropy(logits, target.masked_fill(~keep, -100), weight64, reduction='none')
    (expected_grad,) = torch.autograd.grad(expected, logits, upstream)
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(grad, expected_grad, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize('weight', [None, WEIGHT], ids=['plain', 'weighted'])
def test_first_and_second_derivatives_against_finite_differences(weight: Optional[torch.Tensor]) -> None:
    logits, target, keep = case((2, 3, 2, 2))
    assert torch.autograd.gradcheck(lambda x: softmax_nll(x, target, keep, weight), logits)
    assert torch.autograd.gradgradcheck(lambda x: softmax_nll(x, target, keep, weight), logits)


def test_a_gradient_penalty_equals_that_of_pytorch() -> None:
    logits, target, keep = case((2, 3, 4))

    def penalty(loss: torch.Tensor) -> torch.Tensor:
        (grad,) = torch.autograd.grad(loss.sum(), logits, create_graph=True)
        return torch.autograd.grad(grad.square().sum(), logits)[0]

    ours = penalty(softmax_nll(logits, target, keep, None))
    torch.testing.assert_close(
        ours, penalty(F.cross_entropy(logits, target.masked_fill(~keep, -100), reduction='none'))
    )


def test_a_class_masked_with_minus_infinity_at_an_excluded_element_gives_no_nan() -> None:
    logits = torch.tensor([[0.0, float('-inf'), 1.0], [0.0, 1.0, 2.0]], requires_grad=True)
    loss = softmax_nll(logits, torch.tensor([1, 2]), torch.tensor([False, True]), WEIGHT)
    loss.sum().backward()
    assert loss[0] == 0
    assert logits.grad[0].abs().sum() == 0
    assert logits.grad[1].isfinite().all()
    assert logits.grad[1].abs().sum() > 0


def test_the_graph_can_be_walked_twice() -> None:
    logits, target, keep = case((2, 3, 4))
    loss = softmax_nll(logits, target, keep, WEIGHT).sum()
    loss.backward(retain_graph=True)
    first = logits.grad.clone()
    loss.backward()
    torch.testing.assert_close(logits.grad, 2 * first)
