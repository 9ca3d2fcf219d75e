"""List of the properties, and functions that test them in a worker process."""

from __future__ import annotations

import importlib
import time
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from mmguard.properties.result import DoesNotApply, Result, describe_missing, not_run, note
from mmguard.properties.worker import OutOfTime, Worker, time_limit


class Property(NamedTuple):
    """Property that every training must have, or a stage of a training; its ``test`` is a ``'module.function'``."""

    test: str
    summary: str
    advice: str


#: Properties that are tested on made-up samples, too.
MADE_UP = ('batch-variants', 'class-weights', 'labels-reach-outputs', 'strides-match', 'ignored-weigh-nothing')
_GUARD_ADVICE = '`mmguard apply CONFIG -o OUT.py` writes the guarded config, and `mmguard dry-run OUT.py` tests it.'
_TRACE_ADVICE = '`mmguard trace CONFIG` shows the labels after each step.'

#: {name for ``--only``: property}, in the order of a training.
PROPERTIES: Dict[str, Property] = {
    'build': Property(
        'runner.check_build',
        'everything that a training needs before its first iteration can be built',
        'Correct this part of the config: `mmguard check CONFIG` names many such mistakes with the line to write.',
    ),
    'samples-survive': Property(
        'pipelines.check_samples',
        'the pipelines keep every sample',
        f'Look at the labels of this sample before this step, then correct them or the arguments of the step. '
        f'{_TRACE_ADVICE}',
    ),
    'first-batches': Property(
        'first_batches.check_batches',
        'the model trains on the first batches of the loader',
        'Look at the labels and sizes that reach the loss: `mmguard trace CONFIG` shows them after each step, `mmguard '
        'scan CONFIG` counts the labels in the files.',
    ),
    'first-validation': Property(
        'validation.check_validation',
        'the first images can be validated',
        'Compare val_pipeline, test_cfg and val_evaluator with the config that yours is derived from.',
    ),
    'batch-variants': Property(
        'batches.check_variants', 'unusual batches train like the first batch', f'Guard the losses: {_GUARD_ADVICE}'
    ),
    'full-marks': Property(
        'validation.check_marks',
        'the evaluator gives its best score to the ground truth',
        'Give the metric the ignore_index, all class names (including a labeled background) and the ann_file of '
        'its data set: `mmguard check CONFIG` compares them.',
    ),
    'same-labels': Property(
        'validation.check_labels',
        'training and validation see the same labels',
        'Give the data sets of training and validation the same class names (metainfo), reduce_zero_label and '
        f'label_map, and their pipelines the same LoadAnnotations. {_TRACE_ADVICE}',
    ),
    'class-weights': Property(
        'heads.check_weights',
        'each class weight acts on its own class',
        'Write one class weight for each output, in the order of the classes. If the loss fails at an ignored label, '
        f'guard it: {_GUARD_ADVICE}',
    ),
    'labels-reach-outputs': Property(
        'heads.check_outputs',
        'each label trains its own output',
        'Make num_classes, the class names and the labels in the files agree: `mmguard check CONFIG` compares the '
        'first two, `mmguard scan CONFIG` counts the labels.',
    ),
    'strides-match': Property(
        'heads.check_strides',
        'strides of anchors and regions match their feature maps',
        'Write the strides of the feature maps into `strides` of the prior generator and `featmap_strides` of the '
        'region extractors, or choose other out_indices of the backbone.',
    ),
    'ignored-weigh-nothing': Property(
        'heads.check_ignored', 'ignored elements are excluded from the loss', f'Guard the losses: {_GUARD_ADVICE}'
    ),
    'move-together': Property(
        'pipelines.check_moves',
        'image and label move together',
        f'Replace this step by a transform that also moves the labels, or correct its arguments. {_TRACE_ADVICE}',
    ),
}


class PropertyRecord(NamedTuple):
    """Record of a tested property: worst outcome, one result per part (broken parts first), and advice."""

    name: str
    summary: str
    outcome: str
    results: List[Result]
    seconds: float
    advice: str


def run_property(
    worker: Worker, tree: Any, name: str, seconds: float, samples: int = 8, device: str = 'cpu', known: Any = None
) -> PropertyRecord:
    """Test a property of a config in a worker, which caches the program; return ``'not run'`` if the worker fails."""
    began, tested = time.monotonic(), PROPERTIES[name]
    results = [not_run('', f'the time of {max(0.0, seconds):.0f} s was used up (see --seconds)', dict(reason='time'))]
    if seconds > 0:
        reply = worker.ask(_check, dict(tree), tested.test, samples, device, began + seconds, seconds=seconds)
        if reply.failure is None:
            results = [Result(*one) for one in reply.value]
        elif reply.failure.kind not in ('hang', OutOfTime.__name__):
            results = [not_run('', f'the program {reply.failure}')]
    results = sorted((point_back(one, name, {} if known is None else known) for one in results), key=Result.rank)
    results = results or [note('', 'there is nothing to test', dict(tested=False))]
    advice = tested.advice if results[0].outcome == 'broken' else ''
    return PropertyRecord(name, tested.summary, results[0].outcome, results, time.monotonic() - began, advice)


def run_properties(
    worker: Worker, tree: Mapping[str, Any], names: Sequence[str], seconds: float, samples: int = 8, device: str = 'cpu'
) -> Iterator[PropertyRecord]:
    """Test properties, each but the last in at most half of the remaining time, so that time is left for the others."""
    ends = time.monotonic() + seconds
    known: Dict[str, Tuple[str, str]] = {}
    for name in names:
        left = (ends - time.monotonic()) * (1.0 if name == names[-1] else 0.5)
        yield run_property(worker, tree, name, left, samples, device, known)


def point_back(result: Result, name: str, known: Dict[str, Tuple[str, str]]) -> Result:
    """Return the result; if an earlier property reported the same cause, return one that refers to that property."""
    cause, outcome = result.data.get('failure'), result.outcome
    if not cause or outcome not in ('broken', 'not run'):
        return result
    first, reported = known.get(cause, (name, outcome))
    if first == name or (outcome, reported) == ('broken', 'not run'):
        known[cause] = name, outcome
        return result
    if outcome == 'broken':
        return note('', f'fails for the same reason as {first}', result.data)
    return not_run('', f'not run, for the same reason as {first}', result.data)


def _check(tree: Mapping[str, Any], test: str, samples: int, device: str, deadline: float) -> List[Result]:
    """Test a property in the worker process, and return before the deadline so that the process is kept."""
    from mmguard.properties.program import get_program
    from mmguard.properties.runner import describe_failure

    module, _, function = test.partition('.')
    left = deadline - time.monotonic()
    try:
        with time_limit(0.85 * left):
            program = get_program(tree, device, samples)
            program.ends = deadline - 0.3 * left
            check = getattr(importlib.import_module(f'mmguard.properties.{module}'), function)
            found: List[Result] = check(program)
            return found
    except DoesNotApply as reason:
        return [note('', str(reason), dict(tested=False))]
    except Exception as error:
        failure = describe_failure(error)
        return [not_run('', describe_missing(error) or failure, dict(failure=failure))]
