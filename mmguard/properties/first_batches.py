"""Second stage of a dry run: trains on the first batches of the user's loader, as the user's training does."""

from __future__ import annotations

import contextlib
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
from mmguard.properties.readings import has_shapes, measure_edges, read_samples
from mmguard.properties.result import Result, broken, note, ran
from mmguard.properties.runner import (
    build_loader,
    describe_failure,
    enter_autocast,
    is_foreign,
    judge_failure,
    start_runner,
)
from mmguard.properties.samples import get_label_map
from mmguard.properties.scores import walk_tensors
from mmguard.text import quantity

#: Number of batches, maximum seconds per step (a batch that takes longer is scaled down), and CPU seconds after which
#: no further batch is trained.
BATCHES, STEP_SECONDS, _MOST_SECONDS = 3, 2.0, 6.0
#: Divisor of the sides of a scaled batch (some models need it), and share of the loss below which a term has no effect.
_MULTIPLE, _NOTHING = 64, 1e-6
#: Maximum number of samples drawn from the sampler, and minimum share of distinct samples among the drawn samples.
_DRAWS, _FEW = 500, 0.5
#: Minimum values for a report: number of removed labels of a class, share of boxes outside, share of black pixels.
_VANISHED, _OUTSIDE, _PADDED = 8, 0.1, 0.003
#: Minimum ratio of an image's edges at the borders of its own label to its edges at the borders of other labels.
_OWN_EDGES = 1.15


class FirstBatch(NamedTuple):
    """Batch after the preprocessor, scaled down if training on it takes too long."""

    data: Dict[str, Any]
    size: Tuple[int, ...] = ()  # images, height, width; empty if the batch is not one tensor of images
    scaled: Tuple[int, ...] = ()  # the same after scaling
    padded: float = 0.0  # share of the padding of label maps that is not ignored

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
    loaded = load_batches(program)[number]
    with torch.no_grad():
        seed_all(number)
        data = program.build_model().data_preprocessor(copy.deepcopy(loaded), True)
    inputs = data.get('inputs') if isinstance(data, dict) else None
    if not torch.is_tensor(inputs) or inputs.dim() != 4:
        return FirstBatch(data)
    padded = _measure_padding(program, data, loaded)
    size, most = (len(inputs), *inputs.shape[-2:]), program.count_pixels(STEP_SECONDS)
    if inputs[:, 0].numel() <= most:
        return FirstBatch(data, size, size, padded)
    height, width = shrink_size(inputs, most, program.find_side())
    kept = min(size[0], max(program.count_fewest_images(), int(most / (height * width))))
    return FirstBatch(scale_batch(data, kept, height, width), size, (kept, height, width), padded)


def _measure_padding(program: Program, data: Dict[str, Any], loaded: Any) -> float:
    raw = loaded.get('inputs') if isinstance(loaded, dict) else ()
    shares = []
    for image, sample in zip(raw if isinstance(raw, (list, tuple)) else (), data['data_samples']):
        if 'gt_sem_seg' in sample:
            plane, (height, width) = get_label_map(sample)[0], image.shape[-2:]
            rest = torch.cat([plane[height:].flatten(), plane[:height, width:].flatten()])
            shares.append(float((rest != program.ignore_index).float().mean()) if len(rest) else 0.0)
    return max(shares, default=0.0)


def shrink_size(inputs: Tensor, most: float, least: int) -> List[int]:
    """Return [height, width] to shrink images (N, C, H, W) to about ``most`` pixels in all, with sides >= ``least``."""
    factor = (most / inputs[:, 0].numel()) ** 0.5
    return [max(min(least, side), round(side * factor / _MULTIPLE) * _MULTIPLE) for side in inputs.shape[-2:]]


def resize_images(data: Dict[str, Any], number: int, height: int, width: int) -> Dict[str, Any]:
    """Return the first ``number`` images of a batch, resized; their labels are not resized."""
    inputs = data['inputs']
    factors = width / inputs.shape[-1], height / inputs.shape[-2]
    images = interpolate(inputs[:number].float(), (height, width), mode='bilinear', align_corners=False)
    samples = copy.deepcopy(list(data['data_samples'][:number]))
    for one in samples:
        size: Dict[str, Any] = dict.fromkeys(('img_shape', 'pad_shape', 'batch_input_shape'), (height, width))
        size['scale_factor'] = tuple(np.resize(one.metainfo.get('scale_factor', 1.0), 2) * factors)
        one.set_metainfo({name: value for name, value in size.items() if name in one.metainfo})
    return {**data, 'inputs': images, 'data_samples': samples}


