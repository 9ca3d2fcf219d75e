"""Readers of packed and unpacked samples, and builders of packed samples that do not need the user's data."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
from mmengine.structures import InstanceData, PixelData
from torch import Tensor

from mmguard.config.read import ReadConfig
from mmguard.properties.alignment import Box, fill_boxes
from mmguard.properties.result import Unavailable


@dataclass(frozen=True)
class Instance:
    """Annotated object; its box, if known, is (x1, y1, x2, y2) in pixels of the sample's image."""

    label: int
    box: Optional[Tuple[float, ...]] = None
    ignored: bool = False

    def __str__(self) -> str:
        corners = ', '.join(f'{corner:g}' for corner in np.round(self.box or (), 1).tolist())
        return f'label {self.label}' + (f' at ({corners})' if corners else '')


class SampleParts(NamedTuple):
    """Image and annotations of a sample; ``None`` for parts that are missing."""

    image: Any  # (H, W) or (H, W, C)
    label: Any  # the label map, (H, W); not a copy
    instances: Optional[List[Instance]]
    masks: Any
    size: Optional[Tuple[int, int]]  # height and width of the label map, or else of the image


def read_parts(results: Dict[str, Any]) -> SampleParts:
    """Return image and annotations of a sample, packed or not."""
    packed = results.get('data_samples')
    if packed is None:
        image, label, masks, shape = map(results.get, ('img', 'gt_seg_map', 'gt_masks', 'img_shape'))
        held = [tuple(map(results.get, ('gt_bboxes', 'gt_bboxes_labels', 'gt_ignore_flags')))]
    else:
        inputs, label, shape = results.get('inputs'), None, packed.get('img_shape')
        image = inputs.permute(1, 2, 0).cpu().numpy() if torch.is_tensor(inputs) and inputs.dim() == 3 else None
        if 'gt_sem_seg' in packed:
            label = get_label_map(packed).cpu().numpy()
            label = label[0] if label.ndim == 3 and len(label) == 1 else label
        trained, ignored = packed.get('gt_instances', {}), packed.get('ignored_instances', {})
        masks = trained.get('masks')
        held = [(one.get('bboxes'), one.get('labels'), one is ignored) for one in (trained, ignored)]
    known = [one for one in held if one[0] is not None or one[1] is not None]
    instances = [instance for one in known for instance in _walk_instances(*one)] if known else None
    shape = shape if label is None else label.shape
    size = None if shape is None or len(shape) < 2 else (int(shape[0]), int(shape[1]))
    return SampleParts(image, label, instances, masks, size)


def _walk_instances(boxes: Any, labels: Any, ignored: Any) -> Iterator[Instance]:
    if hasattr(boxes, 'convert_to'):
        boxes = boxes.convert_to('hbox').tensor  # rotated boxes are described by their bounding boxes
    number = len(labels if boxes is None else boxes)
    corners = [None] * number if boxes is None else map(tuple, np.asarray(boxes, np.float64).tolist())
    classes = [-1] * number if labels is None else np.asarray(labels).tolist()
    flags = np.broadcast_to(np.asarray(False if ignored is None else ignored, bool), number).tolist()
    for box, label, flag in zip(corners, classes, flags):
        yield Instance(int(label), box, flag)


def make_template(config: ReadConfig) -> Any:
    """Return a packed sample without objects, with the fields that a config's training pipeline would pack."""
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
        instances = {name: InstanceData(**fields) for name in ('gt_instances', 'ignored_instances')}
        labels = DetDataSample(metainfo=meta, **instances)
        if "'with_seg': True" in text or is_panoptic:
            labels.gt_sem_seg = PixelData(sem_seg=plane)
        if 'LoadProposals' in text:
            boxes = torch.tensor([[4.0, 4.0, 40.0, 40.0], [20.0, 8.0, 60.0, 60.0]])
            labels.proposals = InstanceData(bboxes=boxes, scores=torch.ones(2))
    else:
        raise Unavailable('the data are missing, and samples can only be made for MMSegmentation and MMDetection')
    return {'inputs': torch.zeros((3, 64, 64), dtype=torch.uint8), 'data_samples': labels}


def make_blank(template: Any, side: int, seed: int) -> Any:
    """Return a packed sample with an image of noise, label maps of zeros and no instances."""
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
    """Return instances with these boxes and labels, and with all fields of ``template``."""
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
    """Return filled masks of boxes, in the mask class of ``template``."""
    masks: Any = [fill_boxes([box], height, width) for box in boxes]
    if type(template).__name__ == 'PolygonMasks':
        masks = [[np.array([x1, y1, x2, y1, x2, y2, x1, y2], np.float32)] for x1, y1, x2, y2 in boxes]
    return type(template)(masks, height, width)


def get_label_map(sample: Any) -> Tensor:
    """Return the label map (1, H, W) of a ``data_samples``, whatever key the framework gives it."""
    plane: Tensor = next(iter(sample.gt_sem_seg.values()))
    return plane
