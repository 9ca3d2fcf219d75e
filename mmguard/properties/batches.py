"""Variants of a batch: without targets, without a class, half ignored, the last size of an epoch."""

from __future__ import annotations

import contextlib
import copy
import time
from typing import Any, Dict, List, NamedTuple, Tuple

import torch
from torch import Tensor

from mmguard.config.classes import get_type_name
from mmguard.properties.datasets import find_innermost, select_indices
from mmguard.properties.first_batches import preprocess_batch
from mmguard.properties.program import MAX_ANNOTATIONS, Program
from mmguard.properties.readings import SampleReading, read_samples
from mmguard.properties.result import DoesNotApply, Result, broken, mark_untested, note, ran
from mmguard.properties.runner import describe_failure, enter_autocast, judge_failure
from mmguard.properties.scores import BackwardTrace, trace_backward
from mmguard.text import quantity

#: CPU seconds after which no further variant is tested.
_MOST_SECONDS = 8.0
#: Number of classes that are left out of a batch, one by one.
_CLASSES = 4


class Variant(NamedTuple):
    """A changed batch.

    Attributes:
        subject (str): Name of the change.
        data (dict): The batch after the preprocessor.
        share (float): Share of the user's samples, or of batches, that are like it; 0 if none was seen.
        seen (str): Source of the share.
    """

    subject: str
    data: Dict[str, Any]
    share: float
    seen: str


def check_variants(program: Program) -> List[Result]:
    """Train on changed batches: broken if one fails, or is not finite, that the user's loader can deliver."""
    data, where, is_made_up = choose_batch(program)
    if not isinstance(data.get('data_samples'), (list, tuple)) or not torch.is_tensor(data.get('inputs')):
        raise DoesNotApply('a batch is not one tensor of images with a list of samples')
    try:
        usual = _trace(program, data)
    except Exception as error:
        if is_made_up:
            raise
        return [judge_failure('your first batch', error)]
    if usual.infinite:
        return [mark_untested('variants', f'an unchanged batch ({where}) is {usual.describe_infinite()}')]
    results: List[Result] = []
    began = time.process_time()
    variants = _list_variants(program, data)
    for place, variant in enumerate(variants):
        if program.seconds_left() < 0 or time.process_time() - began > _MOST_SECONDS:
            left = ', '.join(one.subject for one in variants[place:])
            return [*results, mark_untested(left, f'the first ones took more than {_MOST_SECONDS:.0f} s')]
        results.append(_judge(program, variant, usual, where))
    return results


def choose_batch(program: Program) -> Tuple[Any, str, bool]:
    """Return the user's first batch, a phrase for it, and False; without data a made-up one, and True."""
    try:
        first = preprocess_batch(program, 0)
        if first.size:
            return first.data, f'your first batch changed, {first}', False
    except Exception:  # reported with the first batches
        pass
    return program.build_batch(program.build_plain_batch()), program.describe_made_up(), True


def _list_variants(program: Program, data: Dict[str, Any]) -> List[Variant]:
    readings = _read(program)
    loads = f'{quantity(len(readings), "load")} of your data'
    empty = _count_empty(program, readings)
    number, found = len(data['inputs']), []
    if number > 1:
        one = _change(program, data, lambda sample, place: _remove(program, sample) if place else None)
        found.append(Variant('one image without targets', one, *empty))
    none = _change(program, data, lambda sample, place: _remove(program, sample))
    found.append(Variant('no image with targets', none, *empty))
    if program.kind == 'pixels':
        labels = sorted({label for one in readings for label in one.after if 0 <= label < program.num_classes})
        for label in [labels[n] for n in select_indices(len(labels), _CLASSES)]:
            lacks = sum(not one.after[label] for one in readings) / len(readings)
            without = _change(program, data, lambda sample, place, label=label: _ignore(program, sample, label))
            found.append(Variant(f'no image with label {label}', without, lacks, loads))
    rest = find_last_size(program)
    if 0 < rest < number:
        last = {**data, 'inputs': data['inputs'][:rest], 'data_samples': list(data['data_samples'][:rest])}
        found.append(Variant(f'the last batch of an epoch, of {rest}', last, 1.0, 'the length of your data set'))
    return found


