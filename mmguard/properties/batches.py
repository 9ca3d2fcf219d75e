"""Tests on changed copies of a batch: without targets, without one class, or as small as the last batch of an epoch."""

from __future__ import annotations

import contextlib
import copy
import time
from typing import Any, Callable, Dict, List, Tuple

import torch

from mmguard.config.classes import get_type_name
from mmguard.properties.datasets import find_innermost, select_indices
from mmguard.properties.first_batches import preprocess_batch
from mmguard.properties.program import MAX_ANNOTATIONS, Program
from mmguard.properties.readings import read_samples
from mmguard.properties.result import DoesNotApply, Result, broken, mark_untested, note, ran
from mmguard.properties.runner import describe_failure, enter_autocast, judge_failure
from mmguard.properties.samples import get_label_map
from mmguard.properties.scores import BackwardTrace, trace_backward
from mmguard.text import quantity

#: CPU seconds after which no further variant is tested, and maximum number of variants that lack one class.
_MOST_SECONDS, _CLASSES = 8.0, 4

#: (Name of a change, changed batch, share of the user's data with the same property, name of these data).
Variant = Tuple[str, Dict[str, Any], float, str]


def check_variants(program: Program) -> List[Result]:
    """Test changed batches; a failing or infinite loss counts as broken only if the user's data have such batches."""
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
        return [mark_untested('variants', f'losses of an unchanged batch ({where}) are {usual.describe_infinite()}')]
    results: List[Result] = []
    began = time.process_time()
    variants = _list_variants(program, data)
    for place, variant in enumerate(variants):
        if program.seconds_left() < 0 or time.process_time() - began > _MOST_SECONDS:
            left = ', '.join(subject for subject, *_ in variants[place:])
            return [*results, mark_untested(left, f'the first variants took more than {_MOST_SECONDS:.0f} s')]
        results.append(_judge(program, variant, usual, where))
    return results


def choose_batch(program: Program) -> Tuple[Any, str, bool]:
    """Return the user's first batch (or if that fails, a made-up batch), its description, and True if it is made up."""
    try:
        first = preprocess_batch(program, 0)
        if first.size:
            return first.data, f'from your first batch, {first}', False
    except Exception:  # reported with the first batches
        pass
    return program.build_batch(program.build_samples(program.find_side())), program.describe_made_up(), True


def _list_variants(program: Program, data: Dict[str, Any]) -> List[Variant]:
    readings, number = read_samples(program, 'train'), len(data['inputs'])
    flags = [not one.after for one in readings]  # samples without targets
    with contextlib.suppress(Exception):
        for leaf in find_innermost(program.build_dataset('train')) if program.kind == 'instances' else ():
            for place in select_indices(len(leaf), MAX_ANNOTATIONS):
                objects = leaf.get_data_info(place).get('instances')
                flags += [] if objects is None else [all(one.get('ignore_flag') for one in objects)]
    empty = sum(flags) / max(1, len(flags)), f'{quantity(len(flags), "sample")} of your data'
    found: List[Variant] = []
    if number > 1:
        one = _change(data, lambda sample, place: _remove(program, sample) if place else None)
        found.append(('one image without targets', one, *empty))
    none = _change(data, lambda sample, place: _remove(program, sample))
    found.append(('no image with targets', none, *empty))
    if program.kind == 'pixels':
        labels = sorted({label for one in readings for label in one.after if 0 <= label < program.num_classes})
        for label in [labels[n] for n in select_indices(len(labels), _CLASSES)]:
            lacks = sum(not one.after[label] for one in readings) / len(readings)

            def ignore(sample: Any, place: int, label: int = label) -> None:
                plane = get_label_map(sample)
                plane[plane == label] = program.ignore_index

            loads = f'{quantity(len(readings), "load")} of your data'
            found.append((f'no image with label {label}', _change(data, ignore), lacks, loads))
    loader: Dict[str, Any] = program.config.get('train_dataloader') or {}
    is_endless = 'Infinite' in get_type_name((loader.get('sampler') or {}).get('type'))
    is_cut = readings and not (is_endless or loader.get('drop_last') or loader.get('batch_sampler'))
    rest = len(program.build_dataset('train')) % (loader.get('batch_size') or 1) if is_cut else 0  # on one GPU
    if 0 < rest < number:
        last = {**data, 'inputs': data['inputs'][:rest], 'data_samples': list(data['data_samples'][:rest])}
        found.append((f'the last batch of an epoch, of size {rest}', last, 1.0, 'your epochs'))
    return found


def ignore_half(program: Program, data: Dict[str, Any]) -> Dict[str, Any]:
    """Return a copy of a batch in which the left half of each label map is ignored."""

    def ignore(sample: Any, place: int) -> None:
        plane = get_label_map(sample)
        plane[..., : plane.shape[-1] // 2] = program.ignore_index

    return _change(data, ignore)


def _change(data: Dict[str, Any], change: Callable[[Any, int], None]) -> Dict[str, Any]:
    samples = copy.deepcopy(list(data['data_samples']))
    for place, sample in enumerate(samples):
        change(sample, place)
    return {**data, 'data_samples': samples}


def _remove(program: Program, sample: Any) -> None:
    if program.has_label_map and 'gt_sem_seg' in sample:
        get_label_map(sample)[:] = program.ignore_index
    if 'gt_instances' in sample:
        sample.gt_instances = sample.gt_instances[torch.zeros(len(sample.gt_instances), dtype=torch.bool)]


def _judge(program: Program, variant: Variant, usual: BackwardTrace, where: str) -> Result:
    """Compare the backward pass of a variant with the backward pass of the unchanged batch."""
    subject, changed, share, source = variant
    seen = f'{share:.0%} of {source} are like this' if share else f'none of {source} is like this'
    blame = broken if share else note
    try:
        found = _trace(program, changed)
    except Exception as error:
        failure = describe_failure(error)
        return blame(subject, f'the losses fail: {failure}; {seen}', dict(share=share, failure=failure))
    lack = usual.describe_lack(found)
    if not lack or ('label' in subject and not found.infinite):
        return ran(subject, where)
    data = dict(share=share, parameters=sorted(usual.parameters - found.parameters)[:20])
    if found.infinite or not found.parameters:
        return blame(subject, f'{lack}; {seen}', data)
    if 'targets' not in subject or (program.config.get('find_unused_parameters') and found.names == usual.names):
        return note(subject, f'{lack}: training on several GPUs needs find_unused_parameters=True; {seen}', data)
    return blame(subject, f'{lack}: the ranks of a distributed training hang or fail; {seen}', data)


def _trace(program: Program, data: Any) -> BackwardTrace:
    with enter_autocast(program):
        return trace_backward(program.build_model(), lambda: program.compute_batch(copy.deepcopy(data)))
