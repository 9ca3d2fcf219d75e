"""A loss with its gradient."""

from __future__ import annotations

from typing import Any, Tuple

import torch
from torch import Tensor


def value_and_grad(loss: Any, scores: Tensor, *args: Any, **kwargs: Any) -> Tuple[Tensor, Tensor]:
    """Return the loss and the gradient of the scores; element-wise losses are summed with unequal factors."""
    leaf = scores.detach().clone().requires_grad_()
    value = loss(leaf, *args, **kwargs)
    assert value.requires_grad, 'the loss does not hang on the graph'
    factors = torch.arange(1, value.numel() + 1, dtype=value.dtype).view(value.shape)
    (value * factors).sum().backward()
    assert leaf.grad is not None
    return value.detach(), leaf.grad
