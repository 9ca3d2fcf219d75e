"""One map for the masks of all instances, as mmyolo's ``Polygon2Mask`` draws it: 0 is none, n is the n-th instance."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def renumber_unpacked(results: Any, stays: np.ndarray) -> None:
    """Has the map of a sample, not packed yet, count the instances that stay; nothing happens without one."""
    if isinstance(results.get('gt_panoptic_seg'), Tensor) and results.get('gt_masks') is None:
        results['gt_panoptic_seg'] = renumbered(results['gt_panoptic_seg'], stays)


def renumber_packed(sample: Any, stays: np.ndarray) -> None:
    """The same for a packed sample; one whose instances have masks of their own is about something else."""
    held = sample.get('gt_panoptic_seg')
    if held is not None and 'pan_seg' in held and 'masks' not in sample.gt_instances:
        held.pan_seg = renumbered(held.pan_seg, stays)


def renumbered(overlap: Tensor, stays: np.ndarray) -> Tensor:
    """A map for the instances that stay; where another stood there is none.

    Args:
        overlap (Tensor): Integers up to N, of any shape.
        stays (np.ndarray): bool (N,).

    Returns:
        Tensor: Of the same dtype and shape. A map that counts further than N is returned as it is.

    Example:
        >>> renumbered(torch.tensor([0, 1, 2, 3]), np.array([True, False, True]))
        tensor([0, 1, 0, 2])
    """
    if overlap.numel() and int(overlap.max()) > len(stays):
        return overlap
    numbers = np.concatenate(([0], np.where(stays, np.cumsum(stays), 0)))
    return torch.from_numpy(numbers)[overlap.long()].to(overlap.dtype)
