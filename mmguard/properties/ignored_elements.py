"""Ignored elements weigh nothing: no score under an ignored pixel, or in an ignored box, has a gradient."""

from __future__ import annotations

from typing import Any, Dict, List

from torch import Tensor

from mmguard.properties.program import Program
from mmguard.properties.result import Result, Unavailable, broken, encode_picture, holds, not_tested
from mmguard.properties.samples import make_instances
from mmguard.properties.scores import ROUNDING, find_pixel_heads, is_score_map, measure_ignored_share, train_on
from mmguard.properties.worker import Failure


def check(program: Program) -> List[Result]:
    """Ignore the left half of images, and look at the gradients of the scores there, loss by loss."""
    results = _check_boxes(program) if program.kind == 'instances' else []
    heads = find_pixel_heads(program) if 'gt_sem_seg' in program.template()['data_samples'] else {}
    if not heads and not results:
        raise Unavailable('no head has a score for each class and pixel, and no assigner ignores (ignore_iof_thr)')
    found: Dict[str, Result] = {}
    for side in (program.side(), 2 * program.side(), 4 * program.side()) if heads else ():
        for result in _check_pixels(program, heads, side):
            known = found.get(result.subject)
            if known is None or known.outcome == 'not tested':
                found[result.subject] = result
        if found and all(result.outcome != 'not tested' for result in found.values()):
            break
    if not found and not results:
        raise Unavailable('no loss trains a score for each class and pixel')
    return [*results, *found.values()]


def _check_pixels(program: Program, heads: Dict[str, Any], side: int) -> List[Result]:
    samples = [program.plain_sample(seed, side) for seed in (0, 1)]
    for sample in samples:
        next(iter(sample['data_samples'].gt_sem_seg.values()))[..., : side // 2] = program.ignore_index
    try:
        trained = train_on(program, heads, samples, side)
    except Exception as error:
        if side > program.side():
            return []  # larger than the model was tried with
        return [broken('the losses', f'fail where pixels are ignored: {Failure.describe(error)}')]
    results = []
    for one in trained:
        head = heads[one.head]
        is_mask = program.kind == 'pixels' and one.scores.dim() > 3 and ('mask' in one.loss or 'dice' in one.loss)
        if not is_score_map(one.scores, head, len(samples)) and not is_mask:
            continue
        subject, ignored = f'{one.head}, {one.loss}', getattr(head, 'ignore_index', program.ignore_index)
        if ignored != program.ignore_index:
            results.append(not_tested(subject, f'this head ignores {ignored}, the first one {program.ignore_index}'))
        else:
            results.append(_judge(subject, 'under ignored pixels', measure_ignored_share(one.gradient), one.gradient))
    return results


def _judge(subject: str, where: str, share: float, gradient: Tensor) -> Result:
    if share < 0:
        return not_tested(subject, f'its scores are too coarse ({tuple(gradient.shape[-2:])})')
    if share <= ROUNDING:
        return holds(subject)
    picture = encode_picture(gradient.abs().flatten(0, -3).sum(0).cpu().numpy())
    evidence = f'scores {where} have up to {share:.2g} times the gradient of the others'
    return broken(subject, evidence, dict(share=share, picture=picture))


def _check_boxes(program: Program) -> List[Result]:
    """Ignore a box that covers the left half, for heads on anchors whose assigner is asked to ignore."""
    heads = {
        name: module
        for name, module in program.model().named_modules()
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
            results.append(not_tested(subject, 'it trains nothing there, ignored or not'))
        else:
            share = float(gradient[inside].abs().max() / gradient.abs().max().clamp(min=1e-30))
            results.append(_judge(subject, 'in an ignored box', share, gradient))
    return results


def _train_levels(program: Program, heads: Dict[str, Any], is_ignored: bool) -> Dict[str, Tensor]:
    """Return the gradients of the scores of the finest level, where anchors are smaller than the box."""
    side = 2 * program.side()
    samples = [
        program.instances([(side * 0.6, side * 0.3, side * 0.9, side * 0.7)], [0], side, seed) for seed in (0, 1)
    ]
    for sample in samples if is_ignored else ():
        labels = sample['data_samples']
        labels.ignored_instances = make_instances(labels.gt_instances, [(0, 0, side / 2, side)], [0], side)
    trained = train_on(program, heads, samples, side)
    return {
        f'{one.head}, {one.loss}': one.gradient
        for one in trained
        if 'cls' in one.loss and one.scores.dim() == 4 and one.number == 0
    }
