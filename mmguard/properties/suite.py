"""List of the properties, and the function that tests one in the program's process."""

from __future__ import annotations

import importlib
import time
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from mmguard.properties.result import DoesNotApply, Result, describe_missing, not_run, note
from mmguard.properties.worker import OutOfTime, Worker, time_limit


class Property(NamedTuple):
    """A property of every training, or a stage of one.

    Attributes:
        test (str): Function that tests it, ``'module.function'``.
        summary (str): The property as text.
        advice (str): What to do if it is broken.
        needs_data (bool): True if it is tested on the user's data only; others also take made-up samples.
    """

    test: str
    summary: str
    advice: str
    needs_data: bool = False


_GUARD_ADVICE = (
    '`mmguard apply CONFIG -o OUT.py` writes the guarded config, and `mmguard dry-run OUT.py` shows if that is enough.'
)
_TRACE_ADVICE = '`mmguard trace CONFIG` shows the labels after each step.'

#: Name for ``--only`` -> property, in the order of a training.
PROPERTIES: Dict[str, Property] = {
    'build': Property(
        'runner.check_build',
        'everything is built that a training has before its first iteration',
        'Correct this part of the config: `mmguard check CONFIG` names many such mistakes with the line to write.',
        True,
    ),
    'samples-survive': Property(
        'pipelines.check_samples',
        'every sample survives',
        f'Look at the labels of this sample before this step, then correct them or the arguments of the step. '
        f'{_TRACE_ADVICE}',
        True,
    ),
    'first-batches': Property(
        'first_batches.check_batches',
        'the first batches of the loader train',
        'Look at the labels and sizes that reach the loss: `mmguard trace CONFIG` shows them after each step, `mmguard '
        'scan CONFIG` counts the labels in the files.',
        True,
    ),
    'first-validation': Property(
        'first_validation.check_validation',
        'the first images are validated',
        'Compare val_pipeline, test_cfg and val_evaluator with the config that yours is derived from.',
        True,
    ),
    'batch-variants': Property(
        'batches.check_variants', 'other batches train like the first one', f'Guard the losses: {_GUARD_ADVICE}'
    ),
    'full-marks': Property(
        'evaluation.check_marks',
        'the evaluator gives its best score to the ground truth',
        'Give the metric the ignore_index, all class names (a background that is labeled is one) and the ann_file of '
        'its data set: `mmguard check CONFIG` compares them.',
        True,
    ),
    'same-labels': Property(
        'evaluation.check_labels',
        'training and validation see the same labels',
        'Give the data sets of training and validation the same class names (metainfo), reduce_zero_label and '
        f'label_map, and their pipelines the same LoadAnnotations. {_TRACE_ADVICE}',
        True,
    ),
    'class-weights': Property(
        'loss_terms.check_weights',
        'class weights act on their own class',
        'Write one class weight for each output, in the order of the classes. If the loss fails at an ignored label, '
        f'guard it: {_GUARD_ADVICE}',
    ),
    'labels-reach-outputs': Property(
        'gradients.check_outputs',
        'each label reaches its output',
        'Make num_classes, the class names and the labels in the files agree: `mmguard check CONFIG` compares the '
        'first two, `mmguard scan CONFIG` counts the labels.',
    ),
    'strides-match': Property(
        'strides.check_strides',
        'anchors and regions lie where their feature maps are',
        'Write the strides of the feature maps into `strides` of the prior generator and `featmap_strides` of the '
        'region extractors, or choose other out_indices of the backbone.',
    ),
    'ignored-weigh-nothing': Property(
        'loss_terms.check_ignored', 'ignored elements are excluded from the loss', f'Guard the losses: {_GUARD_ADVICE}'
    ),
    'move-together': Property(
        'pipelines.check_moves',
        'image and label move together',
        f'Replace this step by one that moves the labels, too, or correct its arguments. {_TRACE_ADVICE}',
        True,
    ),
}
#: Share of the time that building the program may take.
BUILD_SHARE = 0.5


class PropertyRecord(NamedTuple):
    """Record of a property: the worst outcome, and a result per part, the broken ones first."""

    name: str
    summary: str
    outcome: str
    results: List[Result]
    seconds: float

    @property
    def is_late(self) -> bool:
        """True if there was not enough time."""
        return any(one.data.get('reason') == 'time' for one in self.results)


