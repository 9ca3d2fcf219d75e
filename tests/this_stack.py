"""What the tests ask of this environment: which stack and which torch are here, and what their stock code does."""

from __future__ import annotations

from importlib import metadata
from typing import Callable, NamedTuple, Tuple

import pytest
import torch
import torch.nn.functional as F

from mmguard.compat.stack import ONEDL, build_base_source, find_stacks

#: The onedl forks are here, not OpenMMLab's packages.
IS_ONEDL = ONEDL in find_stacks(str(found.metadata['Name']) for found in metadata.distributions())


def weighted_cases_that_fail(shape: str, ignored: str) -> int:
    """Of the 8 with class weights, mean, no avg_factor, half of them with avg_non_ignore: how many stock fails on.

    Args:
        shape (str): ``'2-D'``, ``'4-D'`` scores.
        ignored (str): What is ignored: ``'nothing'``, ``'in range'``, else a value that is no class.
    """
    if IS_ONEDL:  # F3: the mask fits where labels are flat and none is ignored
        return 0 if (shape, ignored) == ('2-D', 'nothing') else 4
    return 8 if ignored not in ('nothing', 'in range') else 0  # F1


def base_line(name: str) -> str:
    """``_base_`` as ``mmguard apply`` writes it: the short name where this mmengine resolves it."""
    is_short = not (IS_ONEDL and name.startswith('mmseg::'))
    return f'_base_ = [{name!r}]' if is_short else f'_base_ = [{build_base_source(name)}]'


def is_here(codes: Tuple[str, ...]) -> bool:
    """Whether a report with one of these codes as its cause can be of this stack: MG214 is F1."""
    return not (IS_ONEDL and 'MG214' in codes)


def skip_where_torch_fails(call: Callable[[], object]) -> None:
    """Skips the test that asks it where PyTorch's own call, the same without mmguard, fails."""
    skip_where_stock_fails(call, stock=f'torch {torch.__version__}')


def skip_where_stock_fails(call: Callable[[], object], stock: str = 'the stock loss') -> None:
    try:
        call()
    except Exception as error:  # whatever stock raises
        pytest.skip(f'{stock} itself fails: {(str(error).splitlines() or [type(error).__name__])[0]}')


class _Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor

    def added(self) -> torch.Tensor:
        return self.left + self.right


def compiles_named_tuples() -> bool:
    """torch 2.0 compiles no method of a named tuple: the graph breaks there, and the rest is compiled."""
    try:
        torch.compile(lambda x: _Pair(x, x).added(), fullgraph=True, backend='eager')(torch.ones(1))
        return True
    except Exception:
        return False


def skip_without_half_precision(dtype: torch.dtype) -> None:
    """torch < 2.2 has no softmax of float16 on a CPU."""
    skip_where_torch_fails(lambda: F.cross_entropy(torch.zeros(2, 3, dtype=dtype), torch.zeros(2, dtype=torch.long)))
    zeros = torch.zeros(2, 3, dtype=dtype)
    skip_where_torch_fails(lambda: F.binary_cross_entropy_with_logits(zeros, zeros))


def skip_without_autocast(dtype: torch.dtype) -> None:
    """torch < 2.2 has no autocast to float16 on a CPU."""

    def call() -> None:
        with torch.autocast('cpu', dtype=dtype):
            F.cross_entropy(torch.zeros(2, 3), torch.zeros(2, dtype=torch.long))

    skip_where_torch_fails(call)


def skip_where_one_hot_waits() -> None:
    """``F.one_hot`` of torch < 2.2, which some stock losses call, looks at the labels: no compiler gets past it."""

    def call() -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode() as mode:
            F.one_hot(mode.from_tensor(torch.tensor([0, 4])), num_classes=5)

    skip_where_torch_fails(call)
