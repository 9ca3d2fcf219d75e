"""Properties of the evaluation: same labels as in training, and the best score for the ground truth."""

from __future__ import annotations

import copy
import os
import tempfile
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import numpy as np
import torch
from mmengine.registry import METRICS
from mmengine.structures import InstanceData, PixelData
from PIL import Image

from mmguard.config.classes import get_type_name
from mmguard.labels.spaces import VOID
from mmguard.properties.datasets import find_conflict, get_class_names, read_labels_by_name, seed_all, select_indices
from mmguard.properties.pipelines import look
from mmguard.properties.program import Program, cache_result
from mmguard.properties.result import DoesNotApply, Result, Unavailable, broken, mark_untested, note, ran
from mmguard.properties.runner import judge_failure
from mmguard.text import quantity

#: Number of label files to take values from, and of values to try.
FILES, VALUES = 6, 24
#: Side of the temporary images.
SIDE = 256
#: Number of repetitions for random steps.
TRIES = 3
#: Maximum number of detections per image in COCO.
MOST_DETECTIONS = 100


def check_labels(program: Program) -> List[Result]:
    """Compare class names, and the labels of values or categories, between the data sets of both splits."""
    train, results = program.build_leaves('train'), []
    differing = find_conflict(program.read, train)
    results += [broken('the data sets of the training', differing)] if differing else []
    for number, one in enumerate(train):
        subject = type(one).__name__ if len(train) == 1 else f'{type(one).__name__} {number}'
        for place, other in enumerate(program.build_leaves('val')):
            differing = _compare_names(
                get_class_names(one), get_class_names(other), 'in the training', 'in the validation'
            )
            results += [broken(f'{subject}, class names', differing)] if differing else []
            known: Dict[str, Tuple[Optional[int], Optional[int]]] = {}
            values = sorted(_collect_values(one) | _collect_values(other))[:VALUES]
            for value in values:
                known[f'value {value}'] = (
                    find_label(program, 'train', number, value),
                    find_label(program, 'val', place, value),
                )
                if program.seconds_left() < 0:
                    break
            if not values and not differing:
                ours, theirs = read_labels_by_name(one), read_labels_by_name(other)
                known = {name: (label, theirs.get(name)) for name, label in ours.items()}
            if values or not differing:
                found = _judge_labels(subject, known, get_class_names(one) if values else ())
                if found.outcome == 'broken' and values and len(train) > 1 and _find_like(program, place) is not None:
                    found = note(
                        subject,
                        'its values are numbered differently from the validation, which is read like another data set',
                    )
                results.append(found)
    return results


@cache_result
def _find_like(program: Program, place: int) -> Optional[int]:
    """Return the number of a training data set that gives the values of a validation data set the same labels."""
    values = sorted(_collect_values(program.build_leaves('val')[place]))[:VALUES]
    labels = [find_label(program, 'val', place, value) for value in values]
    for number, _ in enumerate(program.build_leaves('train')):
        if labels == [find_label(program, 'train', number, value) for value in values]:
            return number
    return None


def _compare_names(ours: Sequence[str], theirs: Sequence[str], here: str, there: str) -> str:
    """Name the first label with two names; empty if no label has two, or one side has no names."""
    if not ours or not theirs or tuple(ours) == tuple(theirs):
        return ''
    at = next((n for n, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]), min(len(ours), len(theirs)))
    names = [one[at] if at < len(one) else 'no class' for one in (ours, theirs)]
    return f'label {at} is {names[0]} {here} and {names[1]} {there}'


def _judge_labels(subject: str, labels: Dict[str, Tuple[Optional[int], Optional[int]]], names: Sequence[str]) -> Result:
    """Compare the labels of values or categories in training and validation, if both are known."""
    known = {value: pair for value, pair in labels.items() if None not in pair}
    if not known:
        return mark_untested(
            subject, 'neither data set gives the label of a category, or loads a label map of one value'
        )
    data = dict(labels={value: list(pair) for value, pair in known.items()})
    words = [
        '{} is {} in the training and {} in the validation'.format(
            value, *('ignored' if label == VOID else f'label {label}' for label in pair)
        )
        for value, pair in known.items()
        if pair[0] != pair[1]
    ]
    if words:
        return broken(subject, '; '.join(words[:3]), data)
    meant = {value: pair[0] for value, pair in known.items() if value != f'value {VOID}'}
    ignored = [value for value, label in meant.items() if label == VOID]
    unused = [name for label, name in enumerate(names) if label not in meant.values()]
    if ignored and unused and len(meant) == len(names):
        return note(subject, f'{ignored[0]} is ignored, and no value becomes {unused[0]}', data)
    number = quantity(len(known), 'value or category', 'values or categories')
    return ran(subject, f'{number} in both splits', data)


