"""What a replay hides from torch while it runs."""

from __future__ import annotations

import contextlib
import os
from typing import ContextManager, Iterator


@contextlib.contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """Sets an environment variable for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def without_gpu() -> ContextManager[None]:
    """Hides the GPUs from whatever looks for one."""
    return environment('CUDA_VISIBLE_DEVICES', '')
