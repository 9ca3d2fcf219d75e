"""The likely cause of invalid class indices, from one batch of them, in words of plain PyTorch."""

from __future__ import annotations

from typing import Dict, Optional

import torch
import torch.nn.functional as F
from torch import Tensor


def likely_cause(
    target: Tensor, histogram: Dict[int, int], values: Dict[int, int], num_classes: int, ignore_index: int
) -> Optional[str]:
    """``'MG115 The labels count from 1: ... Subtract one: target = target - 1.'``, or ``None``.

    Args:
        target (Tensor): Class indices, any shape.
        histogram (dict[int, int]): Value -> count of all of them, ignored ones left out.
        values (dict[int, int]): Value -> count of the invalid ones.
        num_classes (int): Number of classes.
        ignore_index (int): The class index that takes no part.
    """
    # Not before something is wrong: training needs nothing of it.
    from mmguard.findings import LabelFacts
    from mmguard.findings.facts import MapFacts
    from mmguard.findings.frameworks import in_pytorch

    at_edges = _share_between(target, values) if target.dim() == 3 else None
    facts = LabelFacts(
        values=values,
        num_classes=num_classes,
        ignore_index=ignore_index,
        total=target.numel(),
        histogram=histogram,
        maps=None if at_edges is None else MapFacts(at_edges=at_edges),
    )
    found = in_pytorch(facts)
    return f'{found[0].code} {found[0].title} {found[0].advice}' if found else None


def _share_between(target: Tensor, values: Dict[int, int]) -> Optional[float]:
    """Of the invalid pixels of (N, H, W) the share with a lower and a higher value among their eight neighbours.

    The least and the greatest value of all can have no such neighbours (the 255 of a 0/255 mask), and are left out.
    """
    maps = target.unsqueeze(1).double()
    least, greatest = int(target.min()), int(target.max())
    inner = [value for value in values if least < value < greatest]
    if len(inner) < 2:  # a single value in between may be a class of its own
        return None
    high = F.max_pool2d(maps, 3, stride=1, padding=1)
    low = -F.max_pool2d(-maps, 3, stride=1, padding=1)
    asked = torch.isin(maps, torch.tensor(inner, dtype=maps.dtype, device=maps.device))
    between = (low < maps) & (maps < high) & asked
    return int(between.count_nonzero()) / int(asked.count_nonzero())