def _read_label_file(dataset: Any, info: Dict[str, Any]) -> Optional[np.ndarray]:
    """Return the values of the label map of a sample; ``None`` if it is missing or has several channels."""
    path = info.get('seg_map_path')
    return _decode(dataset, path) if isinstance(path, str) and os.path.isfile(path) else None


def _decode(dataset: Any, path: str) -> Optional[np.ndarray]:
    """Decode a label map as the pipeline's own loader does; ``None`` if it is not an integer map (H, W)."""
    import mmcv

    steps = [step for step in getattr(dataset.pipeline, 'transforms', ()) if hasattr(step, 'imdecode_backend')]
    try:
        values = mmcv.imread(path, 'unchanged', backend=steps[-1].imdecode_backend if steps else 'pillow')
    except Exception:  # not an image, or a package is missing
        return None
    return values if isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.kind in 'biu' else None


def _collect_values(dataset: Any) -> Set[int]:
    maps = [_read_label_file(dataset, dataset.get_data_info(index)) for index in select_indices(len(dataset), FILES)]
    return {int(value) for one in maps if one is not None for value in np.unique(one)}


@cache_result
def find_label(program: Program, split: str, number: int, value: int) -> Optional[int]:
    """Return the label that a data set's pipeline makes of a label map of one value; ``None`` if it loads none."""
    dataset = program.build_leaves(split)[number]
    known = dataset.get_data_info(0)
    like = _read_label_file(dataset, known)
    if like is None or value > (np.iinfo(like.dtype).max if like.dtype.kind in 'iu' else 1):
        return None
    with tempfile.TemporaryDirectory() as folder:
        image, label = os.path.join(folder, 'image.png'), f'{folder}/label{os.path.splitext(known["seg_map_path"])[1]}'
        noise = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
        Image.fromarray(noise).save(image)
        for seed in range(TRIES):
            info = copy.deepcopy(known)
            info.update(img_path=image, seg_map_path=label, sample_idx=0)
            seed_all(seed)
            try:
                Image.fromarray(np.full((SIDE, SIDE), value, like.dtype)).save(label)
                if not np.all(_decode(dataset, label) == value):  # this format does not preserve it
                    return None
                seen = look('', dataset.pipeline(info))
            except Exception:  # another property reports it
                return None
            found = seen[0].figures.get('label map') if seen else None
            if found is not None and found.size:
                values, counts = np.unique(found[found != VOID], return_counts=True)
                return int(values[counts.argmax()]) if len(values) else VOID
    return None


def _predict_truth(sample: Any, info: Dict[str, Any], is_map: bool) -> None:
    """Predict the label map of a sample, or the annotated objects of its file."""
    if is_map:
        truth = sample.gt_sem_seg.data
        sample.pred_sem_seg = PixelData(
            data=truth.where(truth != VOID, torch.zeros_like(truth))
        )  # no output is for VOID
        return
    objects = [one for one in info.get('instances') or () if not one.get('ignore_flag')]
    boxes = np.array([one['bbox'] for one in objects], np.float64).reshape(-1, 4)
    if len(boxes) > MOST_DETECTIONS or (boxes[:, 2:] - boxes[:, :2] < 1).any():
        raise DoesNotApply('every image has more objects than are counted, or boxes below one pixel')
    sample.pred_instances = InstanceData(
        bboxes=torch.as_tensor(boxes, dtype=torch.float32),
        labels=torch.tensor([one['bbox_label'] for one in objects], dtype=torch.int64),
        scores=torch.ones(len(objects)),
    )


def _check_names(metric: Any) -> List[Result]:
    """Compare class names in a metric, or in its file, with the data set's: a swap in both does not lower the score."""
    names = tuple(map(str, (metric.dataset_meta or {}).get('classes') or ()))
    subject, results = f'{type(metric).__name__}, class names', []
    for where, theirs in _name_lists(metric, names):
        words = _compare_names(names, theirs, 'in the data set', where)
        missing = [name for name in names if name not in theirs]
        if missing:
            words = f'no {", ".join(missing[:5])} {where}: later labels are counted for other classes'
        results += [broken(subject, words)] if words else []
    return results


def _name_lists(metric: Any, names: Tuple[str, ...]) -> List[Tuple[str, Tuple[str, ...]]]:
    """Return the lists of class names in a metric, each with its place."""
    lists = []
    for key, value in vars(metric).items():
        cats = getattr(value, 'cats', None)
        if isinstance(cats, dict) and cats and names:
            ids = value.get_cat_ids(cat_names=names)
            lists.append(('in its file', tuple(str(cats[number]['name']) for number in ids)))
        elif isinstance(value, (list, tuple)) and len(set(names) & set(map(str, value))) > len(names) / 2:
            lists.append((f'in its {key}', tuple(map(str, value))))
    return lists


