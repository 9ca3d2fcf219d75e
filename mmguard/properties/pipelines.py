"""Tests that every step of a pipeline moves image and label together, and that pipelines keep every sample."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from mmengine.dataset import pseudo_collate

from mmguard.properties.alignment import Box, describe_difference, draw_boxes, draw_field, fill_boxes
from mmguard.properties.datasets import seed_all, select_indices, walk_datasets, watch_steps
from mmguard.properties.program import Program
from mmguard.properties.result import DoesNotApply, Result, broken, note, ran
from mmguard.properties.runner import DROPPED, describe_failure, has_validation
from mmguard.properties.samples import make_masks, read_parts
from mmguard.text import quantity

#: Gray levels of figure and background.
BRIGHT, DARK = 200, 50
#: Key of results whose image was replaced, name of label maps in ``figures``, and keys of labels that are replaced.
_DRAWN, _MAP, _LABELS = 'mmguard_drawn', 'label map', ('gt_seg_map', 'gt_bboxes', 'gt_masks')
#: Minimum number of label values, even with fewer classes, so that interpolation creates values between two labels.
_VALUES = 4
#: Minimum number of loads with a figure, and number of loads of each training sample (steps are random).
DRAWN_LOADS, LOADS = 32, 5


class StepOutput(NamedTuple):
    """Image (H, W, C) after a step, and {kind of label: label (H, W)}."""

    step: str
    image: np.ndarray
    figures: Dict[str, np.ndarray]


def check_moves(program: Program) -> List[Result]:
    """Draw figures into images and labels, or paint images from label maps; compare image and label after each step."""
    dataset = program.build_dataset('train')
    tries = max(DRAWN_LOADS, program.samples)
    indices = select_indices(len(dataset), tries)
    wrong: Dict[str, Result] = {}
    known: Counter = Counter()
    painted = failures = 0  # a data set may try a thousand samples before it fails
    for number in range(tries + len(indices) * program.has_label_map):
        is_drawn = number < tries
        steps = _load_traced(program, dataset, indices[number % len(indices)], number, is_drawn)
        failures += not steps
        for kind in steps[-1].figures if steps else ():
            if not is_drawn and kind != _MAP:  # the image was painted from the label map only
                continue
            found = _judge(kind, [seen for seen in steps if kind in seen.figures], program.ignore_values(), is_drawn)
            if found is not None:
                known[kind] += is_drawn
                painted += not is_drawn
                if found:
                    wrong.setdefault(kind, broken(*found))
        if failures > 1 or program.seconds_left() < 0:
            break
    if not known:
        raise DoesNotApply('no step loads an image with its labels, or the figure is not visible in the image')
    words = {kind: f'a figure drawn into {quantity(count, "load")} of your data' for kind, count in known.items()}
    if painted:
        words[_MAP] += f', and {quantity(painted, "image")} painted from the label map'
    return [wrong.get(kind) or ran(kind, words[kind], dict(tries=count)) for kind, count in known.items()]


def _load_traced(program: Program, dataset: Any, index: int, seed: int, is_drawn: bool = True) -> List[StepOutput]:
    """Load a sample with a drawn figure or a painted image, and return image and labels after each step."""
    rng, highest = np.random.default_rng(seed), max(_VALUES, len(program.get_class_names())) - 1
    steps: List[StepOutput] = []

    def on_step(step: Any, results: Any) -> Any:
        results = step(results)
        shows = _draw(results, rng, min(highest, 254)) if is_drawn else _paint(results, program.ignore_values())
        if shows or steps:
            steps.extend(look(type(step).__name__, results))
        return results

    with program.scope(), watch_steps(walk_datasets(dataset), on_step):
        seed_all(seed)
        try:
            sample = dataset[index]
        except Exception:  # another property reports it
            return []
    final = look('the pipeline', sample)
    batch = preprocess(program, sample) if final else None
    return [*steps, *final, *(look(*batch) if batch else [])] if final else []


class _Figure(NamedTuple):
    """Figure drawn into an image: a pattern of zeros and ones, (H, W), and the boxes that it consists of, if any."""

    pattern: np.ndarray
    boxes: List[Box]
    has_labels: bool = False


def _draw(results: Any, rng: np.random.Generator, highest: int) -> bool:
    """Replace a loaded image by a figure, and its labels once they are loaded; return True if labels were replaced.

    A step before the labels are loaded moves only the image, so the labels then get the figure as it was first drawn.
    """
    if not isinstance(results, dict) or not isinstance(results.get('img'), np.ndarray):
        return False
    image, figure = results['img'], results.get(_DRAWN)
    if image.ndim not in (2, 3) or (figure is not None and figure.has_labels):
        return False
    has_labels = any(results.get(name) is not None for name in _LABELS)
    has_boxes = any(results.get(name) is not None for name in ('gt_bboxes', 'instances'))
    if figure is None or (has_labels and has_boxes != bool(figure.boxes)):
        height, width = image.shape[:2]
        boxes = draw_boxes(rng, height, width) if has_boxes else []
        pattern = fill_boxes(boxes, height, width) if boxes else draw_field(rng, height, width)
        figure = results[_DRAWN] = _Figure(pattern, boxes)
        _show(results, np.where(pattern > 0, BRIGHT, DARK) + rng.integers(-12, 13, pattern.shape))
    if not has_labels or getattr(getattr(results.get('gt_bboxes'), 'tensor', None), 'shape', (4,))[-1] != 4:
        return False
    label = results.get('gt_seg_map')
    if figure.boxes:
        _replace_instances(results, figure.boxes, *figure.pattern.shape)
    if label is not None:
        results['gt_seg_map'] = _resize(figure.pattern, label.shape).astype(label.dtype) * highest
    results[_DRAWN] = figure._replace(has_labels=True)
    return True


def _paint(results: Any, ignored: Tuple[int, ...]) -> bool:
    """Replace an image by the gray levels of its label map once both are loaded; return True if it was replaced."""
    image, label = (results.get(key) for key in ('img', 'gt_seg_map')) if isinstance(results, dict) else (None, None)
    if not isinstance(image, np.ndarray) or not isinstance(label, np.ndarray) or label.ndim != 2 or _DRAWN in results:
        return False
    levels = np.where(np.isin(label, ignored), 0.0, label)
    _show(results, _resize(DARK + (BRIGHT - DARK) * levels / max(1.0, levels.max()), image.shape))
    results[_DRAWN] = True
    return True


def _show(results: Dict[str, Any], gray: np.ndarray) -> None:
    image = results['img']
    results['img'] = np.broadcast_to(gray[..., None] if image.ndim == 3 else gray, image.shape).astype(image.dtype)


def _resize(plane: np.ndarray, shape: Tuple[int, ...]) -> np.ndarray:
    rows, columns = (np.arange(new) * old // new for new, old in zip(shape, plane.shape))
    return plane[np.ix_(rows, columns)]


def _replace_instances(results: Dict[str, Any], boxes: List[Box], height: int, width: int) -> None:
    """Replace the annotated boxes by ``boxes``, and replace their labels, flags and masks to match."""
    known, tensor = results.get('gt_bboxes'), torch.tensor(boxes, dtype=torch.float32)
    if known is not None:
        is_typed = torch.is_tensor(known) or hasattr(known, 'tensor')
        results['gt_bboxes'] = type(known)(tensor) if is_typed else tensor.numpy()
    for key, dtype in (('gt_bboxes_labels', np.int64), ('gt_ignore_flags', bool)):
        if key in results:
            results[key] = np.zeros(len(boxes), dtype)
    if results.get('gt_masks') is not None:
        results['gt_masks'] = make_masks(results['gt_masks'], boxes, height, width)


def look(step: str, results: Any) -> List[StepOutput]:
    """Return a list of one ``StepOutput``, with image and labels of a sample, or [] if either is missing."""
    if not isinstance(results, dict):
        return []
    parts = read_parts(results)
    image, masks = parts.image, parts.masks
    if not isinstance(image, np.ndarray) or image.ndim not in (2, 3):
        return []
    figures: Dict[str, np.ndarray] = {}
    if isinstance(parts.label, np.ndarray) and parts.label.ndim == 2:
        figures[_MAP] = parts.label
    boxes = [one.box for one in parts.instances or () if one.box is not None]
    if boxes:
        figures['boxes'] = fill_boxes(boxes, *image.shape[:2])
    if masks is not None and len(masks):
        figures['masks'] = (masks.to_ndarray() if hasattr(masks, 'to_ndarray') else np.asarray(masks)).max(0)
    return [StepOutput(step, image, figures)] if figures else []


def preprocess(program: Program, sample: Any, training: bool = True) -> Optional[Tuple[str, Dict[str, Any]]]:
    """Return the preprocessor's name and the preprocessed sample; ``None`` if the preprocessor is missing or fails."""
    try:
        preprocessor = program.build_preprocessor()
        with program.scope():
            batch = preprocessor(pseudo_collate([sample]), training)
        packed = {'inputs': batch['inputs'][0], 'data_samples': batch['data_samples'][0]}
    except Exception:  # it may also be missing
        return None
    return type(preprocessor).__name__, packed


