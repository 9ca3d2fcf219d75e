"""``cross_entropy`` beside ``F.cross_entropy``: every mode, and an invalid label wherever it stands."""

from __future__ import annotations

import itertools
from typing import Any, Dict, List, Tuple

import pytest
import torch
import torch.nn.functional as F
from this_torch import skip_where_torch_fails, skip_without_half_precision
from torch import Tensor

from mmguard.functional import cross_entropy, mask_cross_entropy, sigmoid_cross_entropy, softmax_cross_entropy

SHAPES = [(5, 3), (2, 3, 5), (2, 3, 2, 2), (2, 3, 2, 1, 2)]


def modes() -> List[Dict[str, Any]]:
    keys = ('weight', 'reduction', 'label_smoothing')
    values = (None, torch.tensor([0.5, 2.0, 1.0])), ('none', 'mean', 'sum'), (0.0, 0.1)
    return [dict(zip(keys, row)) for row in itertools.product(*values)]


@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_valid_labels_give_pytorchs_loss(shape: tuple) -> None:
    logits = torch.randn(shape).requires_grad_()
    target = torch.randint(0, 3, (shape[0], *shape[2:]))
    target.view(-1)[0] = 255
    for options in modes():
        losses = [loss(logits, target, ignore_index=255, **options) for loss in (cross_entropy, F.cross_entropy)]
        grads = [torch.autograd.grad(loss.sum(), logits)[0] for loss in losses]
        torch.testing.assert_close(*losses, msg=lambda text, o=options: f'{o}: {text}')
        torch.testing.assert_close(*grads, msg=lambda text, o=options: f'{o}: {text}')


@pytest.mark.parametrize('shape', SHAPES, ids=str)
@pytest.mark.parametrize('position', [0, -1], ids=['first', 'last'])
@pytest.mark.parametrize('value', [3, -1, 255, -(2**63), 2**63 - 1])
def test_wherever_the_invalid_label_stands(shape: tuple, position: int, value: int) -> None:
    """PyTorch's kernels look at the labels in loops of their own; one that missed a label would show here."""
    logits = torch.randn(shape).requires_grad_()
    target = torch.randint(0, 3, (shape[0], *shape[2:]))
    target.view(-1)[position] = value
    ignored = target.clone()
    ignored.view(-1)[position] = -100
    for options in modes():
        with pytest.raises(IndexError):
            F.cross_entropy(logits, target, **options)
        loss, counts = cross_entropy(logits, target, return_tally=True, **options)
        expected = F.cross_entropy(logits, ignored, **options)
        assert counts.tolist() == [target.numel(), 1, 0]
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(*(torch.autograd.grad(side.sum(), logits)[0] for side in (loss, expected)))


def test_a_traced_graph_leaves_out_what_was_valid_when_it_was_traced() -> None:
    logits = torch.randn(4, 3)
    make_fx = pytest.importorskip('torch.fx.experimental.proxy_tensor').make_fx
    traced = make_fx(lambda target: cross_entropy(logits, target))(torch.tensor([0, 1, 2, 0]))
    torch.testing.assert_close(
        traced(torch.tensor([0, 7, 2, 0])), F.cross_entropy(logits[[0, 2, 3]], torch.tensor([0, 2, 0]))
    )


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('strict', [True, False])
def test_an_exported_graph_leaves_invalid_labels_out(strict: bool) -> None:
    class Model(torch.nn.Module):
        def forward(self, logits: Tensor, target: Tensor) -> Tensor:
            return cross_entropy(logits, target)

    logits, target = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    stock = torch.nn.CrossEntropyLoss()
    skip_where_torch_fails(lambda: torch.export.export(stock, (logits, target), strict=strict))
    exported = torch.export.export(Model(), (logits, target), strict=strict).module()
    expected = F.cross_entropy(logits[[0, 2, 3]], torch.tensor([0, 2, 0]))
    torch.testing.assert_close(exported(logits, torch.tensor([0, 7, 2, 0])), expected)


def test_a_class_masked_with_minus_infinity_at_an_invalid_element_gives_no_nan() -> None:
    logits = torch.tensor([[0.0, float('-inf'), 1.0], [0.0, 1.0, 2.0]], requires_grad=True)
    cross_entropy(logits, torch.tensor([7, 2]), torch.tensor([0.5, 1.0, 3.0]), reduction='sum').backward()
    assert logits.grad[0].abs().sum() == 0
    assert logits.grad[1].isfinite().all()
    assert logits.grad[1].abs().sum() > 0


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
