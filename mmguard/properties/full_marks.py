"""Evaluator gives full marks to the truth: predictions made of the label files get the best value that there is."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np
import torch
from mmengine.structures import InstanceData, PixelData
from PIL import Image

from mmguard.properties.program import VOID, Program, spread
from mmguard.properties.result import Result, broken, holds, not_tested
from mmguard.properties.same_labels import label_of, labels_by_name

#: Detections per image that COCO counts.
MOST_DETECTIONS = 100


class Marks(NamedTuple):
    """Best values of a kind of metric.

    Attributes:
        full (float): The value.
        names (tuple[str]): Ends of the names of the values that are looked at.
    """

    full: float
    names: Sequence[str]


#: Metrics whose full marks are known; classes that inherit from them, too.
KNOWN = {
    'IoUMetric': Marks(100.0, ('aAcc', 'mIoU', 'mAcc', 'mDice', 'mFscore')),
    'CocoMetric': Marks(1.0, ('bbox_mAP', 'segm_mAP')),
    'VOCMetric': Marks(1.0, ('mAP',)),
}


def check(program: Program) -> List[Result]:
    """Give each metric of the validation the truth as predictions."""
    metrics = program.metrics('val')
    found = [one for metric in metrics for one in (_check_order(metric), _check_metric(program, metric))]
    return [result for result in found if result is not None]


def marks_of(metric: Any) -> Optional[Marks]:
    """Return the full marks of a metric; ``None`` where they are not known."""
    return next((KNOWN[base.__name__] for base in type(metric).__mro__ if base.__name__ in KNOWN), None)


def _check_metric(program: Program, metric: Any) -> Result:
    name = type(metric).__name__
    marks = marks_of(metric)
    if marks is None:
        return not_tested(name, 'it is not known what its full marks are')
    if getattr(metric, 'format_only', False):
        return not_tested(name, 'it writes files only (format_only)')
    dataset = program.dataset('val')
    leaf, *others = program.leaves('val')
    if others:
        return not_tested(name, 'several data sets are evaluated together')
    predict: Any = _Pixels(program, leaf) if 'mIoU' in marks.names else _Instances(program, leaf, metric)
    given = []
    for index in spread(len(dataset), program.samples):
        with program.scope():
            sample = dataset[index]['data_samples']
        if predict(sample, index):
            given.append(sample)
    if not given:
        return not_tested(name, predict.reason or 'no sample has labels')
    if getattr(metric, '_coco_api', None) is not None:
        metric.img_ids = [sample.metainfo['img_id'] for sample in given]
    with program.scope():
        metric.process({}, [sample.to_dict() for sample in given])
        values = metric.evaluate(len(given))
    looked_at = {
        key: float(value)
        for key, value in values.items()
        if key.split('/')[-1] in marks.names and np.isfinite(float(value)) and float(value) >= 0
    }
    low = {key: value for key, value in looked_at.items() if value < marks.full - 1e-3}
    if not looked_at:
        return not_tested(name, f'it gives none of {", ".join(marks.names)}')
    if low:
        words = ', '.join(f'{key} {value:g}' for key, value in low.items())
        return broken(name, f'gives the truth {words} of {marks.full:g}', values=looked_at)
    return holds(name, samples=len(given), values=looked_at)


class _Pixels:
    """Predicts the label maps of the files, labelled as the training labels them."""

    def __init__(self, program: Program, leaf: Any) -> None:
        self._program = program
        self._leaf = leaf
        self._known: Dict[int, Optional[int]] = {}
        self.reason = ''

    def __call__(self, sample: Any, index: int) -> bool:
        path = self._leaf.get_data_info(index).get('seg_map_path')
        if not isinstance(path, str) or not os.path.isfile(path):
            self.reason = 'its label files are not here'
            return False
        with Image.open(path) as image:
            raw = np.asarray(image)
        if raw.ndim != 2 or raw.dtype != np.uint8:
            self.reason = 'its label files are not images of one channel'
            return False
        truth = np.full(raw.shape, VOID, np.int64)
        for value in np.unique(raw).tolist():
            label = self._label_of(value)
            if label is None:
                self.reason = 'the training does not load a label map of one value'
                return False
            truth[raw == value] = label
        label_map = sample.gt_sem_seg.data.squeeze().numpy()
        if label_map.shape != truth.shape:
            self.reason = f'the validation evaluates at {label_map.shape}, not at the size of the file'
            return False
        # What the training ignores no model can learn: another property compares the two.
        truth = np.where(truth == VOID, np.where(label_map == VOID, 0, label_map), truth)
        sample.pred_sem_seg = PixelData(data=torch.as_tensor(truth)[None])
        return True

    def _label_of(self, value: int) -> Optional[int]:
        if value not in self._known:
            self._known[value] = label_of(self._program, self._program.leaves('train')[0], value)
        return self._known[value]


class _Instances:
    """Predicts the annotated objects, with the labels that the training gives their categories."""

    def __init__(self, program: Program, leaf: Any, metric: Any) -> None:
        self._leaf = leaf
        self._labels = labels_by_name(program.leaves('train')[0])
        self._names = {label: name for name, label in labels_by_name(leaf).items()}
        self._masks = 'segm' in (getattr(metric, 'metrics', None) or ())
        self.reason = ''

    def __call__(self, sample: Any, index: int) -> bool:
        info = self._leaf.get_data_info(index)
        objects = [one for one in info.get('instances') or () if not one.get('ignore_flag')]
        boxes = np.array([one['bbox'] for one in objects], np.float64).reshape(-1, 4)
        if len(boxes) > MOST_DETECTIONS or (boxes[:, 2:] - boxes[:, :2] < 1).any():
            self.reason = 'every image has more objects than are counted, or boxes below one pixel'
            return False
        names = [self._names.get(one['bbox_label']) for one in objects]
        if any(name not in self._labels for name in names):
            self.reason = 'the training does not know its categories'
            return False
        found = InstanceData(
            bboxes=torch.as_tensor(boxes, dtype=torch.float32),
            labels=torch.tensor([self._labels[str(name)] for name in names], dtype=torch.int64),
            scores=torch.ones(len(objects)),
        )
        if self._masks:
            from pycocotools import mask as coco_mask

            height, width = sample.metainfo['ori_shape'][:2]
            planes = []
            for one in objects:
                outline = one.get('mask')
                if outline is None:
                    self.reason = 'its objects have no masks'
                    return False
                if isinstance(outline, list):
                    outline = coco_mask.merge(coco_mask.frPyObjects(outline, height, width))
                elif isinstance(outline.get('counts'), list):
                    outline = coco_mask.frPyObjects(outline, height, width)
                planes.append(torch.as_tensor(coco_mask.decode(outline), dtype=torch.bool))
            found.masks = torch.stack(planes) if planes else torch.zeros((0, height, width), dtype=torch.bool)
        sample.pred_instances = found
        return True


def _check_order(metric: Any) -> Optional[Result]:
    """Compare the names of classes in a metric's file and in the data set: marks stay full under a swap."""
    api = getattr(metric, '_coco_api', None)
    names = tuple((metric.dataset_meta or {}).get('classes') or ())
    if api is None or not names or not hasattr(api, 'cats') or not hasattr(api, 'get_cat_ids'):
        return None
    numbers = api.get_cat_ids(cat_names=names)
    theirs = [str(api.cats[number]['name']) for number in numbers]
    missing = [name for name in names if name not in theirs]
    subject = f'{type(metric).__name__}, class names'
    if missing:
        evidence = f'its file has no category {", ".join(missing[:5])}: later labels are counted for other classes'
        return broken(subject, evidence)
    other = next((n for n, pair in enumerate(zip(names, theirs)) if pair[0] != pair[1]), None)
    if other is not None:
        return broken(subject, f'label {other} is {names[other]} in the data set and {theirs[other]} in its file')
    return None
