"""PyTorch's own test inputs: the samples of its operator and module databases, its references and its misuses."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

import pytest
import torch
import torch.nn.functional as F
from this_torch import skip_without_half_precision
from torch import Tensor

from mmguard.functional import binary_cross_entropy_with_logits, cross_entropy
from mmguard.nn import BCEWithLogitsLoss, CrossEntropyLoss

invocations = pytest.importorskip('torch.testing._internal.common_methods_invocations')
modules = pytest.importorskip('torch.testing._internal.common_modules')
# These two freeze torch.backends for the whole process; mmengine sets flags of cuDNN there in later tests.
torch.backends.flags_frozen.__globals__['__allow_nonbracketed_mutation_flag'] = True

LOSSES = {
    'nn.functional.cross_entropy': (F.cross_entropy, cross_entropy),
    'nn.functional.binary_cross_entropy_with_logits': (
        F.binary_cross_entropy_with_logits,
        binary_cross_entropy_with_logits,
    ),
}
MODULES = {'CrossEntropyLoss': CrossEntropyLoss, 'BCEWithLogitsLoss': BCEWithLogitsLoss}


def with_distributions(name: str, logits: Tensor, args: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The samples' probabilities are any numbers in [0, 1]; here their rows are made to add up to 1."""
    target = args[0]
    if name != 'nn.functional.cross_entropy' or target.shape != logits.shape:
        return args
    total = target.detach().sum(1, keepdim=True)
    return ((target.detach() / total).requires_grad_(target.requires_grad), *args[1:])


def outcome(loss: Callable[..., Tensor], logits: Tensor, args: Tuple[Any, ...], kwargs: Any) -> List[Tensor]:
    """The value, and the gradients of all inputs that want one."""
    value = loss(logits, *args, **kwargs)
    inputs = [t for t in (logits, *args) if isinstance(t, Tensor) and t.requires_grad]
    upstream = torch.linspace(1, 2, max(value.numel(), 1), dtype=value.dtype)[: value.numel()].view(value.shape)
    return [value.detach(), *torch.autograd.grad(value, inputs, upstream)]


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize('name', LOSSES)
def test_samples_of_the_operator(name: str, dtype: torch.dtype) -> None:
    skip_without_half_precision(dtype)
    (info,) = [op for op in invocations.op_db if op.name == name]
    tolerance = 1e-6 if dtype in (torch.float32, torch.float64) else 16 * torch.finfo(dtype).eps
    number = 0
    for sample in info.sample_inputs('cpu', dtype, requires_grad=True):
        args = with_distributions(name, sample.input, sample.args)
        theirs, ours = (outcome(loss, sample.input, args, sample.kwargs) for loss in LOSSES[name])
        for actual, expected in zip(ours, theirs):
            torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
        assert len(ours) == len(theirs) >= 2
        number += 1
    assert number >= 10


@pytest.mark.parametrize('name', MODULES)
def test_samples_of_the_module_against_the_reference(name: str) -> None:
    info = next((m for m in modules.module_db if m.module_cls is getattr(torch.nn, name)), None)
    if info is None:
        pytest.skip(f'torch {torch.__version__} has no samples of {name}')
    cases = info.module_inputs_func(info, 'cpu', torch.float64, requires_grad=False, training=True)
    compared = 0
    for case in cases:
        made = MODULES[name](*case.constructor_input.args, **case.constructor_input.kwargs).double()
        inputs, kwargs = case.forward_input.args, case.forward_input.kwargs
        actual = made(*inputs, **kwargs)
        stock = getattr(torch.nn, name)(*case.constructor_input.args, **case.constructor_input.kwargs).double()
        expected = stock(*inputs, **kwargs)
        if expected.isnan().any():  # PyTorch drew the ignored class for every element
            assert actual == 0
            continue
        torch.testing.assert_close(actual, expected, msg=case.desc)
        if case.reference_fn is not None:
            torch.testing.assert_close(actual, case.reference_fn(made, *inputs, **kwargs), msg=case.desc)
        compared += 1
    assert compared >= 3


def test_the_misuses_that_pytorch_tests() -> None:
    (info,) = [m for m in modules.module_db if m.module_cls is torch.nn.CrossEntropyLoss]
    if getattr(info, 'module_error_inputs_func', None) is None:
        pytest.skip('this torch has no such list')
    cases = info.module_error_inputs_func(info, 'cpu', torch.float32, requires_grad=False, training=True)
    for case in cases:
        given = case.module_error_input
        constructor, forward = given.constructor_input, given.forward_input
        made = CrossEntropyLoss(*constructor.args, **constructor.kwargs)
        with pytest.raises(case.error_type) as caught:
            made(*forward.args, **forward.kwargs)
        assert isinstance(caught.value, (TypeError, ValueError))
    assert len(cases) >= 5
