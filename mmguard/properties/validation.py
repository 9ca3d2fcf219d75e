"""Tests of the validation: it runs, gives the ground truth its best score, and uses the labels of the training."""

from __future__ import annotations

import contextlib
import copy
import os
import tempfile
from itertools import islice
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import numpy as np
import torch
from mmengine.registry import METRICS
from mmengine.structures import InstanceData, PixelData
from PIL import Image

from mmguard.config.classes import get_type_name
from mmguard.config.tree import walk
from mmguard.labels.spaces import VOID
from mmguard.properties.datasets import find_conflict, get_class_names, read_labels_by_name, seed_all, select_indices
from mmguard.properties.first_batches import resize_images, shrink_size
from mmguard.properties.program import Program, cache_result
from mmguard.properties.result import DoesNotApply, Result, Unavailable, broken, mark_untested, note, ran
from mmguard.properties.runner import build_loader, judge_failure, start_runner
from mmguard.properties.samples import read_parts
from mmguard.text import quantity

#: Number of images, and their maximum size, given as the seconds of a training step on as many pixels.
IMAGES, SECONDS = 2, 6.0
#: Number of label files whose values are collected, and maximum number of values that are tested.
FILES, VALUES = 6, 24
#: Side of the temporary images, and maximum number of loads of each image (steps are random).
SIDE, TRIES = 256, 3
#: Maximum number of detections per image in COCO.
MOST_DETECTIONS = 100
#: {metric, also a base class: (best possible score, ends of the names of these scores)}.
MARKS: Dict[str, Tuple[float, Tuple[str, ...]]] = {
    'IoUMetric': (100.0, ('aAcc', 'mIoU', 'mAcc', 'mDice', 'mFscore')),
    'CocoMetric': (1.0, ('bbox_mAP',)),
    'VOCMetric': (1.0, ('mAP',)),
}


def check_validation(program: Program) -> List[Result]:
    """Validate the first images, and check that the metric named by ``save_best`` is among the results."""
    if not program.config.get('val_cfg') or not program.config.get('val_dataloader'):
        raise DoesNotApply('the config has no validation')
    build_loader(program, 'val')
    runner, model = start_runner(program), program.build_model()
    evaluator, seen, factor = runner.val_loop.evaluator, 0, 1.0
    wanted = 1 if program.is_slow() else IMAGES
    model.eval()
    try:
        with torch.no_grad(), program.scope():
            seed_all(0)
            for data in islice(runner.val_dataloader, wanted):
                outputs, shrunk = _predict(program, model, data)
                factor = max(factor, shrunk)
                evaluator.process(data_samples=outputs, data_batch=data)
                seen += len(outputs)
                if seen >= wanted or program.seconds_left() < 0:
                    break
            values = {str(name): value for name, value in evaluator.evaluate(seen).items()}
    except Exception as error:
        return [judge_failure(f'validation, image {seen + 1}', error)]
    finally:
        for metric in evaluator.metrics:
            metric.results = []
        model.train()
    numbers = {name: float(value) for name, value in values.items() if isinstance(value, (float, np.floating))}
    listed = ', '.join(f'{name} {value:.3g}' for name, value in list(numbers.items())[:3])
    words = f'{quantity(seen, "image")} of your {len(runner.val_dataloader.dataset):,}'
    words += f', scaled down by {factor:.1f}' if factor > 1 else ''
    words += f'; the untrained model has {listed}' if listed else ''
    results = [ran('validation', words, dict(images=seen, values=list(values)))]
    hook = (program.config.get('default_hooks') or {}).get('checkpoint') or {}
    asked = hook.get('save_best') or []
    for name in [asked] if isinstance(asked, str) else asked:
        if name != 'auto' and values and name not in values:  # it ends the training after the first validation
            results.append(broken('save_best', f'{name} is not among the results: {", ".join(list(values)[:8])}'))
    for _, node in walk(program.config.model):
        if isinstance(node.get('score_thr'), (int, float)) and node['score_thr'] >= 1:
            words = f'score_thr={node["score_thr"]}: no score reaches it, so nothing is predicted'
            results.append(note('test_cfg', words))
    return results


