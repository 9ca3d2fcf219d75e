"""Odd sizes (nothing, one pixel, one class, many) and memory layouts."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import pytest
import torch
from torch import Tensor

from mmguard.functional import mask_cross_entropy, sigmoid_cross_entropy, softmax_cross_entropy

FUNCTIONS = (softmax_cross_entropy, sigmoid_cross_entropy)


def run(function: Any, leaf: Tensor, *args: Any, **kwargs: Any) -> Tuple[Tensor, Tensor]:
    leaf = leaf.detach().requires_grad_()
    loss, _ = function(leaf, *args, **kwargs)
    loss.sum().backward()
    return loss.detach(), leaf.grad


@pytest.mark.parametrize('reduction', ['none', 'mean', 'sum'])
@pytest.mark.parametrize('shape', [(0, 3), (0, 3, 4, 5), (2, 3, 0, 5), (0, 1), (0, 1, 1, 1)])
@pytest.mark.parametrize('function', FUNCTIONS)
def test_nothing(function: Any, shape: Tuple[int, ...], reduction: str) -> None:
    label = torch.zeros(shape[0], *shape[2:], dtype=torch.long)
    for class_weight in (None, torch.ones(shape[1])):
        loss, grad = run(function, torch.zeros(shape), label, reduction=reduction, class_weight=class_weight)
        assert loss.sum() == 0
        assert loss.isfinite().all()
        assert grad.shape == shape


def test_no_instance() -> None:
    for size in ((0, 3, 4, 4), (2, 3, 0, 0)):
        loss, _ = run(
            mask_cross_entropy, torch.zeros(size), torch.zeros(size[0], *size[2:]), torch.ones(size[0]).long()
        )
        assert loss.tolist() == [0]


@pytest.mark.parametrize('function', FUNCTIONS)
def test_one_pixel(function: Any) -> None:
    scores = torch.randn(1, 3, 1, 1)
    loss, grad = run(function, scores, torch.tensor([[[2]]]))
    expected, expected_grad = run(function, scores.flatten(1), torch.tensor([2]))
    # Another layout is another kernel: equal up to rounding only.
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(grad.flatten(1), expected_grad)
    loss, grad = run(function, scores, torch.tensor([[[3]]]))
    assert loss == 0
    assert grad.eq(0).all()


@pytest.mark.parametrize('function', FUNCTIONS)
@pytest.mark.parametrize('num_classes', [1, 2, 1000])
def test_numbers_of_classes(function: Any, num_classes: int) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(6, num_classes, generator=generator)
    valid = torch.tensor([0, num_classes - 1, num_classes // 2])
    label = torch.tensor([*valid.tolist(), num_classes, -1, 2**40])
    options: Dict[str, Any] = {'class_weight': torch.rand(num_classes, generator=generator) + 0.1}
    loss, grad = run(function, scores, label, **options)
    expected, expected_grad = run(function, scores[:3], valid, **options)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(grad[:3], expected_grad)
    assert grad[3:].eq(0).all()


@pytest.mark.parametrize('function', FUNCTIONS)
@pytest.mark.parametrize('dims', [(7,), (2, 3), (2, 3, 2)])
def test_any_number_of_dimensions(function: Any, dims: Tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 4, *dims, generator=generator)
    label = torch.randint(-1, 5, (2, *dims), generator=generator)
    loss, _ = run(function, scores, label)
    rows = scores.movedim(1, -1).reshape(-1, 4)
    torch.testing.assert_close(loss, run(function, rows, label.flatten())[0])


@pytest.mark.parametrize('reduction', ['none', 'mean'])
@pytest.mark.parametrize('function', FUNCTIONS)
def test_layouts(function: Any, reduction: str) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 4, 6, 5, generator=generator)
    label = torch.randint(-1, 6, (2, 6, 5), generator=generator)
    weight = torch.rand(2, 6, 5, generator=generator)
    options: Dict[str, Any] = {'class_weight': torch.rand(4, generator=generator), 'reduction': reduction}
    loss, grad = run(function, scores, label, weight, **options)
    wide = torch.zeros(2, 4, 6, 10)
    wide[..., ::2] = scores
    transposed = label.transpose(1, 2).contiguous().transpose(1, 2)
    for layout in (scores.to(memory_format=torch.channels_last), wide[..., ::2]):
        for labels, weights in ((label, weight), (transposed, weight.mT.contiguous().mT)):
            assert not layout.is_contiguous()
            other, other_grad = run(function, layout, labels, weights, **options)
            torch.testing.assert_close(other, loss)
            torch.testing.assert_close(other_grad.contiguous(), grad)


def test_expanded_labels() -> None:
    scores = torch.randn(4, 3, 2, 2)
    label = torch.tensor([[[0, 9], [1, 2]]])
    for function in FUNCTIONS:
        assert run(function, scores, label.expand(4, 2, 2))[0].equal(run(function, scores, label.repeat(4, 1, 1))[0])
