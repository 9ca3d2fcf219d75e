"""Each label reaches its output: a target of class k raises the score of class k, and of no other."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from mmguard.properties.ignored_elements import find_trained_scores, is_score_map, pixel_heads
from mmguard.properties.outputs import find_raised_outputs
from mmguard.properties.program import Program, watched
from mmguard.properties.result import Result, Unavailable, broken, holds, not_tested, setting

#: Classes that are asked: the first, the last and some between.
ASKED = 6


class Scores(NamedTuple):
    """Summed gradients of the outputs of one tensor of scores.

    Attributes:
        place (str): Head, number of its tensor of scores, and loss.
        gradient (Tensor): Of shape (outputs,).
    """

    place: str
    gradient: Tensor


def check(program: Program) -> List[Result]:
    """Train on each of a few classes, and see which output the gradient raises."""
    results = _check_names(program)
    classes = choose_classes(program.num_classes)
    if len(classes) < 2:
        raise Unavailable('there is one class only')
    maps = [_outputs_of(program, classes, 0)]
    if any(output not in (None, label) for one in maps[0].values() for label, output in zip(classes, one)):
        maps.append(_outputs_of(program, classes, 1))  # another image, to be sure
    if not maps[0]:
        raise Unavailable('no head returns a score per class that its classification losses train')
    for place in maps[0]:
        found = [reached[place] for reached in maps if place in reached]
        results.append(judge(place, classes, found, program.class_names()))
    return results


def choose_classes(num_classes: int) -> List[int]:
    """Choose classes: the first, the last, and some between.

    Example:
        >>> choose_classes(80)
        [0, 16, 32, 47, 63, 79]
    """
    return sorted({round(step) for step in np.linspace(0, num_classes - 1, min(ASKED, num_classes))})


def judge(place: str, classes: List[int], found: List[List[Optional[int]]], names: Tuple[str, ...]) -> Result:
    """Compare the outputs that labels reached with the labels: broken only where every seed shows the same."""
    agreed = [seen[0] if len(set(seen)) == 1 else None for seen in zip(*found)]
    wrong = {label: output for label, output in zip(classes, agreed) if output not in (None, label)}
    table = {str(label): output for label, output in zip(classes, agreed)}
    if not wrong:
        if all(output is None for output in agreed):
            return not_tested(place, 'no label raises one output clearly')
        return holds(place, outputs=table)

    def describe(label: Optional[int]) -> str:
        return f'{label} ({names[label]})' if label is not None and label < len(names) else str(label)

    words = ', '.join(f'label {describe(label)} trains output {describe(output)}' for label, output in wrong.items())
    return broken(place, words, outputs=table)


def _outputs_of(program: Program, classes: List[int], seed: int) -> Dict[str, List[Optional[int]]]:
    rows: Dict[str, List[Tensor]] = {}
    for label in classes:
        for scores in _gradients_for(program, label, seed):
            rows.setdefault(scores.place, []).append(scores.gradient)
    return {
        place: find_raised_outputs(torch.stack(gradients))
        for place, gradients in rows.items()
        if len(gradients) == len(classes) and any(bool(one.any()) for one in gradients)
    }


def _gradients_for(program: Program, label: int, seed: int) -> List[Scores]:
    side = program.side()
    if program.kind == 'pixels':
        heads = pixel_heads(program)
        samples = [program.pixels(np.full((side, side), label), 2 * seed + number) for number in (0, 1)]
    else:
        heads = {
            name: module
            for name, module in program.model().named_modules()
            if name and getattr(module, 'num_classes', None) == program.num_classes
        }
        box = (side * 0.25, side * 0.3, side * 0.75, side * 0.7)
        samples = [program.instances([box], [label], side, 2 * seed + number) for number in (0, 1)]
    with watched(heads) as seen:
        losses = program.losses(samples, seed=seed)
    found = []
    for name, number, term, scores, gradient in find_trained_scores(seen, losses):
        axis = _class_axis(program, scores, heads[name], len(samples))
        if axis is not None and (program.kind == 'pixels' or 'cls' in term):
            outputs = _sum_over_anchors(gradient, axis, program, heads[name])
            found.append(Scores(f'{name}[{number}], {term}', outputs))
    return found


def _class_axis(program: Program, scores: Tensor, head: Any, batch: int) -> Optional[int]:
    """Return the axis of the outputs of a tensor of scores; ``None`` where it has none."""
    if program.kind == 'pixels':
        is_map = is_score_map(scores, head, batch) and scores.shape[1] == program.num_classes
        return 1 if is_map and program.num_classes > 1 else None
    if not scores.requires_grad or scores.dim() not in (2, 3, 4):
        return None
    outputs = _number_of_outputs(head, program.num_classes)
    if scores.dim() == 4 and scores.shape[0] == batch and scores.shape[1] % outputs == 0:
        return 1  # (N, anchors x classes, H, W)
    return scores.dim() - 1 if scores.shape[-1] in (outputs, program.num_classes, program.num_classes + 1) else None


def _number_of_outputs(head: Any, num_classes: int) -> int:
    outputs = getattr(head, 'cls_out_channels', num_classes)
    return outputs if isinstance(outputs, int) else num_classes


def _sum_over_anchors(gradient: Tensor, axis: int, program: Program, head: Any) -> Tensor:
    summed = gradient.sum([other for other in range(gradient.dim()) if other != axis])
    outputs = _number_of_outputs(head, program.num_classes)
    return summed.reshape(-1, outputs).sum(0) if axis == 1 and summed.numel() % outputs == 0 else summed


def _check_names(program: Program) -> List[Result]:
    names, outputs = program.class_names(), program.num_classes
    if len(names) > outputs:
        rest = ', '.join(names[outputs : outputs + 5])
        evidence = f'the data set names {len(names)} classes, the heads have {outputs}: no output for {rest}'
        return [broken('class names', evidence)]
    if names and len(names) < outputs:
        evidence = f'the data set names {len(names)} classes, the heads have {outputs}: the last ones are never trained'
        return [setting('class names', evidence)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        return [broken('class names', f'several labels have one name: {", ".join(twice[:5])}')]
    return []
