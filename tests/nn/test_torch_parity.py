"""Valid targets: value, gradient and dtype are those of PyTorch's own functions."""

from __future__ import annotations

import itertools
from typing import Any, Dict, Optional

import pytest
import torch
import torch.nn.functional as F
from loss_checks import value_and_grad
from this_stack import skip_without_autocast, skip_without_half_precision
from torch_cases import CLASSES, INTEGERS, SHAPES, assert_same, distributions, elements, logits_and_target

from mmguard.functional import binary_cross_entropy_with_logits, cross_entropy

REDUCTIONS = ('none', 'mean', 'sum')
WEIGHT = torch.tensor([0.4, 1.7, 0.0, 2.5], dtype=torch.float64)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize('label_smoothing', [0.0, 0.15, 1.0])
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_class_indices(shape: tuple, label_smoothing: float, dtype: torch.dtype) -> None:
    logits, target = logits_and_target(shape, dtype)
    for reduction, weighted, ignore_index in itertools.product(REDUCTIONS, (False, True), (-100, 255, -1, 0, 3)):
        # Something is left, with a weight: elsewhere PyTorch gives NaN, see test_nothing_to_train_on.py.
        given = torch.ones_like(target) if not shape[1:] else target.clone()
        if given.numel() > 1:
            given.view(-1)[0] = ignore_index
            given.view(-1)[1] = 1
        options: Dict[str, Any] = {
            'weight': WEIGHT.to(dtype) if weighted else None,
            'ignore_index': ignore_index,
            'reduction': reduction,
            'label_smoothing': label_smoothing,
        }
        expected = value_and_grad(F.cross_entropy, logits, given, **options)
        assert_same(value_and_grad(cross_entropy, logits, given, **options), expected)
        assert expected[0].isfinite().all()


LAYOUTS: Dict[str, Any] = {
    'transposed target': lambda: (torch.randn(4, 3, 6, 5), torch.randint(0, 3, (4, 5, 6)).transpose(1, 2)),
    'expanded target': lambda: (torch.randn(4, 3, 6, 5), torch.randint(0, 3, (4, 1, 5)).expand(4, 6, 5)),
    'one element, expanded': lambda: (torch.randn(4, 3, 6, 5), torch.tensor([[[2]]]).expand(4, 6, 5)),
    'transposed logits': lambda: (torch.randn(4, 3, 6, 5).transpose(2, 3), torch.randint(0, 3, (4, 5, 6))),
    'channels last': lambda: (torch.randn(4, 6, 5, 3).permute(0, 3, 1, 2), torch.randint(0, 3, (4, 6, 5))),
    'channels last, volume': lambda: (torch.randn(2, 4, 5, 6, 3).movedim(-1, 1), torch.randint(0, 3, (2, 4, 5, 6))),
    'transposed volume': lambda: (torch.randn(2, 3, 4, 5, 6), torch.randint(0, 3, (2, 6, 5, 4)).transpose(1, 3)),
    'every other step': lambda: (torch.randn(2, 3, 8)[:, :, ::2], torch.randint(0, 3, (2, 8))[:, ::2]),
    'batch last': lambda: (torch.randn(7, 3, 2).transpose(0, 2), torch.randint(0, 3, (7, 2)).t()),
}


@pytest.mark.parametrize('reduction', REDUCTIONS)
@pytest.mark.parametrize('layout', LAYOUTS)
def test_layouts_in_memory(layout: str, reduction: str) -> None:
    logits, target = LAYOUTS[layout]()
    for weight in (None, torch.tensor([1.0, -2.0, 0.5])):
        options: Dict[str, Any] = {'weight': weight, 'reduction': reduction}
        expected = value_and_grad(F.cross_entropy, logits, target, **options)
        assert_same(value_and_grad(cross_entropy, logits, target, **options), expected)


@pytest.mark.parametrize('label_smoothing', [0.0, 0.15])
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_probabilities(shape: tuple, label_smoothing: float) -> None:
    for dtype, target_dtype, reduction, weighted in itertools.product(
        (torch.float32, torch.float64), (torch.float32, torch.float64), REDUCTIONS, (False, True)
    ):
        logits, _ = logits_and_target(shape, dtype)
        target = distributions(shape, target_dtype)
        options: Dict[str, Any] = {
            'weight': WEIGHT.to(dtype) if weighted else None,
            'reduction': reduction,
            'label_smoothing': label_smoothing,
        }
        expected = value_and_grad(F.cross_entropy, logits, target, **options)
        assert_same(value_and_grad(cross_entropy, logits, target, **options), expected)


def test_the_gradient_reaches_the_probabilities() -> None:
    """Distillation into both models."""
    logits, _ = logits_and_target((2, 4, 3))
    teacher = torch.randn(2, 4, 3)
    grads = []
    for loss in (F.cross_entropy, cross_entropy):
        leaf = teacher.clone().requires_grad_()
        loss(logits, leaf.softmax(1)).backward()
        grads.append(leaf.grad)
    torch.testing.assert_close(*grads)
    assert grads[0].abs().sum() > 0


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize('shape', [(6, 4), (2, 4, 3, 5)], ids=str)
def test_half_precision(shape: tuple, dtype: torch.dtype) -> None:
    skip_without_half_precision(dtype)
    logits, target = logits_and_target(shape, dtype)
    target.view(-1)[0] = 255
    eps = torch.finfo(dtype).eps
    for reduction, weighted, label_smoothing in itertools.product(REDUCTIONS, (False, True), (0.0, 0.1)):
        options: Dict[str, Any] = {
            'weight': WEIGHT.to(dtype) if weighted else None,
            'ignore_index': 255,
            'reduction': reduction,
            'label_smoothing': label_smoothing,
        }
        actual = value_and_grad(cross_entropy, logits, target, **options)
        assert_same(actual, value_and_grad(F.cross_entropy, logits, target, **options), 8 * eps)
        soft = {name: value for name, value in options.items() if name != 'ignore_index'}
        actual = value_and_grad(cross_entropy, logits, distributions(shape, dtype), **soft)
        assert_same(actual, value_and_grad(F.cross_entropy, logits, distributions(shape, dtype), **soft), 16 * eps)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize('shape', [(70_000, 3), (1, 3, 7, 10_000)], ids=str)
