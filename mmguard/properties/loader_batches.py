"""Batches that the loader can deliver: the sizes that it allows run, and give finite losses."""

from __future__ import annotations

import contextlib
from typing import Any, ContextManager, Dict, List, Tuple

import torch

from mmguard.config.classes import name_of
from mmguard.properties.program import Program, total
from mmguard.properties.result import Result, broken, holds
from mmguard.properties.worker import Failure

#: Larger batches do not behave otherwise.
LARGEST = 4


def check(program: Program) -> List[Result]:
    """Train on each size of batch, with autocast where the config asks for it."""
    results = []
    for size, reason in sizes_of(program):
        subject = f'batch of {size} ({reason})'
        samples = [program.plain_sample(seed, program.side()) for seed in range(min(size, LARGEST))]
        try:
            with _autocast(program):
                losses = program.losses(samples)
                total(losses).backward()
        except Exception as error:
            results.append(broken(subject, str(Failure.describe(error)), size=size))
            continue
        finally:
            program.model().zero_grad(set_to_none=True)
        bad = [name for name, loss in losses.items() if not bool(torch.isfinite(loss))]
        results.append(broken(subject, f'not finite: {", ".join(bad)}', size=size) if bad else holds(subject))
    return results


def sizes_of(program: Program) -> List[Tuple[int, str]]:
    """Return the sizes of batches of a training, each with where it comes from."""
    loader: Dict[str, Any] = program.config.get('train_dataloader') or {}
    size = loader.get('batch_size') or 1
    sizes = [(size, 'batch_size')]
    sampler = name_of((loader.get('sampler') or {}).get('type'))
    if loader.get('drop_last') or 'Infinite' in sampler or loader.get('batch_sampler') or size == 1:
        return sizes
    try:
        length = len(program.dataset('train'))
    except Exception:
        return sizes
    # DistributedSampler and DefaultSampler fill up to whole rounds: on one GPU the rest is the last batch.
    return [*sizes, (length % size, f'the last of an epoch over {length:,} samples')] if length % size else sizes


def _autocast(program: Program) -> ContextManager[Any]:
    wrapper = program.config.get('optim_wrapper') or {}
    if name_of(wrapper.get('type')) != 'AmpOptimWrapper':
        return contextlib.nullcontext()
    # Half precision lacks kernels on the CPU.
    dtype = torch.bfloat16 if program.device == 'cpu' else torch.float16
    return torch.autocast(program.device.partition(':')[0], dtype=dtype)
