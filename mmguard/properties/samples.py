"""Packed samples: made without data, given other labels, scaled down."""

from __future__ import annotations

import copy
from typing import Any, Dict, Sequence, Set, Tuple

import numpy as np
import torch
from mmengine.structures import InstanceData, PixelData
from torch import Tensor

from mmguard.config.read import ReadConfig
from mmguard.properties.alignment import Box
from mmguard.properties.result import Unavailable


def make_template(read: ReadConfig, framework: str) -> Any:
    """Return a packed sample with the fields that the training pipeline of a config asks for."""
    text = repr(read.data.get('train_dataloader'))
    meta = dict(img_path='image.png', img_id=0, img_shape=(64, 64), ori_shape=(64, 64), scale_factor=(1.0, 1.0))
    if framework == 'mmseg':
        from mmseg.structures import SegDataSample

        labels = SegDataSample(metainfo=meta)
        plane = torch.zeros((1, 64, 64), dtype=torch.int64)
        labels.gt_sem_seg = PixelData(data=plane)
        if 'GenerateEdge' in text:
            labels.gt_edge_map = PixelData(data=plane.clone())
        return {'inputs': torch.zeros((3, 64, 64), dtype=torch.uint8), 'data_samples': labels}
    if framework != 'mmdet':
        raise Unavailable('samples are made for MMSegmentation and MMDetection only, and the data are not here')
    from mmdet.structures import DetDataSample
    from mmdet.structures.mask import BitmapMasks

    found = DetDataSample(metainfo=meta)
    found.gt_instances = InstanceData(bboxes=torch.zeros((0, 4)), labels=torch.zeros(0, dtype=torch.int64))
    found.ignored_instances = InstanceData(bboxes=torch.zeros((0, 4)), labels=torch.zeros(0, dtype=torch.int64))
    is_panoptic = 'LoadPanopticAnnotations' in text
    if "'with_mask': True" in text or is_panoptic:
        found.gt_instances.masks = BitmapMasks([], 64, 64)
        found.ignored_instances.masks = BitmapMasks([], 64, 64)
    if "'with_seg': True" in text or is_panoptic:
        found.gt_sem_seg = PixelData(sem_seg=torch.zeros((1, 64, 64), dtype=torch.int64))
    if 'LoadProposals' in text:
        found.proposals = InstanceData(bboxes=torch.tensor([[4.0, 4.0, 40.0, 40.0], [20.0, 8.0, 60.0, 60.0]]))
        found.proposals.scores = torch.ones(2)
    return {'inputs': torch.zeros((3, 64, 64), dtype=torch.uint8), 'data_samples': found}


def make_instances(known: Any, boxes: Sequence[Box], labels: Sequence[int], side: int) -> Any:
    """Return instances with the fields of known ones."""
    number = len(boxes)
    fields: Dict[str, Any] = {}
    for name, value in known.items():
        if name == 'bboxes':
            tensor = torch.tensor(list(boxes), dtype=torch.float32).reshape(-1, 4)
            fields[name] = tensor if torch.is_tensor(value) else type(value)(tensor)
        elif name == 'labels':
            fields[name] = torch.tensor(list(labels), dtype=torch.int64)
        elif name == 'masks':
            fields[name] = make_masks(value, boxes, side, side)
        elif torch.is_tensor(value):
            fields[name] = value.new_zeros((number, *value.shape[1:]))
        else:
            fields[name] = [copy.deepcopy(value[0])] * number if len(value) else value
    return InstanceData(**fields)


def make_masks(known: Any, boxes: Sequence[Box], height: int, width: int) -> Any:
    """Return masks of the inside of boxes, of the class of known ones."""
    if hasattr(known, 'masks') and type(known).__name__ == 'PolygonMasks':
        outlines = [[np.array([x1, y1, x2, y1, x2, y2, x1, y2], np.float32)] for x1, y1, x2, y2 in boxes]
        return type(known)(outlines, height, width)
    planes = np.zeros((len(boxes), height, width), np.uint8)
    for plane, (x1, y1, x2, y2) in zip(planes, boxes):
        plane[round(y1) : round(y2), round(x1) : round(x2)] = 1
    return type(known)(planes, height, width)


def labels_of(sample: Any, kind: str) -> Set[int]:
    """Return the labels of a packed sample: of its instances (``kind='instances'``) or of its label map."""
    labels = sample['data_samples']
    if kind == 'instances':
        return set(labels.gt_instances.labels.tolist()) if 'labels' in labels.get('gt_instances', {}) else set()
    return {label for plane in labels.gt_sem_seg.values() for label in torch.unique(plane).tolist()}


def shrink(sample: Any, side: int) -> Any:
    """Resize a packed sample until its longer side is at most ``side``; smaller ones stay as they are."""
    inputs = sample['inputs']
    height, width = inputs.shape[-2:]
    factor = side / max(height, width)
    if factor >= 1:
        return sample
    size = (max(1, round(height * factor)), max(1, round(width * factor)))
    labels = copy.deepcopy(sample['data_samples'])
    for value in labels.all_values():
        if isinstance(value, PixelData):
            planes = {key: _resize(plane, size) for key, plane in value.items()}
            for key in list(planes):
                delattr(value, key)
            for key, plane in planes.items():
                setattr(value, key, plane)
        elif isinstance(value, InstanceData):
            if 'bboxes' in value:
                scaled = value.bboxes if torch.is_tensor(value.bboxes) else value.bboxes.tensor
                scaled *= torch.tensor([size[1] / width, size[0] / height] * 2)
            if 'masks' in value and hasattr(value.masks, 'resize'):
                value.masks = value.masks.resize(size)
    shapes = {key: size for key in ('img_shape', 'pad_shape', 'batch_input_shape') if key in labels.metainfo}
    labels.set_metainfo(shapes)
    return {**sample, 'inputs': _resize(inputs, size), 'data_samples': labels}


def _resize(plane: Tensor, size: Tuple[int, int]) -> Tensor:
    rows = torch.arange(size[0]) * plane.shape[-2] // size[0]
    columns = torch.arange(size[1]) * plane.shape[-1] // size[1]
    return plane[..., rows, :][..., columns]
