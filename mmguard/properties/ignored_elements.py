"""Ignored elements weigh nothing: no score under an ignored pixel has a gradient."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np
import torch
from torch import Tensor

from mmguard.properties.program import Program, Unavailable, watched
from mmguard.properties.result import Result, broken, holds, not_tested
from mmguard.properties.worker import Failure

#: Share of the largest gradient elsewhere that rounding may leave.
ROUNDING = 1e-6
#: Cells next to the border of the ignored half that an interpolation reaches.
MARGIN = 2


def check(program: Program) -> List[Result]:
    """Ignore the left half of images, and look at the gradients of the scores there, loss by loss."""
    if 'gt_sem_seg' not in program.template()['data_samples']:
        raise Unavailable('the samples carry no label map, and ignored instances are not tested')
    heads = pixel_heads(program)
    if not heads:
        raise Unavailable('no head has a score for each class and pixel')
    results: Dict[str, Result] = {}
    for side in (program.side(), 2 * program.side(), 4 * program.side()):
        for result in _check_at(program, heads, side):
            known = results.get(result.subject)
            if known is None or known.outcome == 'not tested':
                results[result.subject] = result
        if all(result.outcome != 'not tested' for result in results.values()):
            break
    return list(results.values())


def pixel_heads(program: Program) -> Dict[str, Any]:
    """Return the modules that score each class at each pixel, by their names."""
    return {
        name: module
        for name, module in program.model().named_modules()
        if isinstance(getattr(module, 'num_classes', None), int)
        and (program.kind == 'pixels' or 'semantic' in name)
        and hasattr(module, 'forward')
    }


def _check_at(program: Program, heads: Dict[str, Any], side: int) -> List[Result]:
    samples = []
    for seed in (0, 1):
        sample = program.plain_sample(seed, side)
        plane = next(iter(sample['data_samples'].gt_sem_seg.values()))
        plane[..., : side // 2] = program.ignore_index
        samples.append(sample)
    try:
        with watched(heads) as seen:
            losses = program.losses(samples, side)
    except Exception as error:
        if side > program.side():
            return []  # larger than the model was tried with
        return [broken('the losses', f'fail where pixels are ignored: {Failure.of(error)}')]
    results = []
    for name, scores in seen:
        if not is_score_map(scores, heads[name], len(samples)):
            continue
        ignored = getattr(heads[name], 'ignore_index', program.ignore_index)
        for term, loss in losses.items():
            subject = f'{name}, {term}'
            if ignored != program.ignore_index:
                results.append(
                    not_tested(subject, f'this head ignores {ignored}, the first one {program.ignore_index}')
                )
                continue
            share = ignored_share(loss, scores)
            if share is None:
                continue
            if share < 0:
                results.append(not_tested(subject, f'its scores are too coarse ({tuple(scores.shape[-2:])})'))
            elif share > ROUNDING:
                evidence = f'scores under ignored pixels have up to {share:.2g} times the gradient of the others'
                results.append(broken(subject, evidence, share=share))
            else:
                results.append(holds(subject))
    return results


def is_score_map(scores: Tensor, head: Any, batch: int) -> bool:
    """Return True for scores of shape (N, C, H, W) with a channel per class."""
    classes = {head.num_classes, getattr(head, 'out_channels', head.num_classes)}
    return scores.requires_grad and scores.dim() == 4 and scores.shape[0] == batch and scores.shape[1] in classes


def ignored_share(loss: Tensor, scores: Tensor) -> Optional[float]:
    """Return the largest gradient in the left, ignored half of scores as a share of that in the other.

    Returns:
        float, optional: ``None`` where the loss does not train these scores, -1 where they have too few columns.
    """
    if not loss.requires_grad:
        return None
    (gradient,) = torch.autograd.grad(loss, scores, retain_graph=True, allow_unused=True)
    if gradient is None:
        return None
    half = scores.shape[-1] // 2
    if half <= MARGIN:
        return -1.0
    inside = float(gradient[..., : half - MARGIN].abs().max())
    outside = float(gradient[..., half:].abs().max())
    return None if inside == outside == 0 else inside / outside if outside else np.inf
