"""Scores of heads, the losses trained on them, and the gradients in between."""

from __future__ import annotations

import contextlib
from functools import lru_cache, wraps
from typing import (
    TYPE_CHECKING,
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
    Tuple,
)

import torch
from torch import Tensor

from mmguard.properties.datasets import seed_all
from mmguard.text import quantity

if TYPE_CHECKING:
    from mmguard.properties.program import Program

#: Share of the best margin below which an output cannot be separated from the next one.
CLEAR = 0.2
#: Relative error of gradients that rounding may cause.
ROUNDING = 1e-6
#: Number of cells at the border of the ignored half that an interpolation reaches.
MARGIN = 2


class Call(NamedTuple):
    """Call of a module: its name, the arguments and, unless it raised, the returned value."""

    name: str
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    output: Any


class TrainedScores(NamedTuple):
    """Tensor number n returned by a head that a loss trains directly, with its gradient."""

    head: str
    number: int
    loss: str
    scores: Tensor
    gradient: Tensor


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
    """Compute and add up the losses of a batch, and trace the backward pass."""
    model.zero_grad(set_to_none=True)
    try:
        seed_all(0)
        losses = compute()
        whole = add(losses)
        if whole.requires_grad:
            seed_all(0)
            whole.backward()
        infinite = tuple(name for name, loss in losses.items() if not bool(torch.isfinite(loss)))
        parameters = frozenset(name for name, one in model.named_parameters() if one.grad is not None)
    finally:
        model.zero_grad(set_to_none=True)
    return BackwardTrace(tuple(losses), infinite, parameters)


@contextlib.contextmanager
def record_calls(modules: Mapping[str, Any]) -> Iterator[List[Call]]:
    """Record the calls of modules, in the order in which they end.

    ``forward`` is replaced, since heads of mmseg call it themselves, which bypasses the hooks of PyTorch.
    """
    calls: List[Call] = []

    def record(name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(forward)
        def run(*args: Any, **kwargs: Any) -> Any:
            output = None
            try:
                output = forward(*args, **kwargs)
                return output
            finally:
                calls.append(Call(name, args, kwargs, output))

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


def train_on(program: Program, heads: Mapping[str, Any], samples: Sequence[Any], side: int = 0) -> List[TrainedScores]:
    """Return the tensors that each loss of a batch trains directly, not through later tensors.

    If a head computes its features from earlier scores (OCRNet, PointRend, K-Net), their gradient tells nothing about
    the loss.
    """
    with record_calls(heads) as calls:
        losses = program.compute_losses(samples, side)
    seen = [(call.name, tensor) for call in calls for tensor in walk_tensors(call.output)]
    tensors = [(name, tensor) for name, tensor in seen if tensor.requires_grad and tensor.dim() > 1]
    feeds = lru_cache(maxsize=None)(lambda n, later: _depends_on(tensors[later][1], tensors[n][1]))
    found = []
    for term, loss in losses.items() if tensors else ():
        if not loss.requires_grad:
            continue
        gradients = torch.autograd.grad(loss, [tensor for _, tensor in tensors], retain_graph=True, allow_unused=True)
        reached = [n for n, gradient in enumerate(gradients) if gradient is not None and bool(gradient.any())]
        for place, n in enumerate(reached):
            if not any(feeds(n, later) for later in reached[place + 1 :]):
                name, tensor = tensors[n]
                number = sum(other == name for other, _ in tensors[:n])
                found.append(
                    TrainedScores(name, number, term, tensor.detach(), gradients[n])
                )  # without the graph: it is large
    return found


def _depends_on(output: Tensor, tensor: Tensor) -> bool:
    (gradient,) = torch.autograd.grad(output.sum(), tensor, retain_graph=True, allow_unused=True)
    return gradient is not None


def find_pixel_heads(program: Program) -> Dict[str, Any]:
    """Return the modules that score each class at each pixel, by their names.

    Other heads have other targets, such as edges in STDC; their number of classes or outputs differs.
    """
    heads = {
        name: module
        for name, module in program.build_model().named_modules()
        if name and isinstance(getattr(module, 'num_classes', None), int)
        if 'semantic' in name or (program.kind == 'pixels' and module.num_classes == program.num_classes)
    }
    first = next(iter(heads.values()), None)
    return {name: module for name, module in heads.items() if _list_outputs(module) == _list_outputs(first)}


def _list_outputs(head: Any) -> Tuple[int, Any]:
    return head.num_classes, getattr(head, 'out_channels', head.num_classes)


def is_score_map(scores: Tensor, head: Any, batch: int) -> bool:
    """Return True for scores of shape (N, C, H, W) with a channel per class."""
    return scores.dim() == 4 and scores.shape[:2] in {(batch, size) for size in _list_outputs(head)}


def measure_ignored_share(gradient: Tensor) -> float:
    """Return the largest gradient in the left, ignored half as a share of the right half's; -1 with too few columns."""
    half = gradient.shape[-1] // 2
    if half <= MARGIN:
        return -1.0
    inside = float(gradient[..., : half - MARGIN].abs().max())
    outside = float(gradient[..., half:].abs().max())
    return inside / outside if outside else float('inf')


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
