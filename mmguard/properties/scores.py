"""Calls of losses, gradients of the scores that they train, and the outputs that labels raise."""

from __future__ import annotations

import contextlib
import copy
from functools import wraps
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

import torch
from torch import Tensor

from mmguard.properties.datasets import seed_all
from mmguard.properties.result import Result, broken, note, ran
from mmguard.text import quantity

#: Share of the best margin below which an output cannot be separated from the next one.
CLEAR = 0.2
#: Relative error of gradients that rounding may cause.
ROUNDING = 1e-6


class LossCall(NamedTuple):
    """Call of a loss module.

    Attributes:
        name (str): Name of the module.
        args (tuple): Positional arguments.
        kwargs (dict): The other ones.
        output (Any): Returned value; ``None`` if the loss raised an exception.
    """

    name: str
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    output: Any

    @property
    def scores(self) -> Optional[Tensor]:
        """First argument that a model computed, of at least two axes."""
        tensors = walk_tensors((*self.args, *self.kwargs.values()))
        return next((one for one in tensors if one.requires_grad and one.dim() > 1), None)

    @property
    def labels(self) -> Optional[Tensor]:
        """Integer labels of shape (N, ...) for scores of shape (N, C, ...)."""
        scores = self.scores
        shape = None if scores is None else (scores.shape[0], *scores.shape[2:])
        tensors = walk_tensors((*self.args, *self.kwargs.values()))
        return next((one for one in tensors if not one.is_floating_point() and one.shape == shape), None)

    def get_gradient(self) -> Optional[Tensor]:
        """Return the gradient of the scores, from this loss only; ``None`` if it does not train them."""
        scores, outputs = self.scores, [one for one in walk_tensors(self.output) if one.requires_grad]
        if scores is None or not outputs or not scores.numel():
            return None
        whole = sum((one.sum() for one in outputs), torch.zeros(()))
        return torch.autograd.grad(whole, scores, retain_graph=True, allow_unused=True)[0]


class BackwardTrace(NamedTuple):
    """Trace of one backward pass: the losses in order, those not finite, and the parameters with a gradient."""

    names: Tuple[str, ...]
    infinite: Tuple[str, ...]
    parameters: FrozenSet[str]

    def describe_infinite(self) -> str:
        """Name the losses that are not finite."""
        return f'not finite: {", ".join(self.infinite)}' if self.infinite else ''

    def describe_lack(self, other: BackwardTrace) -> str:
        """Describe the losses and gradients that another batch lacks, such as one without targets; empty if nothing."""
        if other.infinite:
            return other.describe_infinite()
        if other.names != self.names:
            named = ', '.join(sorted(set(other.names) ^ set(self.names))) or 'in another order'
            return f'losses that differ from those with targets ({named})'
        missing = sorted(self.parameters - other.parameters)
        return f'{quantity(len(missing), "parameter")} without a gradient, as {missing[0]}' if missing else ''


def sum_losses(losses: Mapping[str, Tensor]) -> Tensor:
    """Return the sum of the losses, as a training minimizes it."""
    return sum((loss for name, loss in losses.items() if 'loss' in name), torch.zeros(()))


def trace_backward(
    model: torch.nn.Module,
    compute: Callable[[], Mapping[str, Tensor]],
    add: Callable[[Mapping[str, Tensor]], Tensor] = sum_losses,
) -> BackwardTrace:
    """Compute and add up the losses of a batch, and find the parameters that a backward pass would reach."""
    model.zero_grad(set_to_none=True)
    seed_all(0)
    losses = compute()
    whole = add(losses)
    infinite = tuple(name for name, loss in losses.items() if not bool(torch.isfinite(loss)))
    nodes = walk_graph(whole)
    if any('Checkpoint' in type(node).__name__ for node in nodes):  # their parameters are in a graph of their own
        whole.backward()
        held = {id(one) for one in model.parameters() if one.grad is not None}
        model.zero_grad(set_to_none=True)
    else:
        held = {id(node.variable) for node in nodes if hasattr(node, 'variable')}
    parameters = frozenset(name for name, one in model.named_parameters() if id(one) in held)
    return BackwardTrace(tuple(losses), infinite, parameters)


def walk_graph(tensor: Tensor) -> Set[Any]:
    """Return the nodes of the graph that a tensor was computed in: a backward pass would run them."""
    found: Set[Any] = set()
    left = [tensor.grad_fn]
    while left:
        node = left.pop()
        if node is not None and node not in found:
            found.add(node)
            left += [other for other, _ in node.next_functions]
    return found


