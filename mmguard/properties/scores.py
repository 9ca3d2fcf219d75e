"""Traces of gradients: the parameters that a batch reaches, and the outputs that each label raises."""

from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor

from mmguard.properties.datasets import seed_all
from mmguard.properties.result import Result, broken, note, ran
from mmguard.text import quantity

#: Minimum margin of a label's first output over its second output, as a share of the first.
CLEAR = 0.2
#: Relative error of gradients that rounding may cause.
ROUNDING = 1e-6
#: Value in place of an output if a label gives all outputs a gradient of zero.
NO_OUTPUT = -1


class BackwardTrace(NamedTuple):
    """Trace of a backward pass: names of all losses, of those not finite, and of the parameters with a gradient."""

    names: Tuple[str, ...]
    infinite: Tuple[str, ...]
    parameters: FrozenSet[str]

    def describe_infinite(self) -> str:
        """Return ``'not finite: ...'`` with the names of the losses, or '' if all losses are finite."""
        return f'not finite: {", ".join(self.infinite)}' if self.infinite else ''

    def describe_lack(self, other: BackwardTrace) -> str:
        """Describe infinite or different losses, or missing gradients, in another batch's trace; '' if it has none."""
        if other.infinite:
            return other.describe_infinite()
        if other.names != self.names:
            named = ', '.join(sorted(set(other.names) ^ set(self.names))) or 'in another order'
            return f'the names of the losses differ from those with targets ({named})'
        missing = sorted(self.parameters - other.parameters)
        return f'{quantity(len(missing), "parameter")} without a gradient, such as {missing[0]}' if missing else ''


def sum_losses(losses: Mapping[str, Tensor]) -> Tensor:
    """Return the sum of the values whose names contain ``'loss'``, which a training minimizes."""
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
    nodes, left = set(), [whole.grad_fn]  # nodes that a backward pass would run
    while left:
        node: Any = left.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            left += [other for other, _ in node.next_functions]
    if any('Checkpoint' in type(node).__name__ for node in nodes):  # their parameters are in separate graphs
        whole.backward()
        held = {id(one) for one in model.parameters() if one.grad is not None}
        model.zero_grad(set_to_none=True)
    else:
        held = {id(node.variable) for node in nodes if hasattr(node, 'variable')}
    parameters = frozenset(name for name, one in model.named_parameters() if id(one) in held)
    return BackwardTrace(tuple(losses), infinite, parameters)


def walk_tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested lists, tuples and dicts."""
    if torch.is_tensor(value):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from walk_tensors(inner)


def measure_share(gradient: Tensor, mask: Tensor) -> float:
    """Return the largest gradient (N, C, ...) inside a mask (N, ...), divided by the largest one outside."""
    sizes = gradient.abs().amax(1)
    inside, outside = (float(sizes[one].max()) if bool(one.any()) else 0.0 for one in (mask, ~mask))
    return 0.0 if inside <= ROUNDING * outside else inside / outside if outside else float('inf')


def find_raised_outputs(gradients: Tensor) -> List[Optional[int]]:
    """Return the output (column) that the summed gradients of each label (row) raise most; ``None`` if unclear.

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


def judge_outputs(place: str, outputs: Mapping[int, Optional[int]], where: str, names: Sequence[str] = ()) -> Result:
    """Return a result that compares each label with the output that it raises."""
    data: Dict[str, Any] = dict(outputs={str(label): output for label, output in outputs.items()})

    def describe(label: int) -> str:
        return f'{label} ({names[label]})' if label < len(names) else str(label)

    wrong = [
        f'label {describe(label)} trains output {describe(output)}'
        for label, output in outputs.items()
        if output is not None and output not in (NO_OUTPUT, label)
    ]
    zeros = [describe(label) for label, output in outputs.items() if output == NO_OUTPUT]
    if wrong:
        return broken(place, ', '.join(wrong), data)
    if zeros:
        words = 'changes no output: the loss gives this label a gradient of zero'
        return broken(place, f'label {", ".join(zeros)} {words}', data)
    if set(outputs.values()) == {None}:
        return note(place, f'no label clearly raises one output of the untrained head ({where})', data)
    return ran(place, where, data)
