"""List of the properties, and the function that tests one in the program's process."""

from __future__ import annotations

import importlib
import time
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence

from mmguard.properties.result import Result, Unavailable, not_tested
from mmguard.properties.worker import Failure, OutOfTime, Worker, time_limit


class Property(NamedTuple):
    """A property of every training.

    Attributes:
        test (str): Function that tests it, ``'module.function'``.
        summary (str): The property as text.
        advice (str): What to do if it is broken.
    """

    test: str
    summary: str
    advice: str


_GUARD_ADVICE = (
    '`mmguard apply CONFIG -o OUT.py` writes the guarded config, and `mmguard dry-run OUT.py` shows if it holds there.'
)
_TRACE_ADVICE = '`mmguard trace CONFIG` shows the labels after each step.'

#: Name for ``--only`` -> property.
PROPERTIES: Dict[str, Property] = {
    'move-together': Property(
        'pipelines.check_moves',
        'image and label move together',
        f'Replace this step by one that moves the labels, too, or correct its arguments. {_TRACE_ADVICE}',
    ),
    'samples-survive': Property(
        'pipelines.check_samples',
        'every sample survives',
        f'Look at the labels of this sample before this step, then correct them or the arguments of the step. '
        f'{_TRACE_ADVICE}',
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
        'gradients.check_ignored', 'ignored elements are excluded from the loss', f'Guard the losses: {_GUARD_ADVICE}'
    ),
    'averages': Property(
        'loss_terms.check_averages', 'averages leave ignored elements out', f'Guard the losses: {_GUARD_ADVICE}'
    ),
    'class-weights': Property(
        'loss_terms.check_weights',
        'class weights act on their own class',
        'Write one class weight for each output, in the order of the classes. If the loss fails at an ignored label, '
        f'guard it: {_GUARD_ADVICE}',
    ),
    'same-labels': Property(
        'evaluation.check_labels',
        'training and validation see the same labels',
        'Give the data sets of training and validation the same class names (metainfo), reduce_zero_label and '
        f'label_map, and their pipelines the same LoadAnnotations. {_TRACE_ADVICE}',
    ),
    'empty-batch': Property(
        'batches.check_empty', ('a batch without targets trains like any other'), f'Guard the losses: {_GUARD_ADVICE}'
    ),
    'loader-batches': Property(
        'batches.check_sizes',
        'every batch that the loader can deliver trains',
        'If only one size fails, change batch_size of this data loader, or set drop_last=True there. If none trains, '
        'the error says which of model, preprocessor and data do not fit together.',
    ),
    'full-marks': Property(
        'evaluation.check_marks',
        'the evaluator gives its best score to the ground truth',
        'Give the metric the ignore_index, all class names (a background that is labeled is one) and the ann_file of '
        'its data set: `mmguard check CONFIG` compares them.',
    ),
    'learns-one-batch': Property(
        'batches.check_learning',
        'it can learn one batch',
        f'Look at the labels that reach the loss, then at the learning rate and at frozen parameters. {_TRACE_ADVICE}',
    ),
}
#: Name of a slow property that is tested only on request.
OVERFIT = 'learns-one-batch'
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
    """Test a property of a config in a worker; a crash, hang or timeout makes it *not tested*.

    Args:
        worker (Worker): Keeps the built program for the next property.
        tree (dict): The config as plain dicts, lists and values.
        name (str): A key of ``PROPERTIES``.
        seconds (float): Time limit.
        samples (int): Maximum number of samples per data set.
        device (str): Device of the model.
    """
    test, summary, _ = PROPERTIES[name]
    began = time.monotonic()
    results = sorted(_ask(worker, dict(tree), test, samples, device, seconds), key=Result.rank)
    return PropertyRecord(
        name, summary, results[0].outcome if results else 'not tested', results, time.monotonic() - began
    )


def run_properties(
    worker: Worker, tree: Mapping[str, Any], names: Sequence[str], seconds: float, samples: int = 8, device: str = 'cpu'
) -> Iterator[PropertyRecord]:
    """Test properties in equal shares of the time, so that no property uses up another's time.

    The program is built first. Properties that ran out of time are tested again in the remaining time.
    """
    ends = time.monotonic() + seconds
    _ask(worker, dict(tree), 'program.build_parts', samples, device, BUILD_SHARE * seconds)
    late: List[str] = []
    for number, name in enumerate(names):
        share = (ends - time.monotonic()) / (len(names) - number)
        tested = run_property(worker, tree, name, share, samples, device)
        if tested.is_late:
            late.append(name)
        else:
            yield tested
    for number, name in enumerate(late):
        share = (ends - time.monotonic()) / (len(late) - number)
        yield run_property(worker, tree, name, share, samples, device)


def _ask(worker: Worker, tree: Dict[str, Any], test: str, samples: int, device: str, seconds: float) -> List[Result]:
    if seconds <= 0:
        return [_build_timeout(0)]
    reply = worker.ask(_check, tree, test, samples, device, time.monotonic() + seconds, seconds=seconds)
    if reply.failure is None:
        return [Result(*one) for one in reply.value]
    return [_build_timeout(seconds) if reply.failure.kind == 'hang' else not_tested('', f'the program {reply.failure}')]


def _build_timeout(seconds: float) -> Result:
    return not_tested('', f'its time was up ({max(0.0, seconds):.0f} s; --seconds)', dict(reason='time'))


def _check(tree: Mapping[str, Any], test: str, samples: int, device: str, deadline: float) -> List[Result]:
    """Test a property in the program's process, and return in time so that the process is kept."""
    from mmguard.properties.program import get_program

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
    except Unavailable as reason:
        return [not_tested('', str(reason))]
    except Exception as error:
        return [not_tested('', str(Failure.describe(error)))]
