"""Both ways through the losses, on a CPU."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Iterator

import pytest
from torch.utils._python_dispatch import TorchDispatchMode


class Watched(TorchDispatchMode):
    """Does nothing; but whoever looks at values, instead of working on them, has to stop doing so."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@pytest.fixture(params=['eager CPU', 'any device'])
def each_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """As on a CPU, where PyTorch's loss is asked first, and as everywhere else, where the labels are always mended."""
    with nullcontext() if request.param == 'eager CPU' else Watched():
        yield
