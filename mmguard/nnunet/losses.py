"""Losses of nnU-Net that exclude invalid voxels, built from the stock losses and their settings."""

from __future__ import annotations

from typing import Any, List, Optional

import torch
import torch.nn.functional as F
from nnunetv2.training.loss.compound_losses import DC_and_BCE_loss, DC_and_CE_loss, DC_and_topk_loss
from nnunetv2.training.loss.deep_supervision import DeepSupervisionWrapper
from nnunetv2.training.loss.dice import MemoryEfficientSoftDiceLoss, SoftDiceLoss
from nnunetv2.training.loss.robust_ce_loss import RobustCrossEntropyLoss, TopKLoss
from torch import Tensor, nn

from mmguard.functional import Sanitized, sanitize_target
from mmguard.functional.update import build_counts
from mmguard.functional.validate import format_shape


def cross_entropy(stock: nn.CrossEntropyLoss, logits: Tensor, sanitized: Sanitized) -> Tensor:
    """Compute ``RobustCrossEntropyLoss`` as a mean over the voxels to keep, with the class weights of ``stock``.

    Args:
        stock (RobustCrossEntropyLoss): nnU-Net's loss; its weight, ignore_index and label_smoothing apply.
        logits (Tensor): Shape (B, C, *), floating point.
        sanitized (Sanitized): Labels of shape (B, *).
    """
    total = _compute_per_voxel(stock, logits, sanitized, 'sum')
    if stock.weight is None:
        return total / sanitized.keep.sum().clamp(min=1)
    weights = (stock.weight[sanitized.target] * sanitized.keep).sum()
    return total / torch.where(weights > 0, weights, torch.ones_like(weights))


def top_k_cross_entropy(stock: Any, logits: Tensor, sanitized: Sanitized) -> Tensor:
    """Compute ``TopKLoss``: the mean over the k % of the voxels with the largest loss.

    nnU-Net takes k % of all voxels, including ignored voxels; this loss takes k % of the valid and the ignored voxels.

    Args:
        stock (TopKLoss): nnU-Net's loss.
        logits (Tensor): Shape (B, C, *), floating point.
        sanitized (Sanitized): Labels of shape (B, *).
    """
    loss = _compute_per_voxel(stock, logits, sanitized, 'none').flatten()
    # Sorted: only the device knows how many of these voxels count.
    hardest, _ = torch.topk(loss, int(loss.numel() * stock.k / 100), sorted=True)
    number = ((loss.numel() - sanitized.invalid.sum()) * stock.k / 100).long()
    taken = torch.arange(hardest.numel(), device=loss.device) < number
    return torch.where(taken, hardest, 0.0).sum() / number.clamp(min=1)


def binary_cross_entropy(
    stock: nn.BCEWithLogitsLoss, logits: Tensor, regions: Tensor, keep: Tensor, per_voxel: bool
) -> Tensor:
    """Compute the binary cross entropy of regions over the kept voxels.

    Args:
        stock (BCEWithLogitsLoss): nnU-Net's loss; its weight and pos_weight apply.
        logits (Tensor): Shape (B, R, *), floating point.
        regions (Tensor): 0 or 1, same shape as ``logits``.
        keep (Tensor): Bool, True for the voxels to keep, shape (B, 1, *).
        per_voxel (bool): True divides by the number of kept voxels, as nnU-Net does if an ignore label is declared;
            False divides by that number times the number of regions.
    """
    weight = keep.to(logits.dtype) if stock.weight is None else keep * stock.weight
    total = F.binary_cross_entropy_with_logits(
        logits, regions.to(logits.dtype), weight=weight, pos_weight=stock.pos_weight, reduction='sum'
    )
    return total / (keep.sum() * (1 if per_voxel else logits.shape[1])).clamp(min=1)


def _compute_per_voxel(stock: nn.CrossEntropyLoss, logits: Tensor, sanitized: Sanitized, reduction: str) -> Tensor:
    """Compute nnU-Net's cross entropy of the kept voxels: the sum, or with ``reduction='none'`` a value per voxel."""
    return F.cross_entropy(
        logits,
        torch.where(sanitized.keep, sanitized.target, stock.ignore_index),
        weight=stock.weight,
        ignore_index=stock.ignore_index,
        reduction=reduction,
        label_smoothing=stock.label_smoothing,
    )