def _judge(kind: str, steps: List[StepOutput], ignored: Tuple[int, ...], is_drawn: bool) -> Optional[Tuple[Any, ...]]:
    """Return arguments of ``broken`` that name the first step after which image and label differ.

    Return ``()`` if image and label match, ``None`` if the figure cannot be seen.
    """
    named = None
    for seen in reversed(steps):
        found = describe_difference(seen.image, seen.figures[kind], kind, kind == _MAP, ignored, is_drawn)
        if found == '':  # earlier steps may have made a shift that a later one reversed
            break
        if found:  # a crop may hide it
            named, words = seen.step, found
    if named is None:
        return () if found == '' and seen is steps[-1] else None
    return f'{kind}, {named}', f'after this step {words}', dict(step=named)


def check_samples(program: Program) -> List[Result]:
    """Load training samples several times and validation samples once; report failing and dropped samples."""
    results = []
    for split, loads in (('train', LOADS), ('val', 1)):
        for leaf in program.build_leaves(split) if split == 'train' or has_validation(program) else ():
            if not hasattr(leaf, 'prepare_data') or not hasattr(leaf, 'get_data_info'):
                raise DoesNotApply(f'{type(leaf).__name__} is not a data set of MMEngine')
            results += _load_leaf(program, leaf, f'{split} ({type(leaf).__name__})', loads)
    return results


