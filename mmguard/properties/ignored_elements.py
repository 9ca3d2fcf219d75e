"""Ignored elements weigh nothing: no score under an ignored pixel has a gradient."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor

from mmguard.properties.program import Program, watched
from mmguard.properties.result import Result, Unavailable, broken, holds, not_tested
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
    if not results:
        raise Unavailable('no loss trains a score for each class and pixel')
    return list(results.values())


def pixel_heads(program: Program) -> Dict[str, Any]:
    """Return the modules that score each class at each pixel, by their names.

    Others have targets of their own, as the head of STDC that learns edges: its number of classes or outputs differs.
    """
    heads = {
        name: module
        for name, module in program.model().named_modules()
        if name and isinstance(getattr(module, 'num_classes', None), int)
        if 'semantic' in name or (program.kind == 'pixels' and module.num_classes == program.num_classes)
    }
    first = next(iter(heads.values()), None)
    return {name: module for name, module in heads.items() if _outputs(module) == _outputs(first)}


def _outputs(head: Any) -> Tuple[int, Any]:
    return head.num_classes, getattr(head, 'out_channels', head.num_classes)


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
        return [broken('the losses', f'fail where pixels are ignored: {Failure.describe(error)}')]
    results = []
    for name, _, term, scores, gradient in find_trained_scores(seen, losses):
        if not is_score_map(scores, heads[name], len(samples)):
            continue
        subject, share = f'{name}, {term}', measure_ignored_share(gradient)
        ignored = getattr(heads[name], 'ignore_index', program.ignore_index)
        if ignored != program.ignore_index:
            results.append(not_tested(subject, f'this head ignores {ignored}, the first one {program.ignore_index}'))
        elif share < 0:
            results.append(not_tested(subject, f'its scores are too coarse ({tuple(scores.shape[-2:])})'))
        elif share > ROUNDING:
            evidence = f'scores under ignored pixels have up to {share:.2g} times the gradient of the others'
            results.append(broken(subject, evidence, share=share))
        else:
            results.append(holds(subject))
    return results


def find_trained_scores(
    seen: Sequence[Tuple[str, Tensor]], losses: Mapping[str, Tensor]
) -> Iterator[Tuple[str, int, str, Tensor, Tensor]]:
    """Yield what each loss trains directly: no later output hangs on it that the loss reaches, too.

    Where a head takes earlier scores for its features (OCRNet, PointRend, K-Net), the gradient of these says nothing of
    the loss.

    Args:
        seen (list): The head's name and a tensor that it returned, in the order in which they were returned.
        losses (dict): Name -> loss.

    Yields:
        tuple: head, number of the tensor among those of this head, loss, tensor, its gradient.
    """
    tensors = [(name, tensor) for name, tensor in seen if tensor.requires_grad and tensor.dim() > 1]
    feeds = {}
    for term, loss in losses.items():
        if not loss.requires_grad or not tensors:
            continue
        gradients = torch.autograd.grad(loss, [tensor for _, tensor in tensors], retain_graph=True, allow_unused=True)
        reached = [n for n, gradient in enumerate(gradients) if gradient is not None and bool(gradient.any())]
        for place, n in enumerate(reached):
            name, tensor = tensors[n]
            for later in reached[place + 1 :]:
                if (n, later) not in feeds:
                    feeds[n, later] = _hangs_on(tensors[later][1], tensor)
            if not any(feeds[n, later] for later in reached[place + 1 :]):
                yield name, sum(other == name for other, _ in tensors[:n]), term, tensor, gradients[n]


def _hangs_on(output: Tensor, tensor: Tensor) -> bool:
    (gradient,) = torch.autograd.grad(output.sum(), tensor, retain_graph=True, allow_unused=True)
    return gradient is not None


def is_score_map(scores: Tensor, head: Any, batch: int) -> bool:
    """Return True for scores of shape (N, C, H, W) with a channel per class."""
    return scores.requires_grad and scores.dim() == 4 and scores.shape[:2] in {(batch, size) for size in _outputs(head)}


def measure_ignored_share(gradient: Tensor) -> float:
    """Return the largest gradient in the left, ignored half of scores as a share of that in the other.

    Returns:
        float: -1 where the scores have too few columns.
    """
    half = gradient.shape[-1] // 2
    if half <= MARGIN:
        return -1.0
    inside = float(gradient[..., : half - MARGIN].abs().max())
    outside = float(gradient[..., half:].abs().max())
    return inside / outside if outside else np.inf
