"""The guard among nnU-Net's transforms: right where raw labels end and targets begin."""

from __future__ import annotations

from typing import Any, List

import torch
from batchgeneratorsv2.transforms.base.basic_transform import BasicTransform
from batchgeneratorsv2.transforms.nnunet.seg_to_onehot import MoveSegAsOneHotToDataTransform
from batchgeneratorsv2.transforms.utils.compose import ComposeTransforms
from batchgeneratorsv2.transforms.utils.deep_supervision_downsampling import DownsampleSegForDSTransform
from batchgeneratorsv2.transforms.utils.seg_to_regions import ConvertSegmentationToRegionsTransform

from mmguard.labels.space import LabelRule
from mmguard.nnunet.label_space import MARK
from mmguard.nnunet.sample_tally import append_tally

try:
    from batchgeneratorsv2.transforms.utils.remove_label import RemoveLabelTransform
except ImportError:  # as it was spelt before
    from batchgeneratorsv2.transforms.utils.remove_label import RemoveLabelTansform as RemoveLabelTransform

#: What makes targets of labels: the guard must look before them.
_MAKE_TARGETS = (
    MoveSegAsOneHotToDataTransform,
    ConvertSegmentationToRegionsTransform,
    DownsampleSegForDSTransform,
)


class GuardedTransforms(BasicTransform):
    """nnU-Net's transforms with a look at every voxel's label, in the data loader's workers.

    Invalid labels get the label to ignore, before regions are made of them (where they would be background without a
    word) and before coarser targets are. What was found goes on as the last entry of the sample's segmentation, see
    :mod:`mmguard.nnunet.sample_tally`.

    Args:
        transforms (ComposeTransforms): What nnU-Net made for training or validation. Regions get one more channel, the
            voxels to leave out, where they have none (``rule.ignore_index`` is :data:`MARK`).
        rule (LabelRule): What is valid, and what becomes of the rest.

    Raises:
        TypeError: ``transforms`` is no list of transforms.
    """

    def __init__(self, transforms: Any, rule: LabelRule) -> None:
        super().__init__()
        steps = getattr(transforms, 'transforms', None)
        if not isinstance(steps, list):
            raise TypeError(
                f'the transforms of a guarded nnU-Net trainer must be a ComposeTransforms, got '
                f'{type(transforms).__name__}: let get_training_transforms return ComposeTransforms([...])'
            )
        position = _guard_position(steps)
        self.before = ComposeTransforms(steps[:position])
        self.after = ComposeTransforms(steps[position:])
        self.rule = rule
        if rule.ignore_index == MARK:
            for step in self.after.transforms:
                if isinstance(step, ConvertSegmentationToRegionsTransform):
                    step.regions = [*step.regions, torch.tensor([float(MARK)])]

    def apply(self, data_dict: dict, **params: Any) -> dict:
        data_dict = self.before(**data_dict)
        segmentation = data_dict['segmentation']
        # Channel 1, in a cascade, is the previous stage's prediction: no labels of the data set.
        sanitized, tally = self.rule.sanitize(segmentation[0].numpy())
        if tally:
            segmentation = segmentation.clone()
            segmentation[0] = torch.from_numpy(sanitized)
            data_dict['segmentation'] = segmentation
        data_dict = self.after(**data_dict)
        data_dict['segmentation'] = append_tally(data_dict['segmentation'], tally)
        return data_dict


def _guard_position(steps: List[Any]) -> int:
    """Behind the transform that makes what lies outside of the image background (-1 -> 0), before targets are made."""
    for position, step in enumerate(steps):
        if isinstance(step, RemoveLabelTransform):
            return position + 1
    return next((i for i, step in enumerate(steps) if isinstance(step, _MAKE_TARGETS)), len(steps))
