"""Each label reaches its output: a target of class k raises the score of class k, and of no other."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from mmguard.properties.program import Program
from mmguard.properties.result import Result, Unavailable, broken, encode_picture, holds, not_tested, setting
from mmguard.properties.scores import find_pixel_heads, find_raised_outputs, is_score_map, train_on

#: Classes that are asked: the first, the last and some between.
ASKED = 6


def check(program: Program) -> List[Result]:
    """Train on each of a few classes, and see which output the gradient raises."""
    results = _check_names(program.class_names(), program.num_classes) + _check_things(program)
    classes = choose_classes(program.num_classes)
    if len(classes) < 2:
        raise Unavailable('there is one class only')
    tables = [_sum_gradients(program, classes, 0)]
    found = [{place: find_raised_outputs(table) for place, table in tables[0].items()}]
    if any(output not in (None, label) for one in found[0].values() for label, output in zip(classes, one)):
        tables.append(_sum_gradients(program, classes, 1))  # another image, to be sure
        found.append({place: find_raised_outputs(table) for place, table in tables[1].items()})
    if not found[0]:
        raise Unavailable('no head returns a score per class that its classification losses train')
    for place, table in tables[0].items():
        seen = [raised.get(place, [None] * len(classes)) for raised in found]
        agreed = [one[0] if len(set(one)) == 1 else None for one in zip(*seen)]
        results.append(_judge(place, dict(zip(classes, agreed)), program.class_names(), table))
    return results


def choose_classes(num_classes: int) -> List[int]:
    """Choose classes: the first, the last, and some between.

    Example:
        >>> choose_classes(80)
        [0, 16, 32, 47, 63, 79]
    """
    return sorted({round(step) for step in np.linspace(0, num_classes - 1, min(ASKED, num_classes))})


def _judge(place: str, outputs: Dict[int, Optional[int]], names: Tuple[str, ...], gradients: Tensor) -> Result:
    """Compare the outputs that labels reached with the labels."""
    wrong = {label: output for label, output in outputs.items() if output not in (None, label)}
    data: Dict[str, Any] = dict(outputs={str(label): output for label, output in outputs.items()})
    if not wrong and set(outputs.values()) == {None}:
        return not_tested(place, 'no label raises one output clearly')
    if not wrong:
        return holds(place, '', data)

    def describe(label: Optional[int]) -> str:
        return f'{label} ({names[label]})' if label is not None and label < len(names) else str(label)

    words = ', '.join(f'label {describe(label)} trains output {describe(output)}' for label, output in wrong.items())
    data['picture'] = encode_picture((gradients.mean(0) - gradients).cpu().numpy())
    return broken(place, words, data)


def _sum_gradients(program: Program, classes: List[int], seed: int) -> Dict[str, Tensor]:
    """Return the gradient of the outputs (columns) of each tensor of scores for each class (rows)."""
    side, rows = program.side(), {}  # type: Tuple[int, Dict[str, List[Tensor]]]
    if program.kind == 'pixels':
        heads = find_pixel_heads(program)
    else:
        modules = program.model().named_modules()
        heads = {name: one for name, one in modules if name and getattr(one, 'num_classes', 0) == program.num_classes}
    box = (side * 0.25, side * 0.3, side * 0.75, side * 0.7)
    for label in classes:
        if program.kind == 'pixels':  # two, for BatchNorm after a global pooling
            samples = [program.pixels(np.full((side, side), label), 2 * seed + number) for number in (0, 1)]
        else:
            samples = [program.instances([box], [label], side, seed)]
        for one in train_on(program, heads, samples):
            is_map = program.kind == 'pixels' and is_score_map(one.scores, heads[one.head], 2)
            summed = _sum_outputs(program, one.gradient, heads[one.head], is_map)
            if summed is not None and ('cls' in one.loss or is_map):
                rows.setdefault(f'{one.head}[{one.number}], {one.loss}', []).append(summed)
    return {
        place: torch.stack(found)
        for place, found in rows.items()
        if len(found) == len(classes) and any(bool(one.any()) for one in found)
    }


def _sum_outputs(program: Program, gradient: Tensor, head: Any, is_map: bool) -> Optional[Tensor]:
    """Sum up what a gradient raises, by output; ``None`` where the scores have no axis of outputs."""
    gradient = gradient.clamp(max=0)  # what it lowers differs with the anchors that are chosen
    classes = program.num_classes
    outputs = getattr(head, 'cls_out_channels', classes)
    outputs = outputs if isinstance(outputs, int) else classes
    shape = gradient.shape
    if is_map:
        return gradient.sum((0, 2, 3)) if shape[1] == classes > 1 else None
    if len(shape) == 4 and program.kind == 'instances' and shape[0] == 1 and shape[1] % outputs == 0:
        return gradient.sum((0, 2, 3)).reshape(-1, outputs).sum(0)  # (N, anchors x classes, H, W)
    has_outputs = len(shape) in (2, 3, 4) and shape[-1] in (outputs, classes, classes + 1)
    return gradient.flatten(0, -2).sum(0) if has_outputs else None


def _check_names(names: Tuple[str, ...], outputs: int) -> List[Result]:
    counts = f'the data set names {len(names)} classes, the heads have {outputs}'
    if len(names) > outputs:
        return [broken('class names', f'{counts}: no output for {", ".join(names[outputs : outputs + 5])}')]
    if names and len(names) < outputs:
        return [setting('class names', f'{counts}: the last ones are never trained')]
    twice = sorted({name for name in names if names.count(name) > 1})
    return [broken('class names', f'several labels have one name: {", ".join(twice[:5])}')] if twice else []


def _check_things(program: Program) -> List[Result]:
    """Compare the number of things of panoptic heads, their first labels, with the order of the class names."""
    try:
        known = program.dataset('train').metainfo
    except Exception:  # the data are not here
        known = (program.dataset_config('train') or {}).get('metainfo') or {}
    names, things = known.get('classes') or (), set(known.get('thing_classes') or ())
    results = []
    for name, head in program.model().named_modules():
        number = getattr(head, 'num_things_classes', 0)
        wrong = [label for label, one in enumerate(names) if (one in things) != (label < number)]
        if name and things and number and wrong:
            is_thing = names[wrong[0]] in things
            words = f'label {wrong[0]} ({names[wrong[0]]}) is {"a thing" if is_thing else "stuff"}'
            results.append(
                broken(f'{name}, class names', f'{words}, but the head takes labels 0..{number - 1} for things')
            )
    return results