def _predict(program: Program, model: Any, loaded: Any) -> Tuple[Any, float]:
    """Return predictions in the size of the image file, and the factor by which images were shrunk to save time."""
    data = model.data_preprocessor(copy.deepcopy(loaded), False)
    inputs = data.get('inputs') if isinstance(data, dict) else None
    most = program.count_pixels(SECONDS)
    if torch.is_tensor(inputs) and inputs.dim() == 4 and inputs[:, 0].numel() > most:
        height, width = shrink_size(inputs, most, program.find_side())
        with contextlib.suppress(Exception):  # some models need large images
            smaller = resize_images(data, len(inputs), height, width)
            return model(**smaller, mode='predict'), inputs.shape[-2] / height
    return model.val_step(loaded), 1.0


def check_marks(program: Program) -> List[Result]:
    """Give each metric the ground truth as predictions, and compare the class names of metric and data set."""
    nodes, results = program.config.get('val_evaluator'), []
    if not nodes:
        raise DoesNotApply('the config has no val_evaluator')
    nodes = nodes.get('metrics', nodes) if isinstance(nodes, dict) else nodes
    for node in [nodes] if isinstance(nodes, dict) else nodes:
        name = get_type_name(node['type'])
        try:
            with program.scope():
                metric = METRICS.build(copy.deepcopy(node))
            metric.dataset_meta = getattr(program.build_dataset('val'), 'metainfo', None)
            results += [*_check_names(metric), _check_metric(program, metric)]
        except DoesNotApply as reason:
            results.append(mark_untested(name, str(reason)))
        except Exception as error:
            results.append(judge_failure(name, error))
    return results


def _check_names(metric: Any) -> List[Result]:
    """Compare class names of a metric, or of its file, with the data set's: swapped names do not change the score."""
    names = tuple(map(str, (metric.dataset_meta or {}).get('classes') or ()))
    results = []
    for key, value in vars(metric).items():
        cats, where = getattr(value, 'cats', None), f'in its {key}'
        theirs: List[str] = []
        if isinstance(cats, dict) and cats and names:
            theirs, where = [str(cats[one]['name']) for one in value.get_cat_ids(cat_names=names)], 'in its file'
        elif isinstance(value, (list, tuple)) and len(set(names) & set(map(str, value))) > len(names) / 2:
            theirs = list(map(str, value))
        words = _compare_names(names, theirs, 'in the data set', where)
        missing = [name for name in names if name not in theirs]
        if words and missing:
            words = f'{", ".join(missing[:5])} missing {where}: later labels are counted for other classes'
        results += [broken(f'{type(metric).__name__}, class names', words)] if words else []
    return results


