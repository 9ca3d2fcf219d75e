"""Second stage of a dry run: the first batches of the user's loader, trained as the user's training would do it."""

from __future__ import annotations

import copy
import time
from collections import Counter
from itertools import islice
from typing import Any, Dict, List, NamedTuple, Set, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from mmguard.properties.datasets import seed_all
from mmguard.properties.program import Program, cache_result
from mmguard.properties.readings import SampleReading, has_shapes, measure_edges, read_samples
from mmguard.properties.result import Result, broken, note, ran
from mmguard.properties.runner import (
    build_loader,
    describe_failure,
    enter_autocast,
    is_foreign,
    judge_failure,
    judge_start,
    make_loader,
    start_runner,
)
from mmguard.text import quantity

#: Number of batches, and the seconds that a step on one may take; a larger one is scaled down.
BATCHES, STEP_SECONDS = 3, 2.0
#: CPU seconds after which no further batch is trained.
_MOST_SECONDS = 6.0
#: Multiple of the sides of a scaled batch.
_MULTIPLE = 32
#: Share of all losses below which a term does not train.
_NOTHING = 1e-6
#: Samples that the sampler draws, and the share of different ones below which it repeats too few.
_DRAWS, _FEW = 500, 0.5
#: Loads in which a class must vanish to be named, and shares of boxes and pixels that are named.
_VANISHED, _OUTSIDE, _PADDED = 8, 0.1, 0.003
#: Ratio of the image's edges at its own label's borders to those at other labels' borders, below which it is named.
_OWN_EDGES = 1.15


class FirstBatch(NamedTuple):
    """A batch after the preprocessor, scaled if it takes too long.

    Attributes:
        data (dict): Input of the model.
        size (tuple): Images, height, width; empty if the batch is not one tensor of images.
        scaled (tuple): The same after scaling.
        padded (float): Share of the padding of label maps that is not ignored.
    """

    data: Dict[str, Any]
    size: Tuple[int, ...] = ()
    scaled: Tuple[int, ...] = ()
    padded: float = 0.0

    def __str__(self) -> str:
        number, height, width = self.scaled
        words = f'{number} at {height}x{width}'
        return words if self.scaled == self.size else f'{words} (scaled from {"x".join(map(str, self.size))})'


@cache_result
def load_batches(program: Program) -> List[Any]:
    """Load the first batches of the user's loader."""
    seed_all(0)
    return list(islice(iter(build_loader(program, 'train')), BATCHES))


@cache_result
def preprocess_batch(program: Program, number: int) -> FirstBatch:
    """Return a batch after the preprocessor, scaled down if a step on it would take more than ``STEP_SECONDS``."""
    with torch.no_grad():
        seed_all(number)
        data = program.build_model().data_preprocessor(copy.deepcopy(load_batches(program)[number]), True)
    inputs = data.get('inputs') if isinstance(data, dict) else None
    if not torch.is_tensor(inputs) or inputs.dim() != 4:
        return FirstBatch(data)
    padded = _measure_padding(program, data, load_batches(program)[number])
    size = (len(inputs), *inputs.shape[-2:])
    most = program.count_pixels(STEP_SECONDS)
    if np.prod(size, dtype=float) <= most:
        return FirstBatch(data, size, size, padded)
    least = program.find_side()
    factor = (most / np.prod(size, dtype=float)) ** 0.5
    height, width = (max(min(least, side), round(side * factor / _MULTIPLE) * _MULTIPLE) for side in size[1:])
    kept = max(min(2, size[0]), min(size[0], int(most / (height * width))))
    scaled = scale_batch(data, kept, height, width)
    return FirstBatch(scaled, size, (kept, height, width), padded)


def _measure_padding(program: Program, data: Dict[str, Any], loaded: Any) -> float:
    raw = loaded.get('inputs') if isinstance(loaded, dict) else ()
    shares = []
    for image, sample in zip(raw if isinstance(raw, (list, tuple)) else (), data['data_samples']):
        if 'gt_sem_seg' in sample:
            plane, (height, width) = next(iter(sample.gt_sem_seg.values()))[0], image.shape[-2:]
            rest = torch.cat([plane[height:].flatten(), plane[:height, width:].flatten()])
            shares.append(float((rest != program.ignore_index).float().mean()) if len(rest) else 0.0)
    return max(shares, default=0.0)


