"""Softmax and negative log likelihood in one: PyTorch's bits, second derivatives, transforms, memory."""

from __future__ import annotations

from typing import Callable, Optional, Tuple

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import forward_ad

from mmguard.functional.nll import _SoftmaxNLL, softmax_nll

CLASSES = 3
IGNORED = CLASSES
WEIGHT = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
SHAPES = [(4, CLASSES), (2, CLASSES, 5), (2, CLASSES, 2, 2), (1, CLASSES, 2, 1, 2), (0, CLASSES, 2, 2)]
WEIGHTS = pytest.mark.parametrize('weight', [None, WEIGHT], ids=['plain', 'weighted'])

Loss = Callable[..., Tensor]


def case(shape: Tuple[int, ...], dtype: torch.dtype = torch.float64) -> Tuple[Tensor, Tensor]:
    logits = torch.randn(shape, dtype=dtype).requires_grad_()
    return logits, torch.randint(0, shape[1] + 1, (shape[0], *shape[2:]))


def ours(target: Tensor, weight: Optional[Tensor] = None, classes: int = CLASSES) -> Loss:
    return lambda logits: softmax_nll(logits, target, weight, classes)


def stock(target: Tensor, weight: Optional[Tensor] = None, classes: int = CLASSES) -> Loss:
    return lambda logits: F.cross_entropy(logits, target, weight, ignore_index=classes, reduction='none')


def is_in_place(loss: Tensor) -> bool:
    return type(loss.grad_fn).__name__ == f'{_SoftmaxNLL.__name__}Backward'


@WEIGHTS
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_value_and_gradient_are_pytorchs_bit_by_bit(shape: Tuple[int, ...], weight: Optional[Tensor]) -> None:
    logits, target = case(shape)
    loss, expected = (side(target, weight)(logits) for side in (ours, stock))
    assert is_in_place(loss)
    upstream = torch.randn(expected.shape, dtype=torch.float64)
    torch.testing.assert_close(loss, expected, rtol=0, atol=0)
    got, wanted = (torch.autograd.grad(side, logits, upstream)[0] for side in (loss, expected))
    assert torch.equal(got, wanted)
    assert got.stride() == wanted.stride()


@given(
    n=st.integers(0, 5),
    classes=st.integers(1, 300),
    spatial=st.lists(st.integers(1, 33), max_size=3),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    layout=st.sampled_from(['contiguous', 'channels last', 'every second', 'expanded']),
)
def test_written_over_its_input_the_gradient_has_the_same_bits(
    n: int, classes: int, spatial: list, dtype: torch.dtype, layout: str
) -> None:
    """PyTorch's kernel reads rows, vectors and remainders in many ways; none may read what it has written."""
    logits, target = case((n, classes, *spatial), dtype)
    logits = {
        'contiguous': lambda x: x,
        'channels last': lambda x: x.movedim(1, -1).contiguous().movedim(-1, 1),
        'every second': lambda x: x.repeat_interleave(2, dim=0)[::2],
        'expanded': lambda x: x[..., :1].expand(x.shape),
    }[layout](logits.detach()).requires_grad_()
    loss, expected = (side(target, None, classes)(logits) for side in (ours, stock))
    upstream = torch.randn(expected.shape, dtype=dtype)
    got, wanted = (torch.autograd.grad(side, logits, upstream)[0] for side in (loss, expected))
    assert torch.equal(loss, expected)
    assert torch.equal(got, wanted)


@WEIGHTS
@pytest.mark.parametrize('shape', SHAPES[:-1], ids=str)
def test_first_and_second_derivatives_against_finite_differences(
    shape: Tuple[int, ...], weight: Optional[Tensor]
) -> None:
    logits, target = case(shape)
    loss = ours(target, weight)
    assert torch.autograd.gradcheck(loss, logits, check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(loss, logits, check_fwd_over_rev=True, check_batched_grad=True)


def test_a_gradient_penalty_equals_that_of_pytorch() -> None:
    logits, target = case((2, CLASSES, 4))

    def penalty(loss: Tensor) -> Tensor:
        (grad,) = torch.autograd.grad(loss.sum(), logits, create_graph=True)
        return torch.autograd.grad(grad.square().sum(), logits)[0]

    torch.testing.assert_close(penalty(ours(target)(logits)), penalty(stock(target)(logits)))


def test_a_penalty_on_the_gradient_adds_to_the_loss() -> None:
    """Both come back through the same step of the graph."""
    logits, target = case((2, CLASSES, 4))

    def step(loss: Tensor) -> Tensor:
        (grad,) = torch.autograd.grad(loss, logits, create_graph=True)
        return torch.autograd.grad(loss + 0.1 * grad.square().sum(), logits)[0]

    torch.testing.assert_close(*(step(side(target, WEIGHT)(logits).sum()) for side in (ours, stock)))


def test_a_gradient_that_is_kept_in_the_graph_and_one_that_is_not_agree() -> None:
    logits, target = case((2, CLASSES, 4))
    loss = ours(target, WEIGHT)(logits).sum()
    (kept,) = torch.autograd.grad(loss, logits, create_graph=True)
    (plain,) = torch.autograd.grad(loss, logits)
    assert torch.equal(kept, plain)


def test_the_graph_can_be_walked_twice() -> None:
    logits, target = case((2, CLASSES, 4))
    loss = ours(target, WEIGHT)(logits).sum()
    loss.backward(retain_graph=True)
    first = logits.grad.clone()
    loss.backward()
    torch.testing.assert_close(logits.grad, 2 * first)


@pytest.mark.skipif(not hasattr(torch, 'func'), reason='torch < 2.0')
def test_transforms_take_their_own_derivatives() -> None:
    logits, target = case((4, CLASSES))
    logits = logits.detach()
    got, wanted = (torch.func.jacrev(side(target))(logits) for side in (ours, stock))
    assert torch.equal(got, wanted)
    several, targets = torch.stack((logits, logits + 1)), torch.stack((target, target.flip(0)))
    rows = torch.func.vmap(lambda x, t: ours(t)(x))(several, targets)
    torch.testing.assert_close(rows[1], stock(targets[1])(several[1]))
    with forward_ad.dual_level():
        tangents = [
            forward_ad.unpack_dual(side(target)(forward_ad.make_dual(logits, torch.ones_like(logits) * WEIGHT))).tangent
            for side in (ours, stock)
        ]
    assert torch.equal(*tangents)


def test_without_a_gradient_nothing_is_kept() -> None:
    logits, target = case((2, CLASSES, 4))
    with torch.no_grad():
        assert ours(target)(logits).grad_fn is None
    assert ours(target)(logits.detach()).grad_fn is None


def test_a_class_masked_with_minus_infinity_at_an_ignored_element_gives_no_nan() -> None:
    logits = torch.tensor([[0.0, float('-inf'), 1.0], [0.0, 1.0, 2.0]], requires_grad=True)
    loss = ours(torch.tensor([IGNORED, 2]), WEIGHT.float())(logits)
    loss.sum().backward()
    assert loss[0] == 0
    assert logits.grad[0].abs().sum() == 0
    assert logits.grad[1].isfinite().all()
    assert logits.grad[1].abs().sum() > 0