def _check_metric(program: Program, metric: Any) -> Result:
    name, dataset, (leaf, *others) = type(metric).__name__, program.build_dataset('val'), program.build_leaves('val')
    full, keys = next((MARKS[base.__name__] for base in type(metric).__mro__ if base.__name__ in MARKS), (0.0, ()))
    if not keys:
        raise DoesNotApply('the best possible value of the metric is unknown')
    if others or getattr(metric, 'format_only', False):
        raise DoesNotApply('several data sets are evaluated' if others else 'format_only=True only writes files')
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
    api, names = getattr(metric, '_coco_api', None), (metric.dataset_meta or {}).get('classes') or ()
    if api is not None:
        metric.metrics = ['bbox']  # masks are not predicted
        metric.img_ids = [sample.metainfo['img_id'] for sample in given]
        unknown = [number for number in metric.img_ids if number not in api.imgs]
        if unknown:
            return broken(name, f'image {unknown[0]} of the data set is not in the file of the metric')
    if name == 'IoUMetric' and names:  # a class of the user's may map labels
        labels = {int(label) for sample in given for label in torch.unique(sample.gt_sem_seg.data)}
        uncounted = sorted(label for label in labels - {VOID, metric.ignore_index} if label >= len(names))
        if uncounted:
            number = quantity(len(names), 'class', 'classes')
            return broken(name, f'counts {number}, but the labels reach {uncounted[-1]}', dict(labels=uncounted))
    with program.scope():
        metric.process({}, [sample.to_dict() for sample in given])
        values = metric.evaluate(len(given))
    found = {key: float(value) for key, value in values.items() if key.split('/')[-1] in keys}
    found = {key: value for key, value in found.items() if np.isfinite(value) and value >= 0}
    if not found:
        raise DoesNotApply(f'the metric returns none of {", ".join(keys)}')
    low = ', '.join(f'{key} {value:g}' for key, value in found.items() if value < full - 1e-3)
    data = dict(samples=len(given), values=found)
    if low:
        return broken(name, f'gives the ground truth {low} instead of {full:g}', data)
    left_out = getattr(metric, 'ignore_index', -1)
    if isinstance(left_out, int) and 0 <= left_out < len(names):
        return note(name, f"label {left_out} ({names[left_out]}) has no score: it is the metric's ignore_index", data)
    return ran(name, f'the ground truth of {quantity(len(given), "image")} as predictions', data)


def _predict_truth(sample: Any, info: Dict[str, Any], is_map: bool) -> None:
    """Use the label map of a sample, or the annotated objects of its file, as its predictions."""
    if is_map:
        truth = sample.gt_sem_seg.data
        sample.pred_sem_seg = PixelData(data=truth.where(truth != VOID, torch.zeros_like(truth)))
        return  # no output predicts VOID
    objects = [one for one in info.get('instances') or () if not one.get('ignore_flag')]
    boxes = np.array([one['bbox'] for one in objects], np.float64).reshape(-1, 4)
    if len(boxes) > MOST_DETECTIONS or (boxes[:, 2:] - boxes[:, :2] < 1).any():
        raise DoesNotApply('every image has more objects than the metric counts, or boxes smaller than a pixel')
    sample.pred_instances = InstanceData(
        bboxes=torch.as_tensor(boxes, dtype=torch.float32),
        labels=torch.tensor([one['bbox_label'] for one in objects], dtype=torch.int64),
        scores=torch.ones(len(objects)),
    )


def check_labels(program: Program) -> List[Result]:
    """Compare the class names of training and validation, and the label that each stored value or category gets."""
    train = program.build_leaves('train')
    conflict = find_conflict(program.read, train)
    results = [broken('the data sets of the training', conflict)] if conflict else []
    for place, other in enumerate(program.build_leaves('val')):
        found = []
        for number, one in enumerate(train):
            subject, names = type(one).__name__ + (f' {number}' if len(train) > 1 else ''), get_class_names(one)
            differing = _compare_names(names, get_class_names(other), 'in the training', 'in the validation')
            results += [broken(f'{subject}, class names', differing)] if differing else []
            known: Dict[str, Tuple[Optional[int], Optional[int]]] = {}
            values = sorted(_collect_values(one) | _collect_values(other))[:VALUES]
            for value in values:
                both = find_label(program, 'train', number, value), find_label(program, 'val', place, value)
                known[f'value {value}'] = both
                if program.seconds_left() < 0:
                    break
            if not values and not differing:
                ours, theirs = read_labels_by_name(one), read_labels_by_name(other)
                known = {name: (label, theirs.get(name)) for name, label in ours.items()}
            if values or not differing:
                found.append(_judge_labels(subject, known, names if values else ()))
        is_like_one = any(
            one.outcome == 'ran' for one in found
        )  # then other training data sets are numbered differently
        results += [one._replace(outcome='note') if is_like_one and one.outcome == 'broken' else one for one in found]
    return results