@contextlib.contextmanager
def share_features(model: Any) -> Iterator[None]:
    """Compute the features of the first batch of images only, without a graph: later ones must show the same images."""
    extract: Any = getattr(model, 'extract_feat', None)
    known: List[Any] = []

    def extract_once(*args: Any, **kwargs: Any) -> Any:
        if not known:
            with torch.no_grad():
                known.append(extract(*args, **kwargs))
        return copy.deepcopy(known[0])  # heads change them in place

    if extract is None:
        yield
        return
    model.extract_feat = extract_once
    try:
        yield
    finally:
        del model.extract_feat


@contextlib.contextmanager
def record_calls(modules: Mapping[str, Any]) -> Iterator[List[LossCall]]:
    """Record the calls of modules, in the order in which they end.

    ``forward`` is replaced, since heads of mmseg call it themselves, which bypasses the hooks of PyTorch.
    """
    calls: List[LossCall] = []

    def record(name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(forward)
        def run(*args: Any, **kwargs: Any) -> Any:
            output = None
            try:
                output = forward(*args, **kwargs)
                return output
            finally:
                calls.append(LossCall(name, args, kwargs, output))

        return run

    for name, module in modules.items():
        module.forward = record(name, module.forward)
    try:
        yield calls
    finally:
        for module in modules.values():
            del module.forward


def walk_tensors(value: Any) -> Iterator[Tensor]:
    """Walk the tensors in nested lists, tuples and dicts."""
    if torch.is_tensor(value):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from walk_tensors(inner)


def find_losses(model: Any) -> Dict[str, Any]:
    """Return the modules that are losses, by their names."""
    return {
        name: module
        for name, module in model.named_modules()
        if 'loss' in name and type(module).forward is not torch.nn.Module.forward and not list(module.children())
    }


def measure_share(gradient: Tensor, mask: Tensor) -> float:
    """Return the largest gradient (N, C, ...) where a mask (N, ...) is true, as a share of the largest elsewhere."""
    sizes = gradient.abs().amax(1)
    inside, outside = (float(sizes[one].max()) if bool(one.any()) else 0.0 for one in (mask, ~mask))
    return inside / outside if outside else float('inf') if inside else 0.0


def find_raised_outputs(gradients: Tensor) -> List[Optional[int]]:
    """Return the output that each label raises; ``None`` if no output is clearly raised most.

    Args:
        gradients (Tensor): Summed gradient of each output (columns) for a target of each label (rows).

    Example:
        >>> import torch
        >>> find_raised_outputs(torch.tensor([[-1.0, 0.5, 0.5], [0.5, 0.5, -1.0]]))
        [0, 2]
    """
    raised = gradients - gradients.mean(0, keepdim=True)
    lowest, outputs = raised.sort(dim=1)
    scale = float(raised.abs().max())
    if scale <= 10 * ROUNDING * gradients.abs().max():
        return [None] * len(gradients)  # the labels make no difference
    found: List[Optional[int]] = []
    for values, order in zip(lowest.tolist(), outputs.tolist()):
        is_clear = values[1] - values[0] > CLEAR * abs(values[0]) and -values[0] > CLEAR * scale
        found.append(order[0] if is_clear else None)
    return found


def judge_outputs(
    place: str, outputs: Mapping[int, Optional[int]], where: str, names: Sequence[str] = (), zeros: Sequence[int] = ()
) -> Result:
    """Compare the outputs that labels reached with the labels."""
    wrong = {label: output for label, output in outputs.items() if output is not None and output != label}
    data: Dict[str, Any] = dict(outputs={str(label): output for label, output in outputs.items()})

    def describe(label: int) -> str:
        return f'{label} ({names[label]})' if label < len(names) else str(label)

    if wrong:
        pairs = [f'label {describe(label)} trains output {describe(output)}' for label, output in wrong.items()]
        return broken(place, ', '.join(pairs), data)
    if zeros:
        words = f'{", ".join(map(describe, zeros))} changes no output: the loss gives this label a gradient of zero'
        return broken(place, f'label {words}', dict(data, zeros=zeros))
    if set(outputs.values()) == {None}:
        return note(place, f'no label clearly raises one output of the untrained head ({where})', data)
    return ran(place, where, data)
