"""Evaluator gives full marks to the truth: predictions made of the label files get the best value that there is."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np
import torch
from mmengine.structures import InstanceData, PixelData

from mmguard.properties.program import VOID, Program, spread
from mmguard.properties.result import Result, broken, holds, not_tested
from mmguard.properties.same_labels import compare_names, label_of, labels_by_name, read_label_file
from mmguard.properties.worker import Failure

#: Gives a sample predictions that are the truth of its files.
Predict = Callable[[Any, Dict[str, Any]], None]
#: Detections per image that COCO counts.
MOST_DETECTIONS = 100


class Marks(NamedTuple):
    """Best value of a kind of metric, and the ends of the names of the values that are looked at."""

    full: float
    names: Sequence[str]


#: Metrics whose full marks are known; classes that inherit from them, too.
KNOWN = {
    'IoUMetric': Marks(100.0, ('aAcc', 'mIoU', 'mAcc', 'mDice', 'mFscore')),
    'CocoMetric': Marks(1.0, ('bbox_mAP', 'segm_mAP')),
    'VOCMetric': Marks(1.0, ('mAP',)),
}


class _Missing(Exception):
    """Reason why no truth can be predicted for a sample."""


def check(program: Program) -> List[Result]:
    """Give each metric of the validation the truth as predictions; compare its class names with the data set's."""
    metrics = program.metrics('val')
    return [result for metric in metrics for result in (*_check_names(metric), _check_metric(program, metric))]


def _check_metric(program: Program, metric: Any) -> Result:
    name = type(metric).__name__
    marks = next((KNOWN[base.__name__] for base in type(metric).__mro__ if base.__name__ in KNOWN), None)
    dataset = program.dataset('val')
    leaf, *others = program.leaves('val')
    if marks is None:
        return not_tested(name, 'it is not known what its full marks are')
    if others or getattr(metric, 'format_only', False):
        return not_tested(name, 'several data sets are evaluated' if others else 'it writes files only (format_only)')
    with_masks = 'segm' in (getattr(metric, 'metrics', None) or ())
    is_pixels = 'mIoU' in marks.names
    predict = _predict_pixels(program) if is_pixels else _predict_instances(program, leaf, with_masks)
    given, reason = [], 'no sample has labels'
    for index in spread(len(dataset), program.samples):
        with program.scope():
            sample = dataset[index]['data_samples']
        try:
            predict(sample, leaf.get_data_info(index))
            given.append(sample)
        except _Missing as error:
            reason = str(error)
    if not given:
        return not_tested(name, reason)
    if getattr(metric, '_coco_api', None) is not None:
        metric.img_ids = [sample.metainfo['img_id'] for sample in given]
        unknown = [number for number in metric.img_ids if number not in metric._coco_api.imgs]
        if unknown:
            return broken(name, f'image {unknown[0]} of the data set is not in its file')
    try:
        with program.scope():
            metric.process({}, [sample.to_dict() for sample in given])
            values = metric.evaluate(len(given))
    except ImportError:
        raise
    except Exception as error:
        return broken(name, f'fails on the truth: {Failure.describe(error)}')
    looked_at = {
        key: float(value)
        for key, value in values.items()
        if key.split('/')[-1] in marks.names and np.isfinite(float(value)) and float(value) >= 0
    }
    low = [f'{key} {value:g}' for key, value in looked_at.items() if value < marks.full - 1e-3]
    data = dict(samples=len(given), values=looked_at)
    if not looked_at:
        return not_tested(name, f'it gives none of {", ".join(marks.names)}')
    return broken(name, f'gives the truth {", ".join(low)} of {marks.full:g}', data) if low else holds(name, '', data)


