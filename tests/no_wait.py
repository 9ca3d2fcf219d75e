"""Operators that wait for a GPU."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from torch.utils._python_dispatch import TorchDispatchMode

#: They wait, or have a shape that depends on the data.
WAITING = (
    'aten._local_scalar_dense', 'aten.item', 'aten.is_nonzero', 'aten.nonzero', 'aten.masked_select', 'aten.unique',
    'aten._unique', 'aten.equal', 'aten.bincount', 'aten.repeat_interleave.Tensor',
)  # fmt: skip


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