def scale_batch(data: Dict[str, Any], number: int, height: int, width: int) -> Dict[str, Any]:
    """Return the first ``number`` images of a batch, resized with boxes and label maps; all label values are kept."""
    rows, columns = height / data['inputs'].shape[-2], width / data['inputs'].shape[-1]
    scaled = resize_images(data, number, height, width)
    for one in scaled['data_samples']:
        for name, value in list(one.items()):
            if hasattr(value, 'bboxes') or 'masks' in value:
                _scale_instances(value, rows, columns)
            elif all(torch.is_tensor(plane) and plane.dim() == 3 for plane in value.values()):
                planes = {key: _scale_labels(plane, height, width) for key, plane in value.items()}
                setattr(one, name, type(value)(metainfo=value.metainfo, **planes))
    return scaled


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
    """Record of training steps: their batches, losses, labels and image edges, and the parameters with a gradient."""

    def __init__(self) -> None:
        self.batches: List[FirstBatch] = []
        self.losses: List[float] = []
        self.shares: Dict[str, List[float]] = {}
        self.unadded: Set[str] = set()
        self.used: Set[str] = set()  # parameters with a gradient, which may be zero before the first step
        self.labels: Counter = Counter()
        self.edges: Tuple[List[float], List[float]] = ([], [])


def check_batches(program: Program) -> List[Result]:
    """Train on the first batches of the user's loader, and judge losses, gradients, labels and images."""
    results: List[Result] = []
    try:
        loader, wanted = build_loader(program, 'train', 1), min(len(program.build_dataset('train')), _DRAWS)
        sampler, drawn = getattr(loader.batch_sampler, 'sampler', None) or loader.sampler, []
        with contextlib.suppress(Exception):  # a sampler of batches, or of pairs
            drawn = [int(one) for one in islice(iter(sampler), wanted)]
        seen = len(set(drawn))
        if drawn and seen < _FEW * wanted and wanted > 3:
            words = f'{type(sampler).__name__} draws {seen} different samples in {len(drawn)} draws'
            results.append(broken('your sampler', words, dict(drawn=seen)))
        number = len(load_batches(program))
        runner = start_runner(program)
    except Exception as error:
        return [*results, judge_failure('your loader', error)]
    if not number:
        return [*results, broken('your loader', 'ends without a batch')]
    steps, began = _Steps(), time.process_time()
    for place in range(number):
        which, invalid = f'batch {place + 1} of your loader', []
        try:
            steps.batches.append(preprocess_batch(program, place))
            _count(program, steps)
            invalid = program.find_invalid_labels(steps.labels)
            _step(program, runner.optim_wrapper, steps)
        except Exception as error:
            found = judge_failure(which, error)
            if invalid:
                words = f'{found.evidence}: no output for the labels {", ".join(map(str, invalid[:8]))}'
                found = broken(which, words, dict(found.data, labels=invalid))
            return [*results, found]
        if not np.isfinite(steps.losses[-1]):
            return [*results, broken(which, f'the loss is {steps.losses[-1]}', dict(loss=str(steps.losses[-1])))]
        if program.seconds_left() < 0 or time.process_time() - began > _MOST_SECONDS:
            break
    first, done = steps.batches[0], len(steps.batches)
    words = quantity(done, 'batch', 'batches') + (f' of {first}' if first.size else '')
    words += f', of your {len(program.build_dataset("train")):,} samples; loss '
    words += ', '.join(f'{loss:.3g}' for loss in steps.losses)
    results.append(ran('steps', words, dict(losses=steps.losses, batches=done)))
    results += check_shapes(program, first) if first.scaled != first.size else []
    for name in sorted(steps.unadded):
        results.append(broken(name, 'has a gradient, but is not added to the loss: its name lacks "loss"'))
    for name, shares in steps.shares.items():
        most = max(shares)
        if most <= _NOTHING:
            words = f'is only {most:.1g} of the loss in {quantity(len(shares), "batch", "batches")}'
            results.append((broken if most > 0 else note)(name, words, dict(share=most)))
    return results + _judge_gradients(program, runner, steps) + _judge_labels(program, steps)


