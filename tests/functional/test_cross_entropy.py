"""``cross_entropy`` beside ``F.cross_entropy``: every mode, and an invalid label wherever it stands."""

from __future__ import annotations

import itertools
from typing import Any, Dict, List

import pytest
import torch
import torch.nn.functional as F
from this_torch import skip_where_torch_fails
from torch import Tensor

from mmguard.functional import cross_entropy

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