_DICE = (MemoryEfficientSoftDiceLoss, SoftDiceLoss)


class GuardedLabelLoss(nn.Module):
    """Dice and cross entropy of labels; a voxel whose label is not a class of the network is excluded from both.

    ``loss = weight_ce * CE + weight_dice * Dice``, equal to the stock loss where all labels are valid. If no voxel is
    left, the cross entropy is 0, and Dice is a constant (-1 with nnU-Net's smoothing, as in a stock loss that ignores
    all voxels). The loss is then finite and attached to the graph, and its gradient is 0.

    Args:
        ce (RobustCrossEntropyLoss or TopKLoss, optional): nnU-Net's cross entropy.
        dc (nn.Module, optional): nnU-Net's Dice loss, compiled or not.
        weight_ce (float): Weight of the cross entropy, which is not computed if the weight is 0.
        weight_dice (float): Weight of the Dice loss, which is not computed if the weight is 0.
        ignore_label (int): The label to leave out.
    """

    def __init__(
        self,
        ce: Optional[RobustCrossEntropyLoss],
        dc: Optional[nn.Module],
        weight_ce: float,
        weight_dice: float,
        ignore_label: int,
    ) -> None:
        super().__init__()
        self.ce = ce
        self.dc = dc
        self.weight_ce = weight_ce
        self.weight_dice = weight_dice
        self.ignore_label = ignore_label
        self._counts: Optional[Tensor] = None

    def forward(self, net_output: Tensor, target: Tensor) -> Tensor:
        """Return the loss as a 0-d tensor.

        Args:
            net_output (Tensor): Logits, shape (B, C, *).
            target (Tensor): Labels, shape (B, 1, *).

        Raises:
            ValueError: The shape of ``target`` does not match ``net_output``.
        """
        expected = (net_output.shape[0], 1, *net_output.shape[2:])
        if tuple(target.shape) != expected:
            raise ValueError(
                f'expected target of shape {expected}, one label per voxel of the network output, got '
                f'{format_shape(target)}. Deep supervision targets must be in the order of the outputs'
            )
        sanitized = sanitize_target(target, net_output.shape[1], self.ignore_label)
        if self._counts is None:  # the coarser targets that follow hold the same voxels again
            # Not the property: the compiler of torch 2.1 does not follow it.
            self._counts = build_counts(target.numel(), sanitized.valid, sanitized.on_invalid)
        terms: List[Tensor] = []
        if self.ce is not None and self.weight_ce != 0:
            voxel_term = top_k_cross_entropy if isinstance(self.ce, TopKLoss) else cross_entropy
            terms.append(self.weight_ce * voxel_term(self.ce, net_output, _drop_channel(sanitized)))
        if self.dc is not None and self.weight_dice != 0:
            terms.append(self.weight_dice * self.dc(net_output, sanitized.target, loss_mask=sanitized.keep))
        if not terms:
            return net_output.sum() * 0  # both weights are 0: stay attached to the graph
        loss = terms[0]
        for term in terms[1:]:  # not sum(): the compiler of torch 2.1 does not follow it
            loss = loss + term
        return loss

    def take_counts(self) -> Optional[Tensor]:
        """Return int64 [seen, skipped, remapped] voxels of the first forward since the last call; if none, ``None``."""
        counts, self._counts = self._counts, None
        return counts