def _predict_pixels(program: Program) -> Predict:
    """Predict the label maps of the files, labelled as the training labels them."""
    label_for = lru_cache(maxsize=None)(lambda value: label_of(program, program.leaves('train')[0], value))

    def predict(sample: Any, info: Dict[str, Any]) -> None:
        raw = read_label_file(info)
        if raw is None:
            raise _Missing('its label files are not here, or not PNG of one channel')
        truth = np.full(raw.shape, VOID, np.int64)
        for value in np.unique(raw).tolist():
            label = label_for(value)
            if label is None:
                raise _Missing('the training does not load a label map of one value')
            truth[raw == value] = label
        label_map = sample.gt_sem_seg.data.squeeze().numpy()
        if label_map.shape != truth.shape:
            raise _Missing(f'the validation evaluates at {label_map.shape}, not at the size of the file')
        # What the training ignores no model can learn: another property compares the two.
        truth = np.where(truth == VOID, np.where(label_map == VOID, 0, label_map), truth)
        sample.pred_sem_seg = PixelData(data=torch.as_tensor(truth)[None])

    return predict


def _predict_instances(program: Program, leaf: Any, with_masks: bool) -> Predict:
    """Predict the annotated objects, with the labels that the training gives their categories."""
    labels = labels_by_name(program.leaves('train')[0])
    names_here = {label: name for name, label in labels_by_name(leaf).items()}

    def predict(sample: Any, info: Dict[str, Any]) -> None:
        objects = [one for one in info.get('instances') or () if not one.get('ignore_flag')]
        boxes = np.array([one['bbox'] for one in objects], np.float64).reshape(-1, 4)
        if len(boxes) > MOST_DETECTIONS or (boxes[:, 2:] - boxes[:, :2] < 1).any():
            raise _Missing('every image has more objects than are counted, or boxes below one pixel')
        names = [names_here.get(one['bbox_label'], '') for one in objects]
        if any(name not in labels for name in names):
            raise _Missing('the training does not know its categories')
        found = InstanceData(
            bboxes=torch.as_tensor(boxes, dtype=torch.float32),
            labels=torch.tensor([labels[name] for name in names], dtype=torch.int64),
            scores=torch.ones(len(objects)),
        )
        if with_masks:
            size = sample.metainfo['ori_shape'][:2]
            planes = [_decode_mask(one.get('mask'), *size) for one in objects]
            found.masks = torch.stack(planes) if planes else torch.zeros((0, *size), dtype=torch.bool)
        sample.pred_instances = found

    return predict


def _decode_mask(outline: Any, height: int, width: int) -> torch.Tensor:
    from pycocotools import mask as coco_mask

    if outline is None:
        raise _Missing('its objects have no masks')
    if isinstance(outline, list):
        outline = coco_mask.merge(coco_mask.frPyObjects(outline, height, width))
    elif isinstance(outline.get('counts'), list):
        outline = coco_mask.frPyObjects(outline, height, width)
    return torch.as_tensor(coco_mask.decode(outline), dtype=torch.bool)


def _check_names(metric: Any) -> List[Result]:
    """Compare class names in a metric, or in its file, with the data set's: marks stay full under a swap."""
    names = tuple(map(str, (metric.dataset_meta or {}).get('classes') or ()))
    subject, results = f'{type(metric).__name__}, class names', []
    for where, theirs in _name_lists(metric, names):
        missing = [name for name in names if name not in theirs]
        differing = compare_names(names, theirs, 'in the data set', where)
        if missing:
            words = f'no {", ".join(missing[:5])} {where}: later labels are counted for other classes'
            results.append(broken(subject, words))
        elif differing:
            results.append(broken(subject, differing))
    return results


def _name_lists(metric: Any, names: Tuple[str, ...]) -> List[Tuple[str, Tuple[str, ...]]]:
    """Return the lists of class names that a metric holds, each with where it is."""
    lists = []
    for key, value in vars(metric).items():
        cats = getattr(value, 'cats', None)
        if isinstance(cats, dict) and cats and names:
            try:
                ids = value.get_cat_ids(cat_names=names)
            except TypeError:  # LVIS takes all
                ids = value.get_cat_ids()
            lists.append(('in its file', tuple(str(cats[number]['name']) for number in ids)))
        elif isinstance(value, (list, tuple)) and len(set(names) & set(map(str, value))) > len(names) / 2:
            lists.append((f'in its {key}', tuple(map(str, value))))
    return lists