def _step(program: Program, optimizer: Any, steps: _Steps) -> None:
    model = program.build_model()
    with program.scope(), enter_autocast(program):
        seed_all(0)
        losses = model(**steps.batches[-1].data, mode='loss')
        total, logs = model.parse_losses(losses)
    steps.losses.append(float(total))
    for name, value in losses.items():
        if 'loss' not in name and any(one.requires_grad for one in walk_tensors(value)):
            steps.unadded.add(name)
        elif 'loss' in name and name in logs:
            steps.shares.setdefault(name, []).append(abs(float(logs[name])) / max(abs(float(total)), 1e-30))
    model.zero_grad(set_to_none=True)
    total.backward()
    steps.used |= {name for name, one in model.named_parameters() if one.grad is not None}
    if np.isfinite(steps.losses[-1]):
        optimizer.step()
    model.zero_grad(set_to_none=True)


def _count(program: Program, steps: _Steps) -> None:
    """Count the labels of the last batch, and measure image edges at label borders of the same and of other images."""
    data = steps.batches[-1].data
    samples = data.get('data_samples') if isinstance(data, dict) else None
    pictures = []
    for number, one in enumerate(samples if isinstance(samples, (list, tuple)) else ()):
        if program.kind == 'instances':
            steps.labels.update(one.gt_instances.labels.tolist() if 'labels' in one.get('gt_instances', {}) else ())
        elif 'gt_sem_seg' in one:
            plane = get_label_map(one)[0].cpu().numpy()
            steps.labels.update(dict(zip(*(found.tolist() for found in np.unique(plane, return_counts=True)))))
            if torch.is_tensor(data['inputs']):
                pictures.append((data['inputs'][number].mean(0).cpu().numpy(), plane))
    for place, (image, _) in enumerate(pictures):
        for other, (_, label) in enumerate(pictures):
            if label.shape == image.shape and min(label.shape) > 4 and has_shapes(image):
                steps.edges[place != other].append(measure_edges(image, label, program.ignore_index))


def check_shapes(program: Program, batch: FirstBatch) -> List[Result]:
    """Run the model on the meta device at the scaled and full size of a batch; report if only the full size fails."""
    model, channels = copy.deepcopy(program.build_model()).to('meta'), batch.data['inputs'].shape[1]
    for number, *sides in (batch.scaled, batch.size):
        try:
            with torch.no_grad(), program.scope():
                model(torch.zeros((number, channels, *sides), device='meta'), mode='tensor')
        except Exception as error:
            words = f'fails at the full size of {sides[0]}x{sides[1]}: {describe_failure(error)}'
            return [broken('model', words)] if (number, *sides) == batch.size else []
    return []


def _judge_gradients(program: Program, runner: Any, steps: _Steps) -> List[Result]:
    """Report parts and parameters of the model without a gradient, and parameters that the optimizer lacks."""
    trainable = {name: one for name, one in program.build_model().named_parameters() if one.requires_grad}
    parts = {name.partition('.')[0] for name in trainable}
    dead = set() if steps.unadded else parts - {name.partition('.')[0] for name in steps.used}
    batches = quantity(len(steps.losses), 'batch', 'batches')
    results = [broken(part, f'none of its parameters has a gradient in {batches}') for part in sorted(dead)]
    idle = sorted(name for name in set(trainable) - steps.used if name.partition('.')[0] not in dead)
    if idle:
        words = f'{quantity(len(idle), "parameter")} without a gradient in {batches}, such as {idle[0]}'
        finds = program.config.get('find_unused_parameters')
        words += '' if finds else ': training on several GPUs needs find_unused_parameters=True'
        results.append(note('gradients', words, dict(parameters=idle[:20])))
    try:
        held = {id(one) for group in runner.optim_wrapper.param_groups for one in group['params']}
    except (AttributeError, TypeError):  # several optimizers
        return results
    left = [name for name in sorted(steps.used) if id(trainable.get(name)) not in held]
    if left:
        words = f'the optimizer lacks {quantity(len(left), "parameter")} with a gradient, such as {left[0]}'
        results.append(broken('optim_wrapper', words, dict(parameters=left[:20])))
    return results


