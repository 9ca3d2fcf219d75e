"""An empty batch is a batch: without targets the losses keep their names, their parameters and finite values."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, NamedTuple, Tuple

import numpy as np
import torch

from mmguard.config.changes import walk
from mmguard.properties.program import Program, seed_all, total
from mmguard.properties.result import Result, broken, holds, setting


class Reached(NamedTuple):
    """Trace of one backward pass.

    Attributes:
        names (tuple[str]): The losses, in their order.
        parameters (frozenset[str]): The parameters that have a gradient, zero or not.
        infinite (tuple[str]): The losses that are not finite.
    """

    names: Tuple[str, ...]
    parameters: FrozenSet[str]
    infinite: Tuple[str, ...]


def check(program: Program) -> List[Result]:
    """Compare batches of which one image, and all images, have no target with an ordinary one."""
    side = program.side()
    full = [program.plain_sample(seed, side) for seed in (0, 1)]
    empty = [_empty(program, side, seed) for seed in (0, 1)]
    usual = _reach(program, full)
    results = []
    for subject, samples in (('one image without targets', [full[0], empty[1]]), ('no image with targets', empty)):
        results.append(_judge(program, subject, usual, samples))
    return results


def _empty(program: Program, side: int, seed: int) -> Any:
    if program.kind == 'pixels':
        return program.pixels(np.full((side, side), program.ignore_index), seed)
    sample = program.instances([], [], side, seed)
    if 'gt_sem_seg' in sample['data_samples']:
        for plane in sample['data_samples'].gt_sem_seg.values():
            plane[:] = program.ignore_index
    return sample


def _reach(program: Program, samples: List[Any]) -> Reached:
    model = program.model()
    model.zero_grad()
    losses = program.losses(samples)
    infinite = tuple(name for name, loss in losses.items() if not bool(torch.isfinite(loss)))
    whole = total(losses)
    if whole.requires_grad:
        seed_all(0)
        whole.backward()
    parameters = frozenset(name for name, one in model.named_parameters() if one.grad is not None)
    model.zero_grad(set_to_none=True)
    return Reached(tuple(losses), parameters, infinite)


def _judge(program: Program, subject: str, usual: Reached, samples: List[Any]) -> Result:
    blame = setting if _are_filtered(program) else broken
    until = '; filter_empty_gt keeps such images out' if blame is setting else ''
    try:
        found = _reach(program, samples)
    except Exception as error:
        return blame(subject, f'the losses fail: {type(error).__name__}: {error}{until}')
    missing = sorted(usual.parameters - found.parameters)
    if found.infinite:
        return blame(subject, f'not finite: {", ".join(found.infinite)}{until}')
    if found.names != usual.names:
        other = ', '.join(sorted(set(found.names) ^ set(usual.names))) or 'in another order'
        return blame(subject, f'other losses than with targets ({other}): ranks of a distributed training hang{until}')
    if missing and program.config.get('find_unused_parameters'):
        return setting(subject, f'{len(missing)} parameters get no gradient; find_unused_parameters=True allows it')
    if missing:
        evidence = f'{len(missing)} parameters get no gradient, as {missing[0]}: DistributedDataParallel hangs or fails'
        return blame(subject, evidence + until, parameters=missing[:20])
    return holds(subject)


def _are_filtered(program: Program) -> bool:
    """Return True if the data sets of the training keep images without objects out."""
    loader: Dict[str, Any] = program.config.get('train_dataloader') or {}
    filters = [node.get('filter_cfg') for _, node in walk(loader) if 'pipeline' in node and 'ann_file' in node]
    return program.kind == 'instances' and bool(filters) and all(one and one.get('filter_empty_gt') for one in filters)
