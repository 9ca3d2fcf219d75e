"""The voxel-wise terms of nnU-Net's losses (cross entropy, top-k, BCE), over valid voxels alone.

Each divides a sum by a count that stays on the device: a mean over the kept voxels, without a host synchronisation and
without NaN where none is kept.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmguard.functional import Sanitized


def cross_entropy(stock: nn.CrossEntropyLoss, logits: Tensor, sanitized: Sanitized) -> Tensor:
    """``RobustCrossEntropyLoss``: the mean over kept voxels (by class weight, where there are weights).

    Args:
        stock (RobustCrossEntropyLoss): nnU-Net's; its weight, ignore_index and label_smoothing hold.
        logits (Tensor): Shape (B, C, *), floating point.
        sanitized (Sanitized): Of labels of shape (B, *).
    """
    total = _per_voxel(stock, logits, sanitized, 'sum')
    if stock.weight is None:
        return total / sanitized.keep.sum().clamp(min=1)
    weights = (stock.weight[sanitized.target] * sanitized.keep).sum()
    return total / torch.where(weights > 0, weights, torch.ones_like(weights))


def top_k_cross_entropy(stock: Any, logits: Tensor, sanitized: Sanitized) -> Tensor:
    """``TopKLoss``: the mean over the k % of the voxels with the largest loss.

    nnU-Net takes k % of all voxels, declared ignored ones included; here of all but the invalid ones.

    Args:
        stock (TopKLoss): nnU-Net's.
        logits (Tensor): Shape (B, C, *), floating point.
        sanitized (Sanitized): Of labels of shape (B, *).
    """
    loss = _per_voxel(stock, logits, sanitized, 'none').flatten()
    # Sorted: how many of them count is known to the device alone.
    hardest, _ = torch.topk(loss, int(loss.numel() * stock.k / 100), sorted=True)
    number = ((loss.numel() - sanitized.invalid.sum()) * stock.k / 100).long()
    taken = torch.arange(hardest.numel(), device=loss.device) < number
    return torch.where(taken, hardest, 0.0).sum() / number.clamp(min=1)


def binary_cross_entropy(
    stock: nn.BCEWithLogitsLoss, logits: Tensor, regions: Tensor, keep: Tensor, per_voxel: bool
) -> Tensor:
    """The BCE of regions.

    Args:
        stock (BCEWithLogitsLoss): nnU-Net's; its weight and pos_weight hold.
        logits (Tensor): Shape (B, R, *), floating point.
        regions (Tensor): The same shape: 0 or 1.
        keep (Tensor): Bool, shape (B, 1, *).
        per_voxel (bool): Divide by the number of kept voxels, as nnU-Net does with a declared ignore label; else by
            kept voxels times regions, as it does without (the mean).
    """
    weight = keep.to(logits.dtype) if stock.weight is None else keep * stock.weight
    total = F.binary_cross_entropy_with_logits(
        logits, regions.to(logits.dtype), weight=weight, pos_weight=stock.pos_weight, reduction='sum'
    )
    return total / (keep.sum() * (1 if per_voxel else logits.shape[1])).clamp(min=1)


def _per_voxel(stock: nn.CrossEntropyLoss, logits: Tensor, sanitized: Sanitized, reduction: str) -> Tensor:
    """What nnU-Net's loss says of the kept voxels, none of them averaged."""
    return F.cross_entropy(
        logits,
        torch.where(sanitized.keep, sanitized.target, stock.ignore_index),
        weight=stock.weight,
        ignore_index=stock.ignore_index,
        reduction=reduction,
        label_smoothing=stock.label_smoothing,
    )
