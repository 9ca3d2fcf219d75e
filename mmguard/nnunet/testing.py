"""Assertion for tests of the augmentation and the outputs of an nnU-Net trainer."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from mmguard.properties.result import Result
from mmguard.properties.scores import judge_outputs
from mmguard.testing import PropertyFailure, assert_moves_together, label_to_output
from mmguard.text import quantity

__all__ = ['assert_nnunet']


def assert_nnunet(trainer: Any, tries: int = 8) -> List[Result]:
    """Assert that nnU-Net's augmentation moves image and labels together, and that each label trains its own output.

    Args:
        trainer (nnUNetTrainer): A trainer of any class, of labels or regions, after ``initialize()``. No data are read.
        tries (int): Number of seeds for each plane of a volume.

    Returns:
        list[Result]: One result per plane, and one for the outputs; it is a note if no label clearly raises an output.

    Raises:
        PropertyFailure: Image and labels move differently (the message names the shift or flip, and the seed), or a
            label has no output of its own.
    """
    manager, configuration = trainer.label_manager, trainer.configuration_manager
    rotation, dummy, initial, mirror = trainer.configure_rotation_dummyDA_mirroring_and_inital_patch_size()
    sizes = (configuration.patch_size, rotation, trainer._get_deep_supervision_scales(), mirror, dummy)
    transforms = trainer.get_training_transforms(
        *sizes,
        use_mask_for_norm=configuration.use_mask_for_norm,
        is_cascaded=False,
        foreground_labels=manager.foreground_labels,
        regions=manager.foreground_regions if manager.has_regions else None,
        ignore_label=manager.ignore_label,
    )
    results: List[Result] = []

    def choose_first(levels: Any) -> Any:  # of deep supervision
        return levels[0] if isinstance(levels, (list, tuple)) else levels

    for depth in (0, 2) if len(initial) == 3 else (None,):
        plane = [int(size) for axis, size in enumerate(initial) if axis != depth]

        def move(image: np.ndarray, mask: np.ndarray, depth: Optional[int] = depth) -> Tuple[Any, Any]:
            volumes = [image[..., 0], (mask > 0) * int(manager.foreground_labels[-1])]
            if depth is not None:
                volumes = [np.moveaxis(np.stack([one] * int(initial[depth])), 0, depth) for one in volumes]
            shown = torch.from_numpy(volumes[0]).float().expand(trainer.num_input_channels, *initial).clone()
            found = transforms(image=shown, segmentation=torch.from_numpy(volumes[1])[None].to(torch.int16))
            target = choose_first(found['segmentation']).float().amax(0)
            moved = [found['image'][0], target.where(target >= 0, torch.tensor(255.0))]
            moved = moved if depth is None else [one.select(depth, one.shape[depth] // 2) for one in moved]
            return moved[0].numpy(), moved[1].numpy()

        results.append(assert_moves_together(move, size=(plane[0], plane[1]), tries=tries))

    images = torch.rand(2, trainer.num_input_channels, *configuration.patch_size, device=trainer.device)
    outputs = len(manager.foreground_regions) if manager.has_regions else manager.num_segmentation_heads

    def loss(logits: Any, label: int) -> Tensor:
        levels = logits if isinstance(logits, (list, tuple)) else [logits]
        targets = [one.new_full((2, 1, *one.shape[2:]), label) for one in levels]
        if manager.has_regions:
            index = torch.tensor(label, device=levels[0].device)
            targets = [torch.zeros_like(one).index_fill(1, index, 1.0) for one in levels]
        value: Tensor = trainer.loss(logits, targets if levels is logits else targets[0])
        return value

    network, batches = trainer.network.train(), lambda label: (images, label)
    reached = label_to_output(network, loss, batches, outputs, choose_first)
    judged = judge_outputs('', reached, f'{quantity(outputs, "label")} on made-up images')
    if judged.outcome == 'broken':
        raise PropertyFailure(judged)
    return [*results, judged]