def run_property(
    worker: Worker, tree: Mapping[str, Any], name: str, seconds: float, samples: int = 8, device: str = 'cpu'
) -> PropertyRecord:
    """Test a property of a config in a worker; a crash, hang or timeout makes it *not run*.

    Args:
        worker (Worker): Keeps the built program for the next property.
        tree (dict): The config as plain dicts, lists and values.
        name (str): A key of ``PROPERTIES``.
        seconds (float): Time limit.
        samples (int): Maximum number of samples per data set; 0: the data are left alone.
        device (str): Device of the model.
    """
    began = time.monotonic()
    results = _ask(worker, dict(tree), PROPERTIES[name].test, samples, device, seconds)
    return _make_record(name, results, time.monotonic() - began)


def _make_record(name: str, results: List[Result], seconds: float) -> PropertyRecord:
    results = sorted(results, key=Result.rank) or [note('', 'there is nothing to test', dict(tested=False))]
    return PropertyRecord(name, PROPERTIES[name].summary, results[0].outcome, results, seconds)


def run_properties(
    worker: Worker, tree: Mapping[str, Any], names: Sequence[str], seconds: float, samples: int = 8, device: str = 'cpu'
) -> Iterator[PropertyRecord]:
    """Test properties in equal shares of the time, so that no property uses up another's time.

    The program is built first. Properties that ran out of time are tested again in the remaining time. A cause that was
    reported is not reported again.
    """
    ends = time.monotonic() + seconds
    _ask(worker, dict(tree), 'runner.build_parts', samples, device, BUILD_SHARE * seconds)
    late: List[str] = []
    known: Dict[str, Tuple[str, str]] = {}
    for number, name in enumerate([*names, *names]):
        is_again = number >= len(names)
        if is_again and name not in late:
            continue
        waiting = len(names) - number if not is_again else len(late) - late.index(name)
        tested = run_property(worker, tree, name, (ends - time.monotonic()) / waiting, samples, device)
        if tested.is_late and not is_again:
            late.append(name)
            continue
        yield _make_record(name, [point_back(one, name, known) for one in tested.results], tested.seconds)


def point_back(result: Result, name: str, known: Dict[str, Tuple[str, str]]) -> Result:
    """Return a result that points to an earlier property with the same cause; nothing is broken twice.

    Args:
        result (Result): A result of this property.
        name (str): The property.
        known (dict): Cause -> the property that reported it first, and its outcome; extended here.
    """
    cause, outcome = result.data.get('failure'), result.outcome
    if not cause or outcome not in ('broken', 'not run'):
        return result
    first, reported = known.get(cause, (name, outcome))
    if first == name or (outcome, reported) == ('broken', 'not run'):
        known[cause] = name, outcome
        return result
    if outcome == 'broken':
        return note('', f'fails as {first}', result.data)
    return not_run('', f'not run, for the reason of {first}', result.data)


def _ask(worker: Worker, tree: Dict[str, Any], test: str, samples: int, device: str, seconds: float) -> List[Result]:
    if seconds <= 0:
        return [_build_timeout(0)]
    reply = worker.ask(_check, tree, test, samples, device, time.monotonic() + seconds, seconds=seconds)
    if reply.failure is None:
        return [Result(*one) for one in reply.value]
    return [_build_timeout(seconds) if reply.failure.kind == 'hang' else not_run('', f'the program {reply.failure}')]


def _build_timeout(seconds: float) -> Result:
    return not_run('', f'its time was up ({max(0.0, seconds):.0f} s; --seconds)', dict(reason='time'))


def _check(tree: Mapping[str, Any], test: str, samples: int, device: str, deadline: float) -> List[Result]:
    """Test a property in the program's process, and return in time so that the process is kept."""
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
    except OutOfTime:
        return [_build_timeout(left)]
    except DoesNotApply as reason:
        return [note('', str(reason), dict(tested=False))]
    except Exception as error:
        failure = describe_failure(error)
        return [not_run('', describe_missing(error) or failure, dict(failure=failure))]
