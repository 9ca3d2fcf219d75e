"""Logits and targets for the comparisons with PyTorch, and a loss with its gradient."""

from __future__ import annotations

from typing import Tuple

import torch
from hypothesis import settings
from torch import Tensor

#: The same examples in every run.
STABLE = settings(max_examples=120, derandomize=True, deadline=None)

CLASSES = 4
#: Logits: unbatched, (N, C), and one to three dimensions more; without any element, too.
SHAPES = [(4,), (6, 4), (3, 4, 5), (2, 4, 3, 5), (2, 4, 2, 3, 2)]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def elements(shape: Tuple[int, ...]) -> Tuple[int, ...]:
    return () if len(shape) == 1 else (shape[0], *shape[2:])


def logits_and_target(
    shape: Tuple[int, ...], dtype: torch.dtype = torch.float32, seed: int = 0
) -> Tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(shape, generator=generator, dtype=torch.float64)
    target = torch.randint(0, CLASSES, elements(shape), generator=generator)
    return logits.to(dtype), target


def distributions(shape: Tuple[int, ...], dtype: torch.dtype = torch.float32, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    dim = 1 if len(shape) > 1 else 0
    return torch.randn(shape, generator=generator, dtype=torch.float64).softmax(dim).to(dtype)


def assert_same(actual: Tuple[Tensor, Tensor], expected: Tuple[Tensor, Tensor], tolerance: float = 0) -> None:
    """Value and gradient, dtypes and shapes."""
    for what, ours, theirs in zip(('value', 'gradient'), actual, expected):
        torch.testing.assert_close(
            ours, theirs, rtol=tolerance, atol=tolerance, msg=lambda text, w=what: f'{w}: {text}'
        )
