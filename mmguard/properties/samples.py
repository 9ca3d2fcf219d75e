"""Packed samples: created without data, relabeled, or scaled down."""

from __future__ import annotations

import copy
from typing import Any, Dict, Sequence, Set

import numpy as np
import torch
from mmengine.structures import InstanceData, PixelData
from torch import Tensor

from mmguard.config.read import ReadConfig
from mmguard.properties.alignment import Box, fill_boxes
from mmguard.properties.result import Unavailable


def make_template(config: ReadConfig) -> Any:
    """Return a packed sample with the fields that a config's training pipeline requests."""
    text = repr(config.data.get('train_dataloader'))
    meta = dict(img_path='image.png', img_id=0, img_shape=(64, 64), ori_shape=(64, 64), scale_factor=(1.0, 1.0))
    plane = torch.zeros((1, 64, 64), dtype=torch.int64)
    labels: Any
    if config.framework == 'mmseg':
        from mmseg.structures import SegDataSample

        labels = SegDataSample(metainfo=meta, gt_sem_seg=PixelData(data=plane))
        if 'GenerateEdge' in text:
            labels.gt_edge_map = PixelData(data=plane.clone())
    elif config.framework == 'mmdet':
        from mmdet.structures import DetDataSample
        from mmdet.structures.mask import BitmapMasks

        is_panoptic = 'LoadPanopticAnnotations' in text
        fields: Dict[str, Any] = dict(bboxes=torch.zeros((0, 4)), labels=torch.zeros(0, dtype=torch.int64))
        if "'with_mask': True" in text or is_panoptic:
            fields['masks'] = BitmapMasks([], 64, 64)
        labels = DetDataSample(
            metainfo=meta, gt_instances=InstanceData(**fields), ignored_instances=InstanceData(**fields)
        )
        if "'with_seg': True" in text or is_panoptic:
            labels.gt_sem_seg = PixelData(sem_seg=plane)
        if 'LoadProposals' in text:
            boxes = torch.tensor([[4.0, 4.0, 40.0, 40.0], [20.0, 8.0, 60.0, 60.0]])
            labels.proposals = InstanceData(bboxes=boxes, scores=torch.ones(2))
    else:
        raise Unavailable('the data are missing, and samples can only be made for MMSegmentation and MMDetection')
    return {'inputs': torch.zeros((3, 64, 64), dtype=torch.uint8), 'data_samples': labels}


def make_blank(template: Any, side: int, seed: int) -> Any:
    """Return a packed sample of noise, without labels."""
    known = template['data_samples']
    channels = template['inputs'].shape[0]
    noise = np.random.default_rng(seed).integers(0, 256, (channels, side, side), dtype=np.uint8)
    fresh = type(known)(metainfo=known.metainfo)
    fresh.set_metainfo(dict.fromkeys(('img_shape', 'ori_shape', 'pad_shape', 'batch_input_shape'), (side, side)))
    fresh.set_metainfo(dict(scale_factor=(1.0, 1.0), flip=False, flip_direction=None))
    for name, value in known.items():
        if isinstance(value, PixelData):
            planes = {key: plane.new_zeros((*plane.shape[:-2], side, side)) for key, plane in value.items()}
            setattr(fresh, name, PixelData(metainfo=value.metainfo, **planes))
        elif name not in ('gt_instances', 'ignored_instances'):
            setattr(fresh, name, copy.deepcopy(value))
    sample = {name: copy.deepcopy(value) for name, value in template.items() if name != 'inputs'}
    return {**sample, 'inputs': torch.as_tensor(noise), 'data_samples': fresh}


def make_instances(template: Any, boxes: Sequence[Box], labels: Sequence[int], side: int) -> Any:
    """Return instances with the fields of known ones."""
    number = len(boxes)
    fields: Dict[str, Any] = {}
    for name, value in template.items():
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


def make_masks(template: Any, boxes: Sequence[Box], height: int, width: int) -> Any:
    """Return filled masks of boxes, of the same class as given masks."""
    masks: Any = [fill_boxes([box], height, width) for box in boxes]
    if type(template).__name__ == 'PolygonMasks':
        masks = [[np.array([x1, y1, x2, y1, x2, y2, x1, y2], np.float32)] for x1, y1, x2, y2 in boxes]
    return type(template)(masks, height, width)


def get_label_map(sample: Any) -> Tensor:
    """Return the label map of a packed sample, (1, H, W), whatever its name in the framework."""
    plane: Tensor = next(iter(sample['data_samples'].gt_sem_seg.values()))
    return plane


def collect_labels(sample: Any, kind: str) -> Set[int]:
    """Return the labels of a packed sample, from its instances (``kind='instances'``) or its label map."""
    labels = sample['data_samples']
    if kind == 'instances':
        return set(labels.gt_instances.labels.tolist()) if 'labels' in labels.get('gt_instances', {}) else set()
    return set(torch.unique(get_label_map(sample)).tolist())