def _read(program: Program) -> List[SampleReading]:
    try:
        return read_samples(program, 'train')
    except Exception:  # the data are missing
        return []


def _count_empty(program: Program, readings: List[SampleReading]) -> Tuple[float, str]:
    """Return the share of the user's samples without targets, and its source."""
    flags = [not one.after for one in readings]
    with contextlib.suppress(Exception):
        for leaf in find_innermost(program.build_dataset('train')) if program.kind == 'instances' else ():
            for number in select_indices(len(leaf), MAX_ANNOTATIONS):
                objects = leaf.get_data_info(number).get('instances')
                flags += [] if objects is None else [all(one.get('ignore_flag') for one in objects)]
    return sum(flags) / max(1, len(flags)), f'{quantity(len(flags), "sample")} of your data'


def ignore_half(program: Program, data: Dict[str, Any]) -> Dict[str, Any]:
    """Return a batch whose label maps are ignored in their left half."""

    def ignore(sample: Any, place: int) -> None:
        plane = _get_plane(sample)
        plane[..., : plane.shape[-1] // 2] = program.ignore_index

    return _change(program, data, ignore)


def _change(program: Program, data: Dict[str, Any], change: Any) -> Dict[str, Any]:
    samples = copy.deepcopy(list(data['data_samples']))
    for place, sample in enumerate(samples):
        change(sample, place)
    return {**data, 'data_samples': samples}


def _remove(program: Program, sample: Any) -> None:
    if program.has_label_map and 'gt_sem_seg' in sample:
        _get_plane(sample)[:] = program.ignore_index
    if 'gt_instances' in sample:
        sample.gt_instances = sample.gt_instances[torch.zeros(len(sample.gt_instances), dtype=torch.bool)]


def _ignore(program: Program, sample: Any, label: int) -> None:
    plane = _get_plane(sample)
    plane[plane == label] = program.ignore_index


def _get_plane(sample: Any) -> Tensor:
    plane: Tensor = next(iter(sample.gt_sem_seg.values()))
    return plane


def _judge(program: Program, variant: Variant, usual: BackwardTrace, where: str) -> Result:
    """Compare the trace of a variant with that of the unchanged batch."""
    subject = variant.subject
    seen = f'{variant.share:.0%} in {variant.seen}' if variant.share else f'none like it in {variant.seen}'
    blame = broken if variant.share else note
    try:
        found = _trace(program, variant.data)
    except Exception as error:
        failure = describe_failure(error)
        return blame(subject, f'the losses fail: {failure}; {seen}', dict(share=variant.share, failure=failure))
    lack = usual.describe_lack(found)
    if not lack or ('label' in subject and not found.infinite):
        return ran(subject, where)
    data = dict(share=variant.share, parameters=sorted(usual.parameters - found.parameters)[:20])
    if found.infinite or not found.parameters:
        return blame(subject, f'{lack}; {seen}', data)
    if 'targets' not in subject or (program.config.get('find_unused_parameters') and found.names == usual.names):
        return note(subject, f'{lack}: several GPUs need find_unused_parameters=True; {seen}', data)
    return blame(subject, f'{lack}: the ranks of a distributed training hang or fail; {seen}', data)


def _trace(program: Program, data: Any) -> BackwardTrace:
    with enter_autocast(program):
        return trace_backward(program.build_model(), lambda: program.compute_batch(copy.deepcopy(data)))


def find_last_size(program: Program) -> int:
    """Return the size of the last batch of an epoch on one GPU; 0 if all have the same size."""
    loader: Dict[str, Any] = program.get_loader_config('train')
    sampler = get_type_name((loader.get('sampler') or {}).get('type'))
    if loader.get('drop_last') or 'Infinite' in sampler or loader.get('batch_sampler'):
        return 0
    with contextlib.suppress(Exception):
        return len(program.build_dataset('train')) % (loader.get('batch_size') or 1)
    return 0