class GuardedRegionLoss(nn.Module):
    """Dice and BCE of regions; a voxel whose label is neither in a region nor background is excluded from both.

    Regions alone cannot distinguish such a voxel from background, so the target marks it in an additional last channel,
    which :class:`~mmguard.nnunet.transforms.GuardedTransforms` adds.

    Args:
        bce (BCEWithLogitsLoss, optional): nnU-Net's binary cross entropy.
        dc (nn.Module): nnU-Net's Dice loss, compiled or not.
        weight_ce (float): Weight of the binary cross entropy.
        weight_dice (float): Weight of the Dice loss.
        per_voxel (bool): See :func:`binary_cross_entropy`.
    """

    def __init__(
        self, bce: Optional[nn.BCEWithLogitsLoss], dc: nn.Module, weight_ce: float, weight_dice: float, per_voxel: bool
    ) -> None:
        super().__init__()
        self.ce = bce
        self.dc = dc
        self.weight_ce = weight_ce
        self.weight_dice = weight_dice
        self.per_voxel = per_voxel

    def forward(self, net_output: Tensor, target: Tensor) -> Tensor:
        """Return the loss as a 0-d tensor.

        Args:
            net_output (Tensor): Logits, shape (B, R, *).
            target (Tensor): 0 or 1 (or bool), shape (B, R + 1, *): the regions, then the voxels to leave out.

        Raises:
            ValueError: The shape of ``target`` does not match ``net_output``.
        """
        expected = (net_output.shape[0], net_output.shape[1] + 1, *net_output.shape[2:])
        if tuple(target.shape) != expected:
            raise ValueError(
                f'expected target of shape {expected}, with a last channel that marks the voxels to leave out, got '
                f'{format_shape(target)}. ConvertSegmentationToRegionsTransform of a guarded trainer adds this '
                f'channel; your own data loader must add it, too'
            )
        keep, regions = ~target[:, -1:].bool(), target[:, :-1]
        loss = self.weight_dice * self.dc(net_output, regions, loss_mask=keep)
        if self.ce is not None:
            bce = binary_cross_entropy(self.ce, net_output, regions, keep, self.per_voxel)
            loss = self.weight_ce * bce + loss
        return loss


def guard_loss(loss: nn.Module, ignore_label: int, declared: bool, has_regions: bool) -> nn.Module:
    """Return the guarded version of a loss of nnU-Net; a ``DeepSupervisionWrapper`` around the loss is kept.

    Args:
        loss (nn.Module): Result of ``_build_loss`` of a trainer.
        ignore_label (int): The label of voxels to leave out.
        declared (bool): True if the data set declares an ignore label.
        has_regions (bool): True if targets are regions.

    Raises:
        TypeError: The loss is not a loss of nnU-Net, so its treatment of ignored voxels is unknown.
    """
    if isinstance(loss, DeepSupervisionWrapper):
        loss.loss = guard_loss(loss.loss, ignore_label, declared, has_regions)
        return loss
    if isinstance(loss, DC_and_BCE_loss):
        return GuardedRegionLoss(loss.ce, loss.dc, loss.weight_ce, loss.weight_dice, declared)
    if isinstance(loss, (DC_and_CE_loss, DC_and_topk_loss)):
        return GuardedLabelLoss(loss.ce, loss.dc, loss.weight_ce, loss.weight_dice, ignore_label)
    if isinstance(loss, RobustCrossEntropyLoss):  # TopKLoss is a subclass
        return GuardedLabelLoss(loss, None, 1, 0, ignore_label)
    if _is_dice(loss):
        if has_regions:
            return GuardedRegionLoss(None, loss, 0, 1, declared)
        return GuardedLabelLoss(None, loss, 0, 1, ignore_label)
    raise TypeError(
        f'{type(loss).__name__} is not a loss of nnU-Net, so mmguard cannot exclude voxels from it. mmguard guards '
        'DC_and_CE_loss, DC_and_BCE_loss, DC_and_topk_loss, RobustCrossEntropyLoss, TopKLoss, SoftDiceLoss and '
        'MemoryEfficientSoftDiceLoss, with or without a DeepSupervisionWrapper. Build the loss from these, or '
        f'override guard_loss() of the trainer: invalid voxels have the label {ignore_label} by then'
    )


def _is_dice(loss: nn.Module) -> bool:
    return isinstance(getattr(loss, '_orig_mod', loss), _DICE)  # torch.compile keeps the module there


def _drop_channel(sanitized: Sanitized) -> Sanitized:
    """Drop the channel dimension: (B, 1, *) -> (B, *)."""
    # Not _replace(): the compiler of torch 2.1 does not follow it.
    return Sanitized(
        target=sanitized.target[:, 0],
        keep=sanitized.keep[:, 0],
        invalid=sanitized.invalid[:, 0],
        ignored=sanitized.ignored[:, 0],
        valid=sanitized.valid,
        skipped=sanitized.skipped[:, 0],
        on_invalid=sanitized.on_invalid,
    )
