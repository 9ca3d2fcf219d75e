"""Where a function may look at values: on a CPU, in plain eager mode."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter


def is_eager_cpu(*tensors: Tensor) -> bool:
    """Whether all of them lie on a CPU, hold numbers, and nobody traces or transforms what is done to them.

    Not so under torch.compile, torch.export, make_fx, torch.jit.trace, fake tensors, torch.func, forward-mode
    differentiation, ``is_grads_batched=True`` and subclasses of Tensor.
    """
    return (
        all(tensor.device.type == 'cpu' and type(tensor) in (Tensor, Parameter) for tensor in tensors)
        and forward_ad._current_level < 0
        and not torch.jit.is_tracing()
        and not _is_compiling()
        and not _is_dispatched()
        and not _is_functional()
    )


def _is_compiling() -> bool:
    compiler = getattr(torch, 'compiler', None)  # earlier releases have not all of what is looked for here
    return compiler is not None and compiler.is_compiling()


def _is_dispatched() -> bool:
    modes = getattr(torch._C, '_len_torch_dispatch_stack', None)
    return modes is not None and modes() > 0


def _is_functional() -> bool:
    active = getattr(torch._C, '_are_functorch_transforms_active', None)
    return (active is not None and active()) or _depth_of_vmap() > 0


def _depth_of_vmap() -> int:
    """Of the older vmap, behind ``is_grads_batched=True``: functorch does not know of it."""
    torch._C._vmapmode_increment_nesting()
    return torch._C._vmapmode_decrement_nesting()
