"""Parameters without a gradient, for which DistributedDataParallel waits."""

from __future__ import annotations

import re
from typing import Any, Iterable, List, Set

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel


def make_zero(module: Any, parameters: Iterable[Tensor] = ()) -> Tensor:
    """Return a zero that depends on parameters (default: all trainable ones), so that each gets a gradient of zeros.

    If DistributedDataParallel searches for unused parameters itself, it has marked them already and would not accept
    a second gradient, so the zero depends on nothing there.
    """
    hung = list(parameters) or [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not hung:
        return torch.zeros(())
    if getattr(module, 'find_unused_parameters', False):
        return torch.zeros((), device=hung[0].device)
    # Sums over nothing: 0 whatever a parameter holds, while 0 * inf would be NaN.
    return torch.stack([one.flatten()[:0].sum().float().to(hung[0].device) for one in hung]).sum()


def find_unreached(module: Any, losses: Iterable[Tensor]) -> List[str]:
    """Return the names of the parameters that DistributedDataParallel waits for and no loss reaches.

    Empty if it searches for them itself (``find_unused_parameters=True``, ``static_graph=True``), if ``module`` is
    not wrapped in it, and if activation checkpointing hides a part of the graph.
    """
    if not isinstance(module, DistributedDataParallel) or not torch.is_grad_enabled():
        return []
    if module.find_unused_parameters or getattr(module, 'static_graph', False):
        return []
    reached = _find_reached(losses)
    return [] if reached is None else [name for name, one in list_trainable(module) if id(one) not in reached]


def list_trainable(module: Any) -> List[Any]:
    """Return the parameters with ``requires_grad`` and their names, without the ``module.`` of a wrapper."""
    inner = module.module if isinstance(module, DistributedDataParallel) else module
    return [(name, one) for name, one in inner.named_parameters() if one.requires_grad]


def _find_reached(losses: Iterable[Tensor]) -> Any:
    """Return the ids of the leaves of a graph; ``None`` if a part of it is hidden."""
    leaves: Set[int] = {id(loss) for loss in losses if loss.requires_grad and loss.grad_fn is None}
    waiting: List[Any] = [loss.grad_fn for loss in losses if loss.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if 'Checkpoint' in node.name():  # with use_reentrant=True it builds its part of the graph in backward
            return None
        if hasattr(node, 'variable'):
            leaves.add(id(node.variable))
        following = {following for following, _ in node.next_functions if following is not None} - seen
        seen |= following
        waiting += following
    return leaves


def explain_error(error: Exception, model: Any) -> str:
    """Explain DistributedDataParallel's error about missing gradients, with names and a remedy; empty for others."""
    if 'Expected to have finished reduction' not in str(error):
        return ''
    names = [name for name, _ in list_trainable(model)]
    numbers = re.search(r'Parameter indices which did not receive grad for rank \d+:([\d ]+)', str(error))
    lacking = [names[int(number)] for number in numbers.group(1).split()] if numbers else []
    return (
        f'{", ".join(lacking) or "some parameters of another rank"} got no gradient in the previous iteration. A '
        'branch that is sometimes unused needs DistributedDataParallel(find_unused_parameters=True); a branch that '
        f'is never used (frozen, dropped) needs requires_grad=False. {error}'
    )


def add_names(message: str, module: Any) -> str:
    """Append the names of the parameters that a DistributedDataParallel message gives only as indices."""
    from mmguard.facts.run import find_unused  # needed only after a failure

    found = find_unused([message])
    if not found.indices or found.names or module is None:
        return message
    names = [name for name, _ in list_trainable(module)]
    lines = [
        f'Parameters which did not receive grad for rank {rank}: '
        f'{", ".join(names[one] for one in indices if one < len(names))}'
        for rank, indices in found.indices.items()
    ]
    return '\n'.join([message, *lines])
