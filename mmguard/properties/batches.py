"""Properties of batches, including empty ones: same losses, same parameters, finite values, and learning."""

from __future__ import annotations

import contextlib
import copy
import re
from typing import Any, ContextManager, Dict, List, Tuple

import torch
from torch import Tensor

from mmguard.config.changes import walk
from mmguard.config.classes import get_type_name
from mmguard.properties.datasets import seed_all
from mmguard.properties.program import Program
from mmguard.properties.result import Result, Unavailable, broken, holds, not_tested, setting
from mmguard.properties.samples import get_label_map
from mmguard.properties.scores import BackwardTrace, sum_losses, trace_backward
from mmguard.properties.worker import Failure
from mmguard.text import quantity

#: Maximum size that is tried; larger batches do not behave differently.
LARGEST = 4
#: Errors of what is installed here, not of the program.
_OF_THIS_MACHINE = re.compile(r'(?i)\bcpu\b|cuda|not implemented|not compiled|no kernel|memory')
_UNUSED_ADVICE = 'a distributed training fails unless find_unused_parameters=True, or they are frozen'
#: Number of steps on one batch, the learning rate, and the share to which a learned loss falls.
STEPS, RATE, LEARNED = 30, 1e-3, 0.8


def check_empty(program: Program) -> List[Result]:
    """Compare an ordinary batch with ones in which one image, or all images, have no target."""
    full = program.build_plain_batch()
    empty = [_make_empty(program, seed) for seed in (0, 1)]
    usual = _reach(program, full)
    cases = (('one image without targets', [full[0], empty[1]]), ('no image with targets', empty))
    return [_judge_empty(program, subject, usual, samples) for subject, samples in cases]


def check_sizes(program: Program) -> List[Result]:
    """Train on each size of batch that the loader delivers, with autocast if the config asks for it."""
    try:
        side = program.find_side()
    except Unavailable:
        raise
    except Exception as raised:
        return [_judge_loaded(program, raised)]
    results = []
    for size, reason in find_sizes(program):
        tried = min(size, LARGEST)
        subject = f'batch of {size} ({reason})' if tried == size else f'batch of {tried}, in place of {size} ({reason})'
        samples = [program.build_plain_sample(seed, side) for seed in range(tried)]
        data = dict(size=size, tried=tried)
        try:
            with _enter_autocast(program):
                found = _reach(program, samples)
            problem, unused = found.describe_infinite(), _list_unused(program, found)
        except Exception as error:
            problem, unused = str(Failure.describe(error)), []
        if problem:
            results.append(broken(subject, problem, data))
        elif unused:
            text = f'{quantity(len(unused), "parameter")} without a gradient, as {unused[0]}: {_UNUSED_ADVICE}'
            results.append(setting(subject, text, data))
        else:
            results.append(holds(subject, '', data))
    return results


def _list_unused(program: Program, found: BackwardTrace) -> List[str]:
    """Return the trainable parameters without a gradient, in a trace and in that of another batch."""
    trainable = {name for name, one in program.build_model().named_parameters() if one.requires_grad}
    unused = trainable - found.parameters
    if not unused or program.config.get('find_unused_parameters'):
        return []
    others = [program.build_plain_sample(seed, program.find_side()) for seed in (LARGEST, LARGEST + 1)]
    return sorted(unused - _reach(program, others).parameters)


def _judge_loaded(program: Program, problem: Exception) -> Result:
    """Judge a batch as it is loaded if no small batch trains; raise the problem if that decides nothing."""
    if isinstance(problem, (ImportError, NotImplementedError)) or _OF_THIS_MACHINE.search(str(problem)):
        raise problem
    try:
        samples = [sample for sample in program.load('train', 2) if sample]
        side = max(max(sample['inputs'].shape[-2:]) for sample in samples)
    except Exception:  # the data are missing
        raise problem from None
    try:
        with torch.no_grad():
            program.compute_losses([samples[0], samples[-1]], side)
    except Exception as error:
        if type(error) is type(problem):
            return broken('a batch as it is loaded', str(Failure.describe(error)))
    raise problem


