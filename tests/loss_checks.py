"""A loss with its gradient, the rule for an explicit ``avg_factor`` in numbers, and operators that wait for a GPU."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, Optional, Tuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

#: They wait, or have a shape that depends on the data.
WAITING = (
    'aten._local_scalar_dense', 'aten.item', 'aten.is_nonzero', 'aten.nonzero', 'aten.masked_select', 'aten.unique',
    'aten._unique', 'aten.equal', 'aten.bincount', 'aten.repeat_interleave.Tensor',
)  # fmt: skip


def value_and_grad(loss: Any, scores: Tensor, *args: Any, **kwargs: Any) -> Tuple[Tensor, Tensor]:
    """Return the loss and the gradient of the scores; element-wise losses are summed with unequal factors."""
    leaf = scores.detach().clone().requires_grad_()
    value = loss(leaf, *args, **kwargs)
    assert value.requires_grad, 'the loss does not hang on the graph'
    factors = torch.arange(1, value.numel() + 1, dtype=value.dtype).view(value.shape)
    (value * factors).sum().backward()
    assert leaf.grad is not None
    return value.detach(), leaf.grad


def same(left: Dict[str, Tensor], right: Dict[str, Tensor]) -> bool:
    """Return True if losses and gradients by name are equal bit for bit; all must be finite."""
    assert all(value.isfinite().all() for value in (*left.values(), *right.values()))
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def factor_left(factor: float, kept: float, counted: float) -> float:
    """What is left of a factor where ``kept`` of the ``counted`` elements of a call are valid."""
    if factor == kept:  # counted without the invalid ones
        left = factor
    elif factor >= counted:  # counted over several calls
        left = factor - (counted - kept)
    else:  # averaged, or chosen by hand
        left = factor * kept / counted
    return max(left, min(factor, 1.0))


class NoWait(TorchDispatchMode):
    """Fails on whatever would wait for a GPU, and counts the operators."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple = (), kwargs: Optional[Dict] = None) -> Any:
        self.seen += 1
        name = str(func)
        assert not name.startswith(WAITING), name
        # PyTorch fills a mask with a single value (its own label smoothing, before torch 2.1) without a wait.
        fills = name.startswith('aten.index_put') and args[2].numel() == 1
        if name.startswith(('aten.index.', 'aten.index_put')) and not fills:
            assert all(index is None or str(index.dtype) not in ('torch.bool', 'torch.uint8') for index in args[1]), (
                name
            )
        return func(*args, **(kwargs or {}))


#: They give a tensor another shape and launch nothing.
VIEWS = {
    'alias', 'detach', 'expand', 'permute', 'select', 'slice', 'split_with_sizes', 'squeeze', 'unbind', 'unsqueeze',
    'view', '_unsafe_view',
}  # fmt: skip


class Operations(TorchDispatchMode):
    """Counts the operators by name, views left out."""

    def __init__(self) -> None:
        super().__init__()
        self.names: Counter = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple = (), kwargs: Optional[Dict] = None) -> Any:
        name = func.overloadpacket.__name__
        self.names[name] += name not in VIEWS
        return func(*args, **(kwargs or {}))


def count_operations(loss: Callable[[Tensor], Tensor], scores: Tensor) -> Counter:
    """Count the operators of a loss, forward and backward."""
    leaf = scores.detach().clone().requires_grad_()
    with Operations() as operations:
        loss(leaf).backward()
    return +operations.names
