"""No operator that waits for the device, and none whose output shape depends on the data."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterator, Tuple

import pytest
import torch
from loss_checks import NoWait
from torch import Tensor

from mmguard.functional import mask_cross_entropy, sigmoid_cross_entropy, softmax_cross_entropy


def calls() -> Iterator[Tuple[str, Callable[[Tensor], Tensor]]]:
    label = torch.tensor([[[0, 7, 255], [2, 1, -1]]])
    weight = torch.tensor([[[1.0, 0, 1], [1, 1, 1]]])
    for on_invalid, reduction, weighted, class_weighted, avg_factor, avg_non_ignore, ignore_index in itertools.product(
        ('ignore', 'clip'), ('none', 'mean', 'sum'), (False, True), (False, True), (None, 4.0, torch.tensor(4.0)),
        (False, True), (255, 1),
    ):  # fmt: skip
        if reduction == 'sum' and avg_factor is not None:
            continue
        options: Dict[str, Any] = {
            'class_weight': torch.tensor([0.5, 1.0, 2.0]) if class_weighted else None,
            'reduction': reduction,
            'avg_factor': avg_factor,
            'avg_non_ignore': avg_non_ignore,
            'ignore_index': ignore_index,
            'on_invalid': on_invalid,
        }
        element_weight = weight if weighted else None
        for by_weight in (False, True):
            yield (
                'softmax',
                lambda x, w=element_weight, o=options, b=by_weight: softmax_cross_entropy(
                    x, label, w, average_by_class_weight=b, **o
                )[0],
            )
        for background in (False, True):
            yield (
                'sigmoid',
                lambda x, w=element_weight, o=options, b=background: sigmoid_cross_entropy(
                    x, label, w, background=b, **o
                )[0],
            )
        dense = torch.tensor([0.0, 1, 255, 3, float('nan'), 0.5]).repeat(3).view(1, 3, 2, 3)
        yield 'dense', lambda x, o=options, d=dense: sigmoid_cross_entropy(x, d, **o)[0]
    for on_invalid in ('ignore', 'clip'):
        yield (
            'mask',
            lambda x, o=on_invalid: mask_cross_entropy(
                x, torch.ones(1, 2, 3), torch.tensor([9]), class_weight=torch.ones(3), on_invalid=o
            )[0],
        )


def test_no_synchronisation_in_any_mode() -> None:
    number = 0
    for name, call in calls():
        leaf = torch.randn(1, 3, 2, 3, requires_grad=True)
        with NoWait() as mode:
            call(leaf).sum().backward()
        assert mode.seen > 5, name
        number += 1
    assert number > 600


def test_the_check_itself_sees_a_synchronisation() -> None:
    values = torch.tensor([1.0, 2.0])
    with NoWait():
        for call in (
            lambda: values.sum().item(),
            lambda: values[values > 1],
            lambda: bool((values > 1).any()),
            # A debugging mode may.
            lambda: softmax_cross_entropy(torch.zeros(1, 2), torch.tensor([0]), on_invalid='raise'),
        ):
            with pytest.raises(AssertionError, match=r'aten\.'):
                call()


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
