"""Guard that runs among nnU-Net's transforms, before the step that turns labels into targets.

The loader passes on only ``data``, ``target`` and ``keys``, but the target may be a list of tensors of any
dtype (deep supervision). So the counts travel as the last entry of the target: from the worker to the trainer,
without an extra file or queue, in the order of the samples.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
from batchgeneratorsv2.transforms.base.basic_transform import BasicTransform
from batchgeneratorsv2.transforms.nnunet.seg_to_onehot import MoveSegAsOneHotToDataTransform
from batchgeneratorsv2.transforms.utils.compose import ComposeTransforms
from batchgeneratorsv2.transforms.utils.deep_supervision_downsampling import DownsampleSegForDSTransform
from batchgeneratorsv2.transforms.utils.seg_to_regions import ConvertSegmentationToRegionsTransform
from torch import Tensor

from mmguard.labels.rules import LabelRule
from mmguard.labels.tally import VALUES, Tally
from mmguard.nnunet.label_space import EXCLUDED_LABEL

_WIDTH = 4 + 2 * VALUES


def to_tensor(tally: Tally, several: bool = True) -> Tensor:
    """Encode a tally as an int64 tensor of shape (4 + 2 * VALUES,).

    The numbers are ``several`` (1 if the segmentation has several resolutions), elements seen, skipped and remapped,
    then pairs of value and count, padded with 0.

    Example:
        >>> from_tensor(to_tensor(Tally(total=9, skipped=2, values={7: 2})), 'case_001')
        Tally(total=9, skipped=2, remapped=0, values={7: 2}, source='case_001', reasons={}, mapped=0, other_values=0)
    """
    numbers = [int(several), tally.total, tally.skipped, tally.remapped]
    for value, count in tally.values.items():
        numbers += [value, count]
    return torch.tensor(numbers + [0] * (_WIDTH - len(numbers)))


def from_tensor(numbers: Tensor, source: Optional[str]) -> Tally:
    _, total, skipped, remapped, *pairs = numbers.tolist()
    values = {value: count for value, count in zip(pairs[::2], pairs[1::2]) if count}
    others = skipped + remapped - sum(values.values())
    return Tally(total, skipped, remapped, values, source, other_values=others)


def append_tally(segmentation: Any, tally: Tally) -> List[Tensor]:
    """Return a sample's segmentation (a tensor, or a list of resolutions) as a list that ends with the counts."""
    several = isinstance(segmentation, (list, tuple))
    return [*(segmentation if several else [segmentation]), to_tensor(tally, several)]


def take_tallies(batch: dict) -> Tuple[dict, Optional[List[Tally]]]:
    """Separate the counts from a batch.

    Args:
        batch (dict): Batch of nnU-Net's data loader: ``data``, ``target``, and in ``keys`` the names of the cases.

    Returns:
        tuple: The batch as nnU-Net expects it; and a list with a tally per sample, which is ``None`` if the batch did
        not pass the guarded transforms.
    """
    target = batch['target']
    if not isinstance(target, list) or not _is_tally(target[-1]):
        return batch, None
    *resolutions, counts = target
    tallies = [from_tensor(row, key) for row, key in zip(counts, find_case_names(batch))]
    several = bool(counts[0, 0])
    return {**batch, 'target': resolutions if several else resolutions[0]}, tallies


def sanitize_batch(batch: dict, rule: LabelRule) -> Tuple[dict, List[Tally]]:
    """Sanitize on the CPU a batch of labels (not of regions) that did not pass the guarded transforms.

    Args:
        batch (dict): ``data``, ``target`` (shape (B, 1, *), or a list of such tensors), and optionally ``keys``.
        rule (LabelRule): Defines the valid labels and the treatment of the rest.

    Returns:
        tuple: A new batch, and a tally per sample. If the target is a list, only its first tensor is counted.
    """
    target, cases = batch['target'], find_case_names(batch)
    sanitized = [_sanitize(part, rule, cases) for part in (target if isinstance(target, list) else [target])]
    targets = [part for part, _ in sanitized]
    return {**batch, 'target': targets if isinstance(target, list) else targets[0]}, sanitized[0][1]