def test_half_precision_is_added_up_in_float32(shape: tuple, dtype: torch.dtype) -> None:
    """Of valid labels, too: PyTorch's mean of so many elements is NaN in float16, and off by a digit in bfloat16."""
    skip_without_half_precision(dtype)
    logits, target = torch.randn(shape).to(dtype), torch.randint(0, 3, (shape[0], *shape[2:]))
    elements = F.cross_entropy(logits, target, reduction='none').float()
    assert cross_entropy(logits, target) == elements.mean().to(dtype)
    assert cross_entropy(logits, target, reduction='sum') == elements.sum().to(dtype)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16], ids=str)
def test_autocast(dtype: torch.dtype) -> None:
    skip_without_autocast(dtype)
    logits, target = logits_and_target((2, 4, 3, 5), dtype)
    target[0, 0] = 255
    binary = (logits > 0).float()
    weight = torch.tensor([0.3331, 1.0039, 2.5, 7.7])
    calls = [
        lambda loss: loss(logits, target, weight, ignore_index=255),
        lambda loss: loss(logits, target, weight, ignore_index=255, reduction='sum', label_smoothing=0.1),
        lambda loss: loss(logits, distributions(logits.shape)),
    ]
    with torch.autocast('cpu', dtype=dtype):
        for call in calls:
            ours, theirs = call(cross_entropy), call(F.cross_entropy)
            assert ours.dtype == theirs.dtype == torch.float32
            torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
        ours, theirs = (
            loss(logits, binary) for loss in (binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits)
        )
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize('dtype', [*INTEGERS, torch.bool], ids=str)
def test_integers_of_any_width(dtype: torch.dtype) -> None:
    logits, target = logits_and_target((2, 4, 3, 5))
    target = target % 2
    target[0, 0] = 1
    expected = value_and_grad(F.cross_entropy, logits, target)
    assert_same(value_and_grad(cross_entropy, logits, target.to(dtype)), expected)


@pytest.mark.parametrize(('size_average', 'reduce'), list(itertools.product((None, True, False), repeat=2)))
@pytest.mark.filterwarnings('ignore:size_average and reduce')
def test_the_deprecated_arguments_by_position(size_average: Optional[bool], reduce: Optional[bool]) -> None:
    logits, target = logits_and_target((6, 4))
    args = (WEIGHT.float(), size_average, -100, reduce, 'sum', 0.1)
    torch.testing.assert_close(cross_entropy(logits, target, *args), F.cross_entropy(logits, target, *args))
    binary = (logits > 0).float()
    torch.testing.assert_close(
        binary_cross_entropy_with_logits(logits, binary, WEIGHT.float(), size_average, reduce, 'sum', WEIGHT.float()),
        F.binary_cross_entropy_with_logits(logits, binary, WEIGHT.float(), size_average, reduce, 'sum', WEIGHT.float()),
    )


@pytest.mark.parametrize('shape', [(4,), (6, 4), (2, 4, 3, 4)], ids=str)
def test_multilabel(shape: tuple) -> None:
    generator = torch.Generator().manual_seed(2)
    weights = [None, torch.tensor([0.5, 1.0, 2.0, 0.0])]
    for dtype, reduction, weight, pos_weight in itertools.product(
        (torch.float32, torch.float64), REDUCTIONS, weights, weights
    ):
        logits, _ = logits_and_target(shape, dtype)
        target = torch.rand(shape, generator=generator, dtype=dtype)
        options: Dict[str, Any] = {'weight': weight, 'reduction': reduction, 'pos_weight': pos_weight}
        expected = value_and_grad(F.binary_cross_entropy_with_logits, logits, target, **options)
        assert_same(value_and_grad(binary_cross_entropy_with_logits, logits, target, **options), expected)


@pytest.mark.parametrize('dtype', [torch.bool, torch.uint8, torch.int64], ids=str)
def test_multilabel_of_any_dtype(dtype: torch.dtype) -> None:
    logits, _ = logits_and_target((6, 4))
    target = logits > 0
    expected = value_and_grad(F.binary_cross_entropy_with_logits, logits, target.float())
    assert_same(value_and_grad(binary_cross_entropy_with_logits, logits, target.to(dtype)), expected)


def test_derivatives_against_finite_differences() -> None:
    logits, target = logits_and_target((2, CLASSES, 3), torch.float64)
    target[0, 0], target[1, 2] = 255, 9
    soft = distributions(logits.shape, torch.float64)
    soft[0, :, 1] = float('nan')
    binary = logits.sigmoid().clone()
    binary[0, 0, 0] = 7
    logits.requires_grad_()
    losses = [
        lambda x: cross_entropy(x, target, WEIGHT, ignore_index=255, label_smoothing=0.1),
        lambda x: cross_entropy(x, target, ignore_index=255, reduction='none'),
        lambda x: cross_entropy(x, soft, WEIGHT, label_smoothing=0.1),
        lambda x: binary_cross_entropy_with_logits(x, binary.detach()),
    ]
    for loss in losses:
        assert torch.autograd.gradcheck(loss, logits, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(loss, logits)
    assert elements(logits.shape) == target.shape
