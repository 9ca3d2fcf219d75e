"""Gradients of scores: each label raises only its own output."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor

from mmguard.properties.program import Program
from mmguard.properties.result import Result, broken, note
from mmguard.properties.samples import get_label_map
from mmguard.properties.scores import find_losses, find_raised_outputs, judge_outputs, record_calls, share_features

#: Parts of the names of losses of classes.
_OF_CLASSES = ('cls', 'heatmap')


def check_outputs(program: Program) -> List[Result]:
    """Train on a few classes, and check which output the gradient of each raises."""
    names = program.get_class_names()
    results = _check_names(names, program.num_classes) + _check_things(program)
    classes = program.choose_classes()
    if len(classes) < 2:
        return [*results, note('', 'there is only one class', dict(tested=False))]
    tables = _sum_gradients(program, classes, 0)
    found = {place: find_raised_outputs(table) for place, table in tables.items()}
    zeros = {place: _find_zeros(table, classes) for place, table in tables.items()}
    if any(zeros.values()) or any(
        output not in (None, label) for one in found.values() for label, output in zip(classes, one)
    ):
        again = _sum_gradients(program, classes, 1)  # other images, for confirmation
        for place, one in found.items():
            other = find_raised_outputs(again[place]) if place in again else []
            found[place] = [output if output in other[n : n + 1] else None for n, output in enumerate(one)]
            zeros[place] = [label for label in zeros[place] if label in _find_zeros(again.get(place), classes)]
    if not found:
        words = 'no module is a loss of classes whose scores have one axis of classes'
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
    """Return the gradient of the outputs (columns) of each loss for each class (rows)."""
    losses = find_losses(program.build_model())
    maps = _sum_by_pixel(program, losses, classes, seed) if program.kind == 'pixels' else {}
    losses = {name: one for name, one in losses.items() if any(word in name.rpartition('.')[2] for word in _OF_CLASSES)}
    return maps or _sum_by_image(program, losses, classes, seed)


def _sum_by_pixel(program: Program, losses: Dict[str, Any], classes: List[int], seed: int) -> Dict[str, Tensor]:
    """Train on one batch that shows all classes, and sum over the pixels of each."""
    side = program.find_side()
    samples = program.build_samples(classes, side, 2, seed)
    truth = torch.cat([get_label_map(one) for one in samples]).to(program.device)
    with record_calls(losses) as calls:
        program.compute_losses(samples, side)
    found = {}
    for call in calls:
        gradient = call.get_gradient()
        if gradient is not None and gradient.shape == (len(truth), program.num_classes, *truth.shape[1:]):
            raised = gradient.clamp(max=0)
            found[call.name] = torch.stack([(raised * (truth == label)[:, None]).sum((0, 2, 3)) for label in classes])
    return found


def _sum_by_image(program: Program, losses: Dict[str, Any], classes: List[int], seed: int) -> Dict[str, Tensor]:
    """Train on images of one class each, with features that are computed once."""
    side = program.find_side()
    tables: Dict[str, List[Tensor]] = {name: [] for name in losses}
    box = (side * 0.25, side * 0.3, side * 0.75, side * 0.7)
    with share_features(program.build_model()):
        for label in classes:
            if program.kind == 'pixels':  # two, for BatchNorm after a global pooling
                samples = [program.build_pixels(label, side, 2 * seed + number) for number in (0, 1)]
            else:
                samples = [program.build_instances([box], [label], side, seed)]
            with record_calls(losses) as calls:
                program.compute_losses(samples, side)
            rows: Dict[str, Tensor] = {}
            for call in calls:
                gradient = call.get_gradient()
                row = None if gradient is None else _sum_outputs(program, gradient)
                if row is not None:
                    rows[call.name] = rows[call.name] + row if call.name in rows else row
            for name, row in rows.items():
                tables[name].append(row)
    return {name: torch.stack(rows) for name, rows in tables.items() if len(rows) == len(classes)}


def _sum_outputs(program: Program, gradient: Tensor) -> Optional[Tensor]:
    """Sum a gradient by output; ``None`` if the scores have no axis of outputs."""
    for axis in (-1, 1):
        if gradient.shape[axis] - program.num_classes in (0, 1):  # the last output may be the background
            # The lowered outputs depend on the chosen anchors.
            return gradient.clamp(max=0).movedim(axis, -1).flatten(0, -2).sum(0)
    return None


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