def _sanitize(target: Tensor, rule: LabelRule, cases: List[Optional[str]]) -> Tuple[Tensor, List[Tally]]:
    found = [rule.sanitize(labels.long().cpu().numpy(), case) for labels, case in zip(target, cases)]
    if not any(tally for _, tally in found):
        return target, [tally for _, tally in found]
    sanitized = torch.stack([torch.from_numpy(labels) for labels, _ in found])
    return sanitized.to(target.device, target.dtype), [tally for _, tally in found]


def find_case_names(batch: dict) -> List[Optional[str]]:
    """Return the case name of each sample of a batch; each one is ``None`` if the batch has no names."""
    keys = batch.get('keys')
    return [None] * len(batch['data']) if keys is None else [str(key) for key in keys]


def _is_tally(tensor: Any) -> bool:
    return isinstance(tensor, Tensor) and tensor.dtype == torch.int64 and tensor.shape[1:] == (_WIDTH,)


try:
    from batchgeneratorsv2.transforms.utils.remove_label import RemoveLabelTransform
except ImportError:  # its earlier spelling
    from batchgeneratorsv2.transforms.utils.remove_label import RemoveLabelTansform as RemoveLabelTransform

#: Transforms that make targets of labels: the guard must come before them.
_MAKE_TARGETS = (MoveSegAsOneHotToDataTransform, ConvertSegmentationToRegionsTransform, DownsampleSegForDSTransform)


class GuardedTransforms(BasicTransform):
    """nnU-Net's transforms with a check of every voxel's label, which runs in the data loader's workers.

    Invalid labels are sanitized before regions are made from them (where they would silently become background)
    and before targets are downsampled. The tally travels as the last entry of the sample's segmentation, see
    :func:`append_tally`.

    Args:
        transforms (ComposeTransforms): nnU-Net's transforms for training or validation. If ``rule.ignore_index`` is
            ``EXCLUDED_LABEL``, regions get one more channel, which marks the voxels to leave out.
        rule (LabelRule): Defines the valid labels and the treatment of the rest.

    Raises:
        TypeError: ``transforms.transforms`` is not a list.
    """

    def __init__(self, transforms: Any, rule: LabelRule) -> None:
        super().__init__()
        steps = getattr(transforms, 'transforms', None)
        if not isinstance(steps, list):
            raise TypeError(
                f'the transforms of a guarded nnU-Net trainer must be a ComposeTransforms, got '
                f'{type(transforms).__name__}: let get_training_transforms return ComposeTransforms([...])'
            )
        position = _find_guard_position(steps)
        self.before = ComposeTransforms(steps[:position])
        self.after = ComposeTransforms(steps[position:])
        self.rule = rule
        if rule.ignore_index == EXCLUDED_LABEL:
            for step in self.after.transforms:
                if isinstance(step, ConvertSegmentationToRegionsTransform):
                    step.regions = [*step.regions, torch.tensor([float(EXCLUDED_LABEL)])]

    def apply(self, data_dict: dict, **params: Any) -> dict:
        data_dict = self.before(**data_dict)
        segmentation = data_dict['segmentation']
        # Channel 1, in a cascade, is the previous stage's prediction, not a label of the data set.
        sanitized, tally = self.rule.sanitize(segmentation[0].numpy())
        if tally:
            segmentation = segmentation.clone()
            segmentation[0] = torch.from_numpy(sanitized)
            data_dict['segmentation'] = segmentation
        data_dict = self.after(**data_dict)
        data_dict['segmentation'] = append_tally(data_dict['segmentation'], tally)
        return data_dict


def _find_guard_position(steps: List[Any]) -> int:
    """Return the index of the step after RemoveLabelTransform, or else of the first step that makes targets."""
    for position, step in enumerate(steps):
        if isinstance(step, RemoveLabelTransform):
            return position + 1
    return next((i for i, step in enumerate(steps) if isinstance(step, _MAKE_TARGETS)), len(steps))