def check_learning(program: Program) -> List[Result]:
    """Take some steps on one batch, and check that the loss falls and the predictions approach the labels."""
    model = program.build_model()
    state = copy.deepcopy(model.state_dict())
    samples = program.build_plain_batch()
    optimizer = torch.optim.AdamW(model.parameters(), RATE)
    values: List[float] = []
    try:
        before = _compute_agreement(program, samples)
        while len(values) < STEPS and (len(values) < 3 or program.seconds_left() > 0):
            optimizer.zero_grad()
            loss = sum_losses(program.compute_losses(samples))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            values.append(float(loss))
        after = _compute_agreement(program, samples)
    finally:
        model.load_state_dict(state)
        model.zero_grad(set_to_none=True)
    data = dict(losses=values, agreement=[before, after])
    words = f'{values[0]:.3g} -> {values[-1]:.3g} in {len(values)} steps'
    words += f', {before:.0%} -> {after:.0%} of the labels predicted'
    if len(values) < STEPS:
        return [not_tested('the loss', f'there was no time for {STEPS} steps: {words}', dict(reason='time'))]
    if not values[-1] < LEARNED * values[0]:
        return [broken('the loss', f'does not fall: {words}', data)]
    learned = min(1.0, (values[0] - values[-1]) / abs(values[0]))
    is_met = after - before > learned / 4 or program.kind == 'instances'
    return [holds('the loss', words, data) if is_met else broken('predictions', f'do not move: {words}', data)]


def find_sizes(program: Program) -> List[Tuple[int, str]]:
    """Return the batch sizes in a training, each with its origin."""
    loader: Dict[str, Any] = program.config.get('train_dataloader') or {}
    size = loader.get('batch_size') or 1
    sizes = [(size, 'batch_size')]
    sampler = get_type_name((loader.get('sampler') or {}).get('type'))
    if loader.get('drop_last') or 'Infinite' in sampler or loader.get('batch_sampler') or size == 1:
        return sizes
    try:
        length = len(program.build_dataset('train'))
    except Exception:
        return sizes
    # DistributedSampler and DefaultSampler fill up to whole rounds: on one GPU the rest is the last batch.
    return [*sizes, (length % size, f'the last of an epoch over {length:,} samples')] if length % size else sizes


def _enter_autocast(program: Program) -> ContextManager[Any]:
    if get_type_name((program.config.get('optim_wrapper') or {}).get('type')) != 'AmpOptimWrapper':
        return contextlib.nullcontext()
    # Some kernels are missing for half precision on the CPU.
    dtype = torch.bfloat16 if program.device == 'cpu' else torch.float16
    return torch.autocast(program.device.partition(':')[0], dtype=dtype)


def _make_empty(program: Program, seed: int) -> Any:
    if program.kind == 'pixels':
        return program.build_pixels(program.ignore_index, program.find_side(), seed)
    sample = program.build_instances([], [], program.find_side(), seed)
    if program.has_label_map:
        get_label_map(sample)[:] = program.ignore_index
    return sample


def _reach(program: Program, samples: List[Any]) -> BackwardTrace:
    return trace_backward(program.build_model(), lambda: program.compute_losses(samples))


def _judge_empty(program: Program, subject: str, usual: BackwardTrace, samples: List[Any]) -> Result:
    loader: Dict[str, Any] = program.config.get('train_dataloader') or {}
    filters = [node.get('filter_cfg') for _, node in walk(loader) if 'pipeline' in node and 'ann_file' in node]
    is_filtered = bool(filters) and all(one and one.get('filter_empty_gt') for one in filters)
    blame, until = broken, ''
    if program.kind == 'instances' and is_filtered:
        blame, until = setting, '; filter_empty_gt keeps such images out'
    try:
        found = _reach(program, samples)
    except Exception as error:
        return blame(subject, f'the losses fail: {type(error).__name__}: {error}{until}')
    lack = usual.describe_lack(found)
    if lack and not found.infinite and found.names == usual.names and program.config.get('find_unused_parameters'):
        return setting(subject, f'{lack}; find_unused_parameters=True allows it')
    data = dict(parameters=sorted(usual.parameters - found.parameters)[:20])
    hangs = '' if found.infinite else ': the ranks of a distributed training hang or fail'
    return blame(subject, f'{lack}{hangs}{until}', data) if lack else holds(subject)


def _compute_agreement(program: Program, samples: List[Any]) -> float:
    """Return the share of pixels, or of objects, that the model predicts with the right labels."""
    data = program.build_batch(samples)
    try:
        with torch.no_grad(), program.scope():
            seed_all(0)
            found = program.build_model().eval()(**data, mode='predict')
    finally:
        program.build_model().train()
    shares: List[Tensor] = []
    for labels in found:
        if program.kind == 'pixels':
            shares.append((labels.pred_sem_seg.data == labels.gt_sem_seg.data).float().mean())
            continue
        known, seen = labels.gt_instances, labels.pred_instances
        boxes = known.bboxes if torch.is_tensor(known.bboxes) else known.bboxes.tensor
        corners = (seen.bboxes[None] - boxes[:, None]).abs().amax(-1) < program.find_side() / 8
        is_met = corners & (seen.labels[None] == known.labels[:, None]) & (seen.scores[None] > 0.05)
        shares.append(is_met.any(1).float().mean())
    return float(torch.stack(shares).mean())