def _compare_names(ours: Sequence[str], theirs: Sequence[str], here: str, there: str) -> str:
    """Describe the first label with different names in two class lists; '' if they agree or one is empty."""
    if not ours or not theirs or tuple(ours) == tuple(theirs):
        return ''
    at = next((n for n, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]), min(len(ours), len(theirs)))
    names = [one[at] if at < len(one) else 'no class' for one in (ours, theirs)]
    return f'label {at} is {names[0]} {here} and {names[1]} {there}'


def _judge_labels(subject: str, labels: Dict[str, Tuple[Optional[int], Optional[int]]], names: Sequence[str]) -> Result:
    """Compare the label of each value or category in the training with that in the validation, if both are known."""
    known = {value: pair for value, pair in labels.items() if None not in pair}
    if not known:
        reason = 'no category, and no value of a label map, has a known label in both splits'
        return mark_untested(subject, reason)
    data = dict(labels={value: list(pair) for value, pair in known.items()})
    words = []
    for value, pair in known.items():
        ours, theirs = ('ignored' if label == VOID else f'label {label}' for label in pair)
        words += [f'{value} is {ours} in the training and {theirs} in the validation'] if ours != theirs else []
    if words:
        return broken(subject, '; '.join(words[:3]), data)
    meant = {value: pair[0] for value, pair in known.items() if value != f'value {VOID}'}
    ignored = [value for value, label in meant.items() if label == VOID]
    unused = [name for label, name in enumerate(names) if label not in meant.values()]
    if ignored and unused and len(meant) == len(names):
        return note(subject, f'{ignored[0]} is ignored, and no value becomes {unused[0]}', data)
    number = quantity(len(known), 'value or category', 'values or categories')
    return ran(subject, f'{number} in both splits', data)


def _decode(dataset: Any, path: Any) -> Optional[np.ndarray]:
    """Decode a label map as the pipeline's loader does; ``None`` if that fails or the map is not of integers (H, W)."""
    import mmcv

    steps = [step for step in getattr(dataset.pipeline, 'transforms', ()) if hasattr(step, 'imdecode_backend')]
    try:
        values = mmcv.imread(path, 'unchanged', backend=steps[-1].imdecode_backend if steps else 'pillow')
    except Exception:  # it has no label map, the file is not an image, or a package is missing
        return None
    return values if isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.kind in 'biu' else None


def _collect_values(dataset: Any) -> Set[int]:
    infos = [dataset.get_data_info(index) for index in select_indices(len(dataset), FILES)]
    maps = [_decode(dataset, info.get('seg_map_path')) for info in infos]
    return {int(value) for one in maps if one is not None for value in np.unique(one)}


@cache_result
def find_label(program: Program, split: str, number: int, value: int) -> Optional[int]:
    """Return the label to which a data set's pipeline maps a value; ``None`` if that cannot be tested."""
    dataset = program.build_leaves(split)[number]
    known = dataset.get_data_info(0)
    like = _decode(dataset, known.get('seg_map_path'))
    if like is None or value > (np.iinfo(like.dtype).max if like.dtype.kind in 'iu' else 1):
        return None
    with tempfile.TemporaryDirectory() as folder:
        image, label = os.path.join(folder, 'image.png'), f'{folder}/label{os.path.splitext(known["seg_map_path"])[1]}'
        noise = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
        Image.fromarray(noise).save(image)
        for seed in range(TRIES):
            info = {**copy.deepcopy(known), 'img_path': image, 'seg_map_path': label, 'sample_idx': 0}
            seed_all(seed)
            try:
                Image.fromarray(np.full((SIDE, SIDE), value, like.dtype)).save(label)
                if not np.all(_decode(dataset, label) == value):  # this format does not preserve it
                    return None
                sample = dataset.pipeline(info)
                found = read_parts(sample).label if sample else None
            except Exception:  # another property reports it
                return None
            if found is not None and found.size:
                values, counts = np.unique(found[found != VOID], return_counts=True)
                return int(values[counts.argmax()]) if len(values) else VOID
    return None