def _judge_labels(program: Program, steps: _Steps) -> List[Result]:
    """Report labels, boxes and pixel values that the pipeline removes from the training samples or corrupts."""
    results: List[Result] = []
    names, readings = program.get_class_names(), read_samples(program, 'train')
    loads = quantity(len(readings), 'load')
    before = Counter(label for one in readings for label in one.before)
    after = Counter(label for one in readings for label in one.after)
    invalid, hidden = (program.find_invalid_labels(found) for found in ({*steps.labels, *after}, before))
    if invalid:
        words = f'no output for labels {", ".join(map(str, invalid[:8]))}, which train as background, or not at all'
        results.append(broken('labels', words, dict(labels=invalid)))
    elif hidden:
        steps_of = [one for leaf in program.build_leaves('train') for one in getattr(leaf.pipeline, 'transforms', ())]
        words = f'no output for the labels {", ".join(map(str, hidden[:8]))} of your files'
        if any(map(is_foreign, steps_of)):  # one of them may map labels
            results.append(note('labels', f'{words}: none of these labels is left in {loads}'))
        else:
            results.append(broken('labels', f'{words}: a crop with such a label fails', dict(labels=hidden)))
    padded = max(one.padded for one in steps.batches)
    if padded > 0:
        words = f'{padded:.0%} of the padding is not ignored, but trained as a class: check seg_pad_val'
        results.append(note('data_preprocessor', words))
    own, others = ([one for one in shares if one] for shares in steps.edges)
    if len(own) > 3 and len(others) > 3 and np.mean(own) < _OWN_EDGES * np.mean(others):
        words = f"image gradients are {np.mean(own):.2f} times their average at borders of the image's own label, and "
        words += f'{np.mean(others):.2f} times at the label borders of other images. Draw one image with its label'
        results.append(note('labels', words, dict(own=float(np.mean(own)), others=float(np.mean(others)))))
    if not readings:
        return results
    if not after:
        words = f'no target is left in {loads}' + ('' if before else '; none was loaded')
        results.append(broken('the pipeline', words, dict(before=dict(before))))
    missing = [label for label in sorted(before) if before[label] >= _VANISHED and not after[label]]
    missing = [label for label in missing if label not in hidden]
    if missing and after:
        named = ', '.join(str(names[label]) if label < len(names) else str(label) for label in missing[:5])
        results.append(note('the pipeline', f'no label of {named} is left in {loads}', dict(labels=missing)))
    kept, loaded = sum(after.values()), sum(before.values())
    if program.kind == 'instances' and after and kept < loaded / 4:
        results.append(note('the pipeline', f'{kept:,} of {loaded:,} objects are left in {loads}'))
    outside = float(np.mean([one.outside for one in readings]))
    if outside > _OUTSIDE:
        words = f'{outside:.0%} of the boxes exceed their image by more than a pixel: is their format (x, y, w, h)?'
        results.append(note('boxes', words, dict(share=outside)))
    was, black = np.mean([one.black for one in readings], 0).tolist()
    if black > 2 * was + _PADDED:
        words = f'{black:.1%} of the pixels are filled with 0 by the pipeline, but not ignored in the label'
        results.append(note('the pipeline', words, dict(share=black)))
    low, high = min(one.values[0] for one in readings), max(one.values[1] for one in readings)
    mean = getattr(program.build_model().data_preprocessor, 'mean', None)
    if torch.is_tensor(mean) and float(mean.max()) >= 20 and high <= 20:
        words = f'values of {low:.2g} to {high:.2g} reach the preprocessor, which subtracts {float(mean.max()):.0f}: '
        words += 'the images were normalized or divided before'
        results.append(note('data_preprocessor', words, dict(low=low, high=high)))
    ours, theirs = ([one.scale for one in read_samples(program, split) if one.scale > 0] for split in ('train', 'val'))
    ratio = float(np.median(theirs) / np.median(ours)) if ours and theirs else 1.0
    if not 0.4 < ratio < 2.5:
        words = f'objects are {ratio:.2g} times as large as in the training'
        results.append(note('val pipeline', words, dict(ratio=ratio)))
    return results
