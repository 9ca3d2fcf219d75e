"""Valid targets: value, gradient and dtype are those of PyTorch's own functions."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, List, Optional, Tuple

import pytest
import torch
import torch.nn.functional as F
from loss_checks import value_and_grad
from this_stack import skip_without_autocast, skip_without_half_precision
from torch import Tensor
from torch_cases import CLASSES, INTEGERS, SHAPES, assert_same, distributions, elements, logits_and_target

from mmguard.functional import binary_cross_entropy_with_logits, cross_entropy
from mmguard.nn import BCEWithLogitsLoss, CrossEntropyLoss

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


def test_half_precision_is_averaged_in_float32() -> None:
    """PyTorch adds up a number of elements beyond 65,504 to infinity on a GPU, and rounds on the CPU."""
    skip_without_half_precision(torch.float16)
    logits, target = torch.zeros(200_000, 2, dtype=torch.float16), torch.zeros(200_000, dtype=torch.long)
    loss, grad = value_and_grad(cross_entropy, logits, target)
    assert loss.dtype == torch.float16
    assert loss.item() == pytest.approx(0.6931, rel=1e-3)
    assert grad[0, 0] != 0


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
    tolerance = 0 if dtype in (torch.float32, torch.float64) else 16 * torch.finfo(dtype).eps
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
