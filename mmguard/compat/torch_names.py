"""PyTorch names that are private in some or all releases.

Each name has a fallback for releases without it; ``tests/compat/test_compat.py`` tests each fallback.
"""

from __future__ import annotations

import inspect
import os
from typing import Any, Callable

import torch
from torch import Tensor

try:
    from torch.compiler import is_compiling  # torch >= 2.3
except ImportError:
    try:
        from torch._utils import is_compiling  # torch 2.0 to 2.2: no public name; the compiler knows this one
    except ImportError:  # torch 1.13 has no compiler

        def is_compiling() -> bool:
            """Return True if ``torch.compile`` traces this call."""
            return False


try:
    # No public name distinguishes a tensor with only shape and dtype (shape propagation) from a real one.
    from torch._subclasses.fake_tensor import FakeTensor
except ImportError:
    FakeTensor = ()  # type: ignore[assignment,misc]


def is_fake(tensor: Tensor) -> bool:
    """Return True if ``tensor`` has a shape and dtype but no data."""
    return isinstance(tensor, FakeTensor)


def outlives_call(tensor: Tensor) -> bool:
    """Return True if ``tensor`` can be stored for the next call: it is neither fake nor wrapped by ``torch.func``.

    A tensor that ``torch.compile`` traces can be stored: it represents the real tensor.
    """
    return not is_fake(tensor) and (is_compiling() or has_memory(tensor))


def has_memory(tensor: Tensor) -> bool:
    """Return True if ``tensor`` has memory (a non-zero ``data_ptr()``). torch 2.1 cannot compile this function."""
    try:
        return tensor.data_ptr() != 0
    except RuntimeError:  # a wrapper of a transform has no memory of its own
        return False


def is_recomputed() -> bool:
    """Return True if activation checkpointing (``use_reentrant=False``) repeats this call for the backward pass.

    With ``use_reentrant=True`` only the call in the backward pass tracks gradients. PyTorch does not report this, so
    this function looks for the unpack hook of ``torch.utils.checkpoint`` on the call stack. It must not be compiled.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name.startswith('unpack') and frame.f_globals.get('__name__') == 'torch.utils.checkpoint':
            return True
        frame = frame.f_back
    return False


def runs_triton(tensor: Tensor) -> bool:
    """Return True if Triton kernels run on the device of ``tensor``: a GPU, or any if TRITON_INTERPRET=1."""
    return tensor.is_cuda or os.environ.get('TRITON_INTERPRET') == '1'


def exclude_from_compile(call: Callable[..., Any]) -> Callable[..., Any]:
    """Exclude ``call`` from compilation by ``torch.compile``, so that it causes a graph break."""
    if hasattr(torch, 'compiler'):
        return torch.compiler.disable(call)
    # torch 2.0 has no public name yet; torch 1.13 has no compiler
    dynamo = getattr(torch, '_dynamo', None)
    return call if dynamo is None else dynamo.disable(call)


def get_default_store() -> Any:
    """Return the store that the ranks of the process group used to connect.

    Raises:
        Exception: The process group is not initialized.
    """
    # PyTorch has no public name for the store. A second store would need an address and port that every rank reaches.
    return torch.distributed.distributed_c10d._get_default_store()


__all__ = [
    'exclude_from_compile',
    'get_default_store',
    'has_memory',
    'is_compiling',
    'is_fake',
    'is_recomputed',
    'outlives_call',
    'runs_triton',
]
