"""Gradients of scores: each label raises only its own output, and ignored elements have no weight."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor

from mmguard.properties.program import Program
from mmguard.properties.readings import measure_ignored
from mmguard.properties.result import DoesNotApply, Result, broken, mark_untested, note, ran
from mmguard.properties.runner import describe_failure
from mmguard.properties.samples import make_instances
from mmguard.properties.scores import (
    ROUNDING,
    find_pixel_heads,
    find_raised_outputs,
    is_score_map,
    judge_outputs,
    measure_ignored_share,
    share_features,
    train_on,
)
from mmguard.text import quantity

#: Parts of the names of losses of classes.
_OF_CLASSES = ('cls', 'heatmap')


def check_outputs(program: Program) -> List[Result]:
    """Train on each of a few classes, and check which output the gradient raises."""
    names = program.get_class_names()
    results = _check_names(names, program.num_classes) + _check_things(program)
    classes = program.choose_classes()
    if len(classes) < 2:
        return [*results, note('', 'there is only one class', dict(tested=False))]
    with share_features(program.build_model()):
        tables = _sum_gradients(program, classes, 0)
        found = {place: find_raised_outputs(table) for place, table in tables.items()}
        zeros = {place: _find_zeros(table, classes) for place, table in tables.items()}
        if any(zeros.values()) or any(
            output not in (None, label) for one in found.values() for label, output in zip(classes, one)
        ):
            again = _sum_gradients(program, classes, 1)  # another image, for confirmation
            for place, one in found.items():
                other = find_raised_outputs(again[place]) if place in again else []
                found[place] = [output if output in other[n : n + 1] else None for n, output in enumerate(one)]
                zeros[place] = [label for label in zeros[place] if label in _find_zeros(again.get(place), classes)]
    if not found:
        words = 'no classification loss takes scores with one axis of classes from a head'
        return [*results, note('', words, dict(tested=False))]
    where = f'{len(classes)} of {program.num_classes} labels on {program.describe_made_up()}'
    for place, outputs in found.items():
        results.append(judge_outputs(place, dict(zip(classes, outputs)), where, names, zeros[place]))
    return results


def _find_zeros(table: Optional[Tensor], classes: List[int]) -> List[int]:
    """Return the classes whose row is zero, if others are not."""
    if table is None or not bool(table.any()):
        return []
    return [label for label, row in zip(classes, table) if not bool(row.any())]


def _sum_gradients(program: Program, classes: List[int], seed: int) -> Dict[str, Tensor]:
    """Return the gradient of the outputs (columns) of each tensor of scores for each class (rows)."""
    side, is_pixels = program.find_side(), program.kind == 'pixels'
    rows: Dict[str, List[Tensor]] = {}
    if is_pixels:
        heads = find_pixel_heads(program)
    else:
        modules = program.build_model().named_modules()
        heads = {name: one for name, one in modules if name and getattr(one, 'num_classes', 0) == program.num_classes}
    box = (side * 0.25, side * 0.3, side * 0.75, side * 0.7)
    for label in classes:
        if is_pixels:  # two, for BatchNorm after a global pooling
            samples = [program.build_pixels(label, side, 2 * seed + number) for number in (0, 1)]
        else:
            samples = [program.build_instances([box], [label], side, seed)]
        for one in train_on(program, heads, samples, keep_zero=is_pixels):
            is_map = is_pixels and is_score_map(one.scores, heads[one.head], 2)
            summed = _sum_outputs(program, one.gradient, heads[one.head], is_map)
            if summed is not None and (is_map or any(word in one.loss for word in _OF_CLASSES)):
                rows.setdefault(f'{one.head}[{one.number}], {one.loss}', []).append(summed)
    tables = {place: torch.stack(found) for place, found in rows.items() if len(found) == len(classes)}
    raised = {place: table for place, table in tables.items() if bool(table.any())}
    return raised or tables  # a target that is the overlap of an untrained box raises no output at any level


def _sum_outputs(program: Program, gradient: Tensor, head: Any, is_map: bool) -> Optional[Tensor]:
    """Sum a gradient by output; ``None`` if the scores have no axis of outputs."""
    gradient = gradient.clamp(max=0)  # the lowered outputs depend on the chosen anchors
    classes = program.num_classes
    outputs = getattr(head, 'cls_out_channels', classes)
    outputs = outputs if isinstance(outputs, int) else classes
    shape = gradient.shape
    if is_map:
        return gradient.sum((0, 2, 3)) if shape[1] == classes > 1 else None
    width = getattr(head, 'num_attrib', outputs)  # YOLOv3: a box and its confidence, then the classes
    if len(shape) == 4 and program.kind == 'instances' and shape[0] == 1 and shape[1] % width == 0:
        return gradient.sum((0, 2, 3)).reshape(-1, width).sum(0)[-outputs:]  # (N, anchors x classes, H, W)
    has_outputs = len(shape) in (2, 3, 4) and shape[-1] in (outputs, classes, classes + 1)
    return gradient.flatten(0, -2).sum(0) if has_outputs else None


def _check_names(names: Tuple[str, ...], outputs: int) -> List[Result]:
    counts = f'the data set names {len(names)} classes, the heads have {outputs}'
    if len(names) > outputs:
        return [broken('class names', f'{counts}: no output for {", ".join(names[outputs : outputs + 5])}')]
    if names and len(names) < outputs:
        return [note('class names', f'{counts}: the last ones are never trained')]
    twice = sorted({name for name in names if names.count(name) > 1})
    return [broken('class names', f'several labels have one name: {", ".join(twice[:5])}')] if twice else []


def _check_things(program: Program) -> List[Result]:
    """Compare the number of things in panoptic heads, which come first, with the order of the class names."""
    try:
        known = program.build_dataset('train').metainfo
    except Exception:  # the data are missing
        known = (program.get_dataset_config('train') or {}).get('metainfo') or {}
    names, things = known.get('classes') or (), set(known.get('thing_classes') or ())
    results = []
    for name, head in program.build_model().named_modules():
        number = getattr(head, 'num_things_classes', 0)
        wrong = [label for label, one in enumerate(names) if (one in things) != (label < number)]
        if name and things and number and wrong:
            words = f'label {wrong[0]} ({names[wrong[0]]}) is {"a thing" if names[wrong[0]] in things else "stuff"}'
            words += f', but the head takes labels 0..{number - 1} for things'
            results.append(broken(f'{name}, class names', words))
    return results


def check_ignored(program: Program) -> List[Result]:
    """Ignore the left half of images, and check the gradients of the scores there, for each loss."""
    results = _check_boxes(program) if program.kind == 'instances' else []
    heads = find_pixel_heads(program) if program.has_label_map else {}
    if not heads and not results:
        raise DoesNotApply('no head scores each class and pixel, and no assigner uses ignored boxes (ignore_iof_thr)')
    found: Dict[str, Result] = {}
    for factor in (1, 2, 4) if heads else ():
        for result in _check_pixels(program, heads, factor):
            if result.subject not in found or found[result.subject].outcome == 'note':
                found[result.subject] = result
        if found and all(result.data.get('is_final', True) for result in found.values()):
            break
    if not found and not results:
        raise DoesNotApply('no loss trains a score for each class and pixel')
    return [*results, *found.values()]


def _check_pixels(program: Program, heads: Dict[str, Any], factor: int) -> List[Result]:
    side = factor * program.find_side()
    samples = program.build_half_ignored(side)
    try:
        trained = train_on(program, heads, samples, side)
    except Exception as error:
        if factor > 1:
            return []  # larger than any size that was tried
        words = f'fail where pixels are ignored: {describe_failure(error)}'
        return [_blame_ignored(program, 'the losses', words, dict(failure=describe_failure(error)))]
    results: List[Result] = []
    masks: Dict[str, List[float]] = {}
    for one in trained:
        head = heads[one.head]
        is_mask = not is_score_map(one.scores, head, len(samples))
        is_of_masks = program.kind == 'pixels' and one.scores.dim() > 3 and ('mask' in one.loss or 'dice' in one.loss)
        if is_mask and not is_of_masks:
            continue
        subject, ignored = f'{one.head}, {one.loss}', getattr(head, 'ignore_index', program.ignore_index)
        share = measure_ignored_share(one.gradient)
        if ignored != program.ignore_index:
            words = f'this head ignores label {ignored}, the first head {program.ignore_index}'
            results.append(mark_untested(subject, words))
        elif is_mask and share > ROUNDING:
            masks.setdefault(one.head, []).append(share)
        elif share < 0:
            words = f'its scores are too coarse ({tuple(one.scores.shape[-2:])})'
            results.append(mark_untested(subject, words, is_final=False))
        else:
            results.append(_judge_share(program, subject, 'under ignored pixels', share))
    for head, shares in masks.items():
        words = f'{quantity(len(shares), "loss", "losses")} of masks train ignored pixels as outside of the mask'
        results.append(note(head, f'{words}, as the original does; {measure_ignored(program)[1]}', dict(shares=shares)))
    return results


def _judge_share(program: Program, subject: str, where: str, share: float) -> Result:
    if share <= ROUNDING:
        return ran(subject, f'half of {program.describe_made_up()} ignored')
    evidence = f'scores {where} have up to {share:.2g} times the gradient of the others'
    return _blame_ignored(program, subject, evidence, dict(share=share))


def _blame_ignored(program: Program, subject: str, evidence: str, data: Dict[str, Any]) -> Result:
    """Return a broken result if the user's data have ignored elements, a note if none was seen."""
    ignored, words = measure_ignored(program)
    return (broken if ignored else note)(subject, f'{evidence}; {words}', dict(data, ignored=ignored))


