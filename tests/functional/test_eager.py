"""On a CPU PyTorch is asked first, unless somebody traces or transforms."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, List

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import forward_ad

from mmguard.functional import cross_entropy
from mmguard.functional.eager import is_eager_cpu

SHAPES = [(5, 3), (2, 3, 5), (2, 3, 2, 2), (2, 3, 2, 1, 2)]


def modes() -> List[Dict[str, Any]]:
    keys = ('weight', 'reduction', 'label_smoothing')
    values = (None, torch.tensor([0.5, 2.0, 1.0])), ('none', 'mean', 'sum'), (0.0, 0.1)
    return [dict(zip(keys, row)) for row in itertools.product(*values)]


@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_valid_labels_give_pytorchs_bits(shape: tuple) -> None:
    logits = torch.randn(shape).requires_grad_()
    target = torch.randint(0, 3, (shape[0], *shape[2:]))
    target.view(-1)[0] = 255
    for options in modes():
        losses = [loss(logits, target, ignore_index=255, **options) for loss in (cross_entropy, F.cross_entropy)]
        grads = [torch.autograd.grad(loss.sum(), logits)[0] for loss in losses]
        assert torch.equal(*losses), options
        assert torch.equal(*grads), options


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


def test_plain_tensors_are_eager() -> None:
    assert is_eager_cpu(torch.zeros(2), torch.nn.Parameter(torch.zeros(2)))
    assert not is_eager_cpu(torch.zeros(2), torch.zeros(2, device='meta'))


class Asked:
    """A function of tensors that notes what it was told."""

    def __init__(self) -> None:
        self.answers: List[bool] = []

    def __call__(self, tensor: Tensor) -> Tensor:
        self.answers.append(is_eager_cpu(tensor))
        return tensor * 2


def _fake(asked: Asked) -> None:
    with torch._subclasses.FakeTensorMode() as mode:
        asked(mode.from_tensor(torch.zeros(2)))


def _forward_mode(asked: Asked) -> None:
    with forward_ad.dual_level():
        asked(forward_ad.make_dual(torch.zeros(2), torch.ones(2)))


def _batched_gradients(asked: Asked) -> None:
    x = torch.zeros(2, requires_grad=True)
    y = x * 1
    y.register_hook(asked)
    torch.autograd.grad(y * 1, x, torch.eye(2), is_grads_batched=True)


class _Subclass(Tensor):
    pass


TRANSFORMED: Dict[str, Callable[[Asked], Any]] = {
    'fake tensors': _fake,
    'forward mode': _forward_mode,
    'batched gradients': _batched_gradients,
    'a subclass': lambda asked: asked(torch.zeros(2).as_subclass(_Subclass)),
    'torch.func.vmap': lambda asked: torch.func.vmap(asked)(torch.zeros(2)),
    'torch.func.grad': lambda asked: torch.func.grad(lambda x: asked(x).sum())(torch.zeros(2)),
    'torch.jit.trace': lambda asked: torch.jit.trace(lambda x: asked(x), torch.zeros(2), check_trace=False),
    'make_fx': lambda asked: torch.fx.experimental.proxy_tensor.make_fx(lambda x: asked(x))(torch.zeros(2)),
}


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', TRANSFORMED)
def test_who_traces_or_transforms_is_heard(name: str) -> None:
    asked = Asked()
    TRANSFORMED[name](asked)
    assert asked.answers
    assert not any(asked.answers)
    asked(torch.ones(2))
    assert asked.answers[-1], 'and not for ever'


def test_the_compiler_is_heard() -> None:
    def asked(tensor: Tensor) -> Tensor:
        return tensor * 2 if is_eager_cpu(tensor) else tensor * 3

    assert torch.compile(asked, backend='eager', fullgraph=True)(torch.ones(1)) == 3
    assert asked(torch.ones(1)) == 2


def test_a_traced_graph_mends() -> None:
    """It must not have taken the way of the valid labels that it was traced with."""
    logits = torch.randn(4, 3)
    make_fx = pytest.importorskip('torch.fx.experimental.proxy_tensor').make_fx
    traced = make_fx(lambda target: cross_entropy(logits, target))(torch.tensor([0, 1, 2, 0]))
    torch.testing.assert_close(
        traced(torch.tensor([0, 7, 2, 0])), F.cross_entropy(logits[[0, 2, 3]], torch.tensor([0, 2, 0]))
    )


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('strict', [True, False])
def test_an_exported_graph_mends(strict: bool) -> None:
    class Model(torch.nn.Module):
        def forward(self, logits: Tensor, target: Tensor) -> Tensor:
            return cross_entropy(logits, target)

    logits = torch.randn(4, 3)
    exported = torch.export.export(Model(), (logits, torch.tensor([0, 1, 2, 0])), strict=strict).module()
    expected = F.cross_entropy(logits[[0, 2, 3]], torch.tensor([0, 2, 0]))
    torch.testing.assert_close(exported(logits, torch.tensor([0, 7, 2, 0])), expected)
