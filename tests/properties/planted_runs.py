"""Planted faults of a training that only running it shows; imported by configs through custom_imports."""

from __future__ import annotations

from typing import Any, Iterator, Optional

import numpy as np
import torch
from mmcv.transforms import BaseTransform
from mmengine.registry import FUNCTIONS
from mmseg.datasets import BaseSegDataset
from mmseg.models import FCNHead
from mmseg.registry import DATA_SAMPLERS, DATASETS, MODELS, TRANSFORMS
from torch import Tensor, nn


@TRANSFORMS.register_module()
class DividedBy255(BaseTransform):
    def transform(self, results: dict) -> dict:
        results['img'] = results['img'].astype(np.float32) / 255
        return results


@TRANSFORMS.register_module()
class SometimesFlipsImage(BaseTransform):
    """Flips one image in four, or those with a label, without the labels; a crop hides it from the pipeline's end."""

    def __init__(self, label: Optional[int] = None) -> None:
        self.label = label

    def transform(self, results: dict) -> dict:
        if np.random.rand() < 0.25 if self.label is None else (results['gt_seg_map'] == self.label).any():
            results['img'] = np.ascontiguousarray(results['img'][:, ::-1])
        return results


@TRANSFORMS.register_module()
class DropsSample(BaseTransform):
    def transform(self, results: dict) -> None:
        return None


@TRANSFORMS.register_module()
class IgnoresObjects(BaseTransform):
    def transform(self, results: dict) -> dict:
        results['gt_seg_map'] = np.where(results['gt_seg_map'] > 0, 255, results['gt_seg_map'])
        return results


@DATASETS.register_module()
class ReversedLabels(BaseSegDataset):
    """Pairs each image with the labels of another one."""

    def load_data_list(self) -> list:
        found = super().load_data_list()
        for one, path in zip(found, [one['seg_map_path'] for one in found][::-1]):
            one['seg_map_path'] = path
        return found


@DATA_SAMPLERS.register_module()
class FirstTwo(torch.utils.data.Sampler):
    def __init__(self, dataset: Any, shuffle: bool = True, seed: Any = None) -> None: ...

    def __iter__(self) -> Iterator[int]:
        while True:
            yield from (0, 1)

    def __len__(self) -> int:
        return 2


@FUNCTIONS.register_module()
def collate_pairs(batch: list) -> dict:
    return dict(inputs=torch.stack([one[0] for one in batch]), data_samples=[one[1] for one in batch])


@MODELS.register_module()
class DetachedScores(FCNHead):
    def forward(self, inputs: Any) -> Tensor:
        return self.cls_seg(self.convs(self._transform_inputs(inputs).detach()))


@MODELS.register_module()
class NanWithoutClass(nn.Module):
    """Divides by the number of pixels of class 1."""

    loss_name = 'loss_nan'

    def forward(self, scores: Tensor, labels: Tensor, ignore_index: int = 255, **_: Any) -> Tensor:
        found = (labels == 1).float()
        loss = nn.functional.cross_entropy(scores, labels, ignore_index=ignore_index)
        return loss * found.sum() / found.sum()