#: Metrics whose best possible score is known, and the ends of its keys; it applies to their subclasses, too.
MARKS: Dict[str, Tuple[float, Tuple[str, ...]]] = {
    'IoUMetric': (100.0, ('aAcc', 'mIoU', 'mAcc', 'mDice', 'mFscore')),
    'CocoMetric': (1.0, ('bbox_mAP',)),
    'VOCMetric': (1.0, ('mAP',)),
}


def find_metric_nodes(program: Program) -> List[Any]:
    """Return the configs of the metrics of the validation."""
    node = program.config.get('val_evaluator')
    if not node:
        raise DoesNotApply('the config has no val_evaluator')
    nodes = node.get('metrics', node) if isinstance(node, dict) else node
    return [nodes] if isinstance(nodes, dict) else list(nodes)


@cache_result
def build_metric(program: Program, number: int) -> Any:
    """Build a metric of the validation."""
    metric = METRICS.build(copy.deepcopy(find_metric_nodes(program)[number]))
    metric.dataset_meta = getattr(program.build_dataset('val'), 'metainfo', None)
    return metric


def check_marks(program: Program) -> List[Result]:
    """Evaluate each validation metric on the ground truth; compare its class names with the data set's."""
    results: List[Result] = []
    for number, node in enumerate(find_metric_nodes(program)):
        name = get_type_name(node['type'])
        try:
            metric = build_metric(program, number)
            results += [*_check_names(metric), _check_metric(program, metric)]
        except DoesNotApply as reason:
            results.append(mark_untested(name, str(reason)))
        except Exception as error:
            results.append(judge_failure(name, error))
    return results


def _find_uncounted(metric: Any, samples: Sequence[Any]) -> List[int]:
    """Return the labels, in order, that are neither ignored nor among the classes that a metric counts."""
    classes = len((metric.dataset_meta or {}).get('classes') or ())
    found = {int(label) for sample in samples for label in torch.unique(sample.gt_sem_seg.data)}
    return sorted(label for label in found - {VOID, metric.ignore_index} if label >= classes > 0)


def _check_metric(program: Program, metric: Any) -> Result:
    name, dataset, (leaf, *others) = type(metric).__name__, program.build_dataset('val'), program.build_leaves('val')
    full, keys = next((MARKS[base.__name__] for base in type(metric).__mro__ if base.__name__ in MARKS), (0.0, ()))
    if not keys:
        raise DoesNotApply('its best possible value is unknown')
    if others or getattr(metric, 'format_only', False):
        raise DoesNotApply('several data sets are evaluated' if others else 'it writes files only (format_only)')
    given, problem = [], Unavailable('no sample has labels')
    for index in select_indices(len(dataset), program.samples):
        with program.scope():
            sample = dataset[index]['data_samples']
        try:
            _predict_truth(sample, leaf.get_data_info(index), full == 100.0)
            given.append(sample)
        except Unavailable as reason:
            problem = reason
    if not given:
        raise problem
    api = getattr(metric, '_coco_api', None)
    if api is not None:
        metric.metrics = ['bbox']  # masks are not predicted
        metric.img_ids = [sample.metainfo['img_id'] for sample in given]
        unknown = [number for number in metric.img_ids if number not in api.imgs]
        if unknown:
            return broken(name, f'image {unknown[0]} of the data set is not in its file')
    uncounted = _find_uncounted(metric, given) if name == 'IoUMetric' else []  # a class of the user's may map labels
    if uncounted:
        number = quantity(len(metric.dataset_meta['classes']), 'class', 'classes')
        return broken(name, f'counts {number}, but the labels reach {uncounted[-1]}', dict(labels=uncounted))
    with program.scope():
        metric.results = []  # left by an attempt that timed out
        metric.process({}, [sample.to_dict() for sample in given])
        values = metric.evaluate(len(given))
    found = {key: float(value) for key, value in values.items() if key.split('/')[-1] in keys}
    found = {key: value for key, value in found.items() if np.isfinite(value) and value >= 0}
    if not found:
        raise DoesNotApply(f'it returns none of {", ".join(keys)}')
    low = ', '.join(f'{key} {value:g}' for key, value in found.items() if value < full - 1e-3)
    data = dict(samples=len(given), values=found)
    if low:
        return broken(name, f'gives the ground truth {low} of {full:g}', data)
    names, left_out = (metric.dataset_meta or {}).get('classes') or (), getattr(metric, 'ignore_index', -1)
    if isinstance(left_out, int) and 0 <= left_out < len(names):
        return note(name, f'label {left_out} ({names[left_out]}) has no score: it is its ignore_index', data)
    return ran(name, f'the ground truth of {quantity(len(given), "image")} as predictions', data)