def _load_leaf(program: Program, leaf: Any, subject: str, tries: int) -> List[Result]:
    dropped: Counter = Counter()
    ended: List[str] = []  # the step that raised, or dropped the sample

    def on_step(step: Any, results: Any) -> Any:
        ended.append(type(step).__name__)
        results = step(results)
        if results is not None:
            ended.pop()
        return results

    number = 0
    for index in select_indices(len(leaf), program.samples):
        asked, drops, number = leaf.get_data_info(index), [], number + 1
        file = os.path.basename(str(asked.get('img_path') or asked.get('img_id') or 'a sample'))
        for seed in range(tries):
            ended.clear()
            with program.scope(), watch_steps([leaf], on_step):
                seed_all(seed)
                try:
                    sample = leaf.prepare_data(index)
                except Exception as error:
                    step, failure = (ended or ['the data set'])[0], describe_failure(error)
                    return [broken(f'{subject}, {step}', f'{file}: {failure}', dict(step=step, failure=failure))]
            known = getattr(sample.get('data_samples'), 'metainfo', {}) if isinstance(sample, dict) else {}
            names = [name for name in ('img_id', 'img_path') if name in asked and name in known]
            if sample is None:
                drops.append((ended or ['the data set'])[0])
            elif names and all(str(asked[name]) != str(known[name]) for name in names):
                return [broken(subject, f'{file} was requested, but another image was returned')]
        if len(drops) == tries:
            evidence = f'{file} was dropped in {tries} of {quantity(tries, "load")}: it is never trained'
            return [broken(f'{subject}, {drops[0]}', evidence, dict(step=drops[0], failure=DROPPED))]
        dropped.update(drops)
        if program.seconds_left() < 0:
            break
    words = f'{quantity(number, "sample")} of your {len(leaf):,}, each loaded {quantity(tries, "time")}'
    results = [ran(subject, words, dict(samples=number))]
    for step, count in dropped.items():
        results.append(note(f'{subject}, {step}', f'drops a sample in {count} of {tries * number} loads'))
    return results