def _check_boxes(program: Program) -> List[Result]:
    """Ignore a box over the left half, for anchor-based heads whose assigner supports ignored boxes."""
    heads = {
        name: module
        for name, module in program.build_model().named_modules()
        if hasattr(module, 'prior_generator') and getattr(getattr(module, 'assigner', None), 'ignore_iof_thr', -1) > 0
    }
    if not heads:
        return []
    plain, ignoring = (_train_levels(program, heads, is_ignored) for is_ignored in (False, True))
    results = []
    for subject, gradient in ignoring.items():
        height, width = gradient.shape[-2:]
        inside = (..., slice(height // 8, -(height // 8) or None), slice(width // 8, width * 3 // 8))
        if not bool(plain[subject][inside].any()):
            results.append(mark_untested(subject, 'it trains nothing there, ignored or not'))
        else:
            share = float(gradient[inside].abs().max() / gradient.abs().max().clamp(min=1e-30))
            results.append(_judge_share(program, subject, 'in an ignored box', share))
    return results


def _train_levels(program: Program, heads: Dict[str, Any], is_ignored: bool) -> Dict[str, Tensor]:
    """Return the gradients of the scores at the finest level, where anchors are smaller than the box."""
    side = 2 * program.find_side()
    box = (side * 0.6, side * 0.3, side * 0.9, side * 0.7)
    samples = [program.build_instances([box], [0], side, seed) for seed in (0, 1)]
    for sample in samples if is_ignored else ():
        labels = sample['data_samples']
        labels.ignored_instances = make_instances(labels.gt_instances, [(0, 0, side / 2, side)], [0], side)
    return {
        f'{one.head}, {one.loss}': one.gradient
        for one in train_on(program, heads, samples, side)
        if 'cls' in one.loss and one.scores.dim() == 4 and one.number == 0
    }
