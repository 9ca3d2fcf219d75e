"""Outputs of a classifier that targets of each class raise."""

from __future__ import annotations

from typing import List, Optional

from torch import Tensor

#: Share of the best margin below which an output is not separable from the next one.
CLEAR = 0.2
#: Share of the gradients that rounding may leave.
ROUNDING = 1e-5


def find_raised_outputs(gradients: Tensor) -> List[Optional[int]]:
    """Return the output that each label raises, ``None`` where no output is clearly raised most.

    Args:
        gradients (Tensor): Summed gradient of each output (columns) for a target of each label (rows).

    Example:
        >>> import torch
        >>> find_raised_outputs(torch.tensor([[-1.0, 0.5, 0.5], [0.5, 0.5, -1.0]]))
        [0, 2]
    """
    raised = gradients - gradients.mean(0, keepdim=True)
    lowest, outputs = raised.sort(dim=1)
    scale = raised.abs().max()
    if scale <= ROUNDING * gradients.abs().max():
        return [None] * len(gradients)  # no label makes a difference
    found: List[Optional[int]] = []
    for values, order in zip(lowest.tolist(), outputs.tolist()):
        margin = values[1] - values[0]
        is_clear = scale > 0 and values[0] < 0 and margin > CLEAR * abs(values[0]) and -values[0] > CLEAR * float(scale)
        found.append(order[0] if is_clear else None)
    return found