def scale_batch(data: Dict[str, Any], number: int, height: int, width: int) -> Dict[str, Any]:
    """Return the first images of a batch at another size: boxes scaled, label maps by nearest with all their values."""
    inputs = data['inputs']
    rows, columns = height / inputs.shape[-2], width / inputs.shape[-1]
    images = interpolate(inputs[:number].float(), (height, width), mode='bilinear', align_corners=False)
    samples = copy.deepcopy(list(data['data_samples'][:number]))
    for one in samples:
        size = dict.fromkeys(('img_shape', 'pad_shape', 'batch_input_shape'), (height, width))
        one.set_metainfo({name: value for name, value in size.items() if name in one.metainfo})
        for _, value in list(one.items()):
            if hasattr(value, 'bboxes') or 'masks' in value:
                _scale_instances(value, rows, columns)
            elif all(torch.is_tensor(plane) and plane.dim() == 3 for plane in value.values()):
                planes = {key: _scale_labels(plane, height, width) for key, plane in value.items()}
                for key in planes:  # a PixelData refuses planes of different sizes
                    delattr(value, key)
                for key, plane in planes.items():
                    setattr(value, key, plane)
    return {**data, 'inputs': images, 'data_samples': samples}


def _scale_labels(plane: Tensor, height: int, width: int) -> Tensor:
    found = interpolate(plane[None].double(), (height, width), mode='nearest')[0].to(plane.dtype)
    missing = [value for value in torch.unique(plane).tolist() if not bool((found == value).any())]
    for place, value in enumerate(missing[: found.numel() // 2]):
        found.view(-1)[place] = value
    return found


def _scale_instances(instances: Any, rows: float, columns: float) -> None:
    boxes = instances.get('bboxes')
    if boxes is not None:
        tensor = boxes if torch.is_tensor(boxes) else boxes.tensor
        if tensor.shape[-1] == 4:
            tensor.mul_(tensor.new_tensor([columns, rows, columns, rows]))
    if 'masks' in instances and hasattr(instances.masks, 'resize'):
        height, width = instances.masks.height, instances.masks.width
        instances.masks = instances.masks.resize((round(height * rows), round(width * columns)))


class _Steps:
    """Record of the steps: losses, terms without effect, labels, parameters with a gradient."""

    def __init__(self) -> None:
        self.losses: List[float] = []
        self.shares: Dict[str, List[float]] = {}
        self.unadded: Set[str] = set()
        self.used: Set[str] = set()  # parameters with a gradient, which may be zero before the first step
        self.labels: Counter = Counter()
        self.padded = 0.0
        self.edges: Tuple[List[float], List[float]] = ([], [])


def check_batches(program: Program) -> List[Result]:
    """Train on the first batches of the user's loader, and judge losses, gradients, labels and images."""
    results = _check_sampler(program)
    try:
        number = len(load_batches(program))
    except Exception as error:
        return [*results, judge_failure('your loader', error)]
    if not number:
        return [*results, broken('your loader', 'ends without a batch')]
    try:
        runner = start_runner(program)
    except Exception as error:
        return [*results, judge_start(error)]
    steps, trained, began = _Steps(), [], time.process_time()
    for place in range(number):
        which, invalid = f'batch {place + 1} of your loader', []
        try:
            batch = preprocess_batch(program, place)
            _count(program, batch, steps)
            steps.padded = max(steps.padded, batch.padded)
            invalid = program.find_invalid_labels(steps.labels)
            _step(program, runner.optim_wrapper, batch, steps)
        except Exception as error:
            if invalid:
                failure = describe_failure(error)
                words = f'{failure}: no output for the labels {", ".join(map(str, invalid[:8]))}'
                return [*results, broken(which, words, dict(labels=invalid, failure=failure))]
            return [*results, judge_failure(which, error)]
        if not np.isfinite(steps.losses[-1]):
            return [*results, broken(which, f'the loss is {steps.losses[-1]}', dict(loss=str(steps.losses[-1])))]
        trained.append(batch)
        if program.seconds_left() < 0 or time.process_time() - began > _MOST_SECONDS:
            break
    words = f'{quantity(len(trained), "batch", "batches")} of {trained[0]}' if trained[0].size else f'{number} batches'
    words += f', of your {len(program.build_dataset("train")):,} samples; loss '
    words += ', '.join(f'{loss:.3g}' for loss in steps.losses)
    results.append(ran('steps', words, dict(losses=steps.losses, batches=len(trained))))
    return results + _judge_terms(steps) + _judge_gradients(program, runner, steps) + _judge_labels(program, steps)


def _check_sampler(program: Program) -> List[Result]:
    """Count the different samples among those that the sampler draws."""
    loader = make_loader(program, 'train')  # some samplers iterate only once
    sampler = getattr(loader.batch_sampler, 'sampler', None) or loader.sampler
    try:
        wanted = min(len(program.build_dataset('train')), _DRAWS)
        drawn = [int(one) for one in islice(iter(sampler), wanted)]
    except Exception:  # a sampler of batches, or of pairs
        return []
    if len(set(drawn)) < _FEW * wanted and wanted > 3:
        words = f'{type(sampler).__name__} draws {len(set(drawn))} different samples in {len(drawn)} of {wanted:,}'
        return [broken('your sampler', words, dict(drawn=len(set(drawn))))]
    return []


def _step(program: Program, optimizer: Any, batch: FirstBatch, steps: _Steps) -> None:
    model = program.build_model()
    with program.scope(), enter_autocast(program):
        seed_all(0)
        losses = model(**batch.data, mode='loss')
        total, logs = model.parse_losses(losses)
    steps.losses.append(float(total))
    for name, value in losses.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        if any(torch.is_tensor(one) and one.requires_grad for one in values) and 'loss' not in name:
            steps.unadded.add(name)
        elif 'loss' in name and name in logs:
            steps.shares.setdefault(name, []).append(abs(float(logs[name])) / max(abs(float(total)), 1e-30))
    model.zero_grad(set_to_none=True)
    total.backward()
    steps.used |= {name for name, one in model.named_parameters() if one.grad is not None}
    if np.isfinite(steps.losses[-1]):
        optimizer.step()
    model.zero_grad(set_to_none=True)


def _count(program: Program, batch: FirstBatch, steps: _Steps) -> None:
    samples = batch.data.get('data_samples') if isinstance(batch.data, dict) else None
    if not isinstance(samples, (list, tuple)):
        return
    pictures = []
    for number, one in enumerate(samples):
        if program.kind == 'instances':
            steps.labels.update(one.gt_instances.labels.tolist() if 'labels' in one.get('gt_instances', {}) else ())
        if 'gt_sem_seg' not in one:
            continue
        plane = next(iter(one.gt_sem_seg.values()))[0]
        if program.kind == 'pixels':
            values, counts = torch.unique(plane, return_counts=True)
            steps.labels.update(dict(zip(values.tolist(), counts.tolist())))
        if torch.is_tensor(batch.data['inputs']):
            pictures.append((batch.data['inputs'][number].mean(0).cpu().numpy(), plane.cpu().numpy()))
    for place, (image, _) in enumerate(pictures):
        for other, (_, label) in enumerate(pictures):
            if label.shape == image.shape and min(label.shape) > 4 and has_shapes(image):
                steps.edges[place != other].append(measure_edges(image, label, program.ignore_index))


def _judge_terms(steps: _Steps) -> List[Result]:
    """Name losses that are not added up, and those that are nothing in all batches."""
    results = [
        broken(name, 'has a gradient, but is not added to the loss: its name lacks "loss"')
        for name in sorted(steps.unadded)
    ]
    for name, shares in steps.shares.items():
        if max(shares) <= _NOTHING:
            words = f'is {max(shares):.1g} of the loss in {quantity(len(shares), "batch", "batches")}'
            judge = broken if max(shares) > 0 else note
            results.append(judge(name, words, dict(share=max(shares))))
    return results


def _judge_gradients(program: Program, runner: Any, steps: _Steps) -> List[Result]:
    """Name parts of the model without a gradient, and parameters that the optimizer does not have."""
    model = program.build_model()
    trainable = {name: one for name, one in model.named_parameters() if one.requires_grad}
    idle = sorted(set(trainable) - steps.used)
    parts = {name.partition('.')[0] for name in trainable}
    dead = (
        []
        if steps.unadded
        else sorted(part for part in parts if all(name in idle for name in trainable if name.partition('.')[0] == part))
    )
    batches = quantity(len(steps.losses), 'batch', 'batches')
    results = [broken(part, f'none of its parameters has a gradient in {batches}') for part in dead]
    idle = [name for name in idle if name.partition('.')[0] not in dead]
    if idle:
        words = f'{quantity(len(idle), "parameter")} without a gradient in {batches}, as {idle[0]}'
        advice = (
            '' if program.config.get('find_unused_parameters') else ': several GPUs need find_unused_parameters=True'
        )
        results.append(note('gradients', words + advice, dict(parameters=idle[:20])))
    try:
        held = {id(one) for group in runner.optim_wrapper.param_groups for one in group['params']}
    except (AttributeError, TypeError):  # several optimizers
        return results
    left = [name for name in sorted(steps.used) if id(trainable.get(name)) not in held]
    if left:
        words = f'{quantity(len(left), "parameter")} with a gradient that the optimizer does not move, as {left[0]}'
        results.append(broken('optim_wrapper', words, dict(parameters=left[:20])))
    return results


def _judge_labels(program: Program, steps: _Steps) -> List[Result]:
    results: List[Result] = []
    readings = read_samples(program, 'train')
    invalid = program.find_invalid_labels({*steps.labels, *(label for one in readings for label in one.after)})
    if invalid:
        words = f'no output for the labels {", ".join(map(str, invalid[:8]))}: they train as background, or not at all'
        results.append(broken('labels', words, dict(labels=invalid)))
    hidden = program.find_invalid_labels(label for one in readings for label in one.before)
    if hidden and not invalid:
        steps_of = [one for leaf in program.build_leaves('train') for one in getattr(leaf.pipeline, 'transforms', ())]
        words = f'no output for the labels {", ".join(map(str, hidden[:8]))} of your files'
        if any(map(is_foreign, steps_of)):  # one of them may map labels
            results.append(note('labels', f'{words}: none of them was left in {len(readings)} loads'))
        else:
            results.append(broken('labels', f'{words}: a crop that shows them ends the training', dict(labels=hidden)))
    if steps.padded > 0:
        words = f'{steps.padded:.0%} of the padding is not ignored: it trains as a class (seg_pad_val)'
        results.append(note('data_preprocessor', words))
    own, others = ([one for one in shares if one] for shares in steps.edges)
    if len(own) > 3 and len(others) > 3 and np.mean(own) < _OWN_EDGES * np.mean(others):
        words = f'edges of the images at the borders of their own labels: {np.mean(own):.2f} times the average, '
        words += f'at those of other images: {np.mean(others):.2f}. Draw one image with its label'
        results.append(note('labels', words, dict(own=float(np.mean(own)), others=float(np.mean(others)))))
    return results + judge_readings(program, readings)


def judge_readings(program: Program, readings: List[SampleReading]) -> List[Result]:
    """Judge what the pipeline does with labels and values of the training samples."""
    if not readings:
        return []
    names, loads = program.get_class_names(), quantity(len(readings), 'load')
    before = Counter(label for one in readings for label in one.before)
    after = Counter(label for one in readings for label in one.after)
    results: List[Result] = []
    if not after:
        words = f'no target is left in {loads}' + ('' if before else '; none was loaded')
        results.append(broken('the pipeline', words, dict(before=dict(before))))
    missing = [label for label in sorted(before) if before[label] >= _VANISHED and not after[label]]
    missing = [label for label in missing if label not in program.find_invalid_labels(missing)]
    if missing and after:
        named = ', '.join(str(names[label]) if label < len(names) else str(label) for label in missing[:5])
        results.append(note('the pipeline', f'no label is left of {named} in {loads}', dict(labels=missing)))
    kept = sum(sum(one.after.values()) for one in readings)
    loaded = sum(sum(one.before.values()) for one in readings)
    if program.kind == 'instances' and after and kept < loaded / 4:
        results.append(note('the pipeline', f'{kept:,} of {loaded:,} objects are left in {loads}'))
    outside = float(np.mean([one.outside for one in readings]))
    if outside > _OUTSIDE:
        words = f'{outside:.0%} of the boxes reach out of their image by more than a pixel: are they (x, y, w, h)?'
        results.append(note('boxes', words, dict(share=outside)))
    was, padded = (float(np.mean([one.black[place] for one in readings])) for place in (0, 1))
    if padded > 2 * was + _PADDED:
        words = f'{padded:.1%} of the pixels are filled with 0 by the pipeline, but not ignored in the label'
        results.append(note('the pipeline', words, dict(share=padded)))
    return results + _judge_values(program, readings) + _judge_scales(program, readings)


def _judge_values(program: Program, readings: List[SampleReading]) -> List[Result]:
    """Name images that were normalized or divided before a preprocessor that subtracts a mean of 0..255."""
    mean = getattr(program.build_model().data_preprocessor, 'mean', None)
    if mean is None or not torch.is_tensor(mean) or float(mean.max()) < 20:
        return []
    low, high = min(one.values[0] for one in readings), max(one.values[1] for one in readings)
    if high > 20:
        return []
    words = f'images of {low:.2g} to {high:.2g} reach the preprocessor, which subtracts {float(mean.max()):.0f}: '
    words += 'they were normalized or divided before'
    return [note('data_preprocessor', words, dict(low=low, high=high))]


def _judge_scales(program: Program, readings: List[SampleReading]) -> List[Result]:
    """Compare the factors by which training and validation enlarge their images."""
    ours = [one.scale for one in readings if one.scale > 0]
    try:
        theirs = [one.scale for one in read_samples(program, 'val') if one.scale > 0]
    except Exception:  # reported with the data
        return []
    if not ours or not theirs:
        return []
    ratio = float(np.median(theirs) / np.median(ours))
    if 0.4 < ratio < 2.5:
        return []
    return [note('val pipeline', f'objects are {ratio:.2g} times as large as in the training', dict(ratio=ratio))]
