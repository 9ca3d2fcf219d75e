"""List of the properties, and the call that tests one in the process of the program."""

from __future__ import annotations

import importlib
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from mmguard.properties.result import OUTCOMES, Result, Unavailable, not_tested
from mmguard.properties.worker import Failure, Worker

#: Name, as ``--only`` takes it -> what tests it, and what must hold.
PROPERTIES: Dict[str, Tuple[str, str]] = {
    'move-together': ('pipelines.check_moves', 'image and label move together'),
    'samples-survive': ('pipelines.check_samples', 'every sample survives'),
    'labels-reach-outputs': ('gradients.check_outputs', 'each label reaches its output'),
    'ignored-weigh-nothing': ('gradients.check_ignored', 'ignored elements weigh nothing'),
    'averages': ('loss_terms.check_averages', 'averages leave ignored elements out'),
    'class-weights': ('loss_terms.check_weights', 'class weights act on their own class'),
    'same-labels': ('evaluation.check_labels', 'training and validation see the same labels'),
    'empty-batch': ('batches.check_empty', 'an empty batch is a batch'),
    'loader-batches': ('batches.check_sizes', 'the batches that the loader can deliver'),
    'full-marks': ('evaluation.check_marks', 'the evaluator gives full marks to the truth'),
    'learns-one-batch': ('batches.check_learning', 'it can learn one batch'),
}
#: The one that takes long: only where it is asked for.
OVERFIT = 'learns-one-batch'


class Tested(NamedTuple):
    """Record of a property: the worst outcome, and a result for each part that it is about, the broken ones first."""

    name: str
    summary: str
    outcome: str
    results: List[Result]
    seconds: float


def run_property(
    worker: Worker, tree: Mapping[str, Any], name: str, seconds: float, samples: int = 8, device: str = 'cpu'
) -> Tested:
    """Test a property of a config in a worker; a crash or a hang makes it *not tested*.

    Args:
        worker (Worker): Keeps what is built for the next property.
        tree (dict): The config as plain dicts, lists and values.
        name (str): A key of ``PROPERTIES``.
        seconds (float): Time that it may take.
        samples (int): Samples of each data set that it may load.
        device (str): Device of the model.
    """
    test, summary = PROPERTIES[name]
    began = time.monotonic()
    reply = worker.ask(_check, dict(tree), test, samples, device, seconds, seconds=seconds)
    if reply.failure is not None:
        results = [not_tested('', f'the program {reply.failure}')]
    else:
        results = sorted((Result(*one) for one in reply.value), key=lambda one: OUTCOMES.index(one.outcome))
    return Tested(name, summary, results[0].outcome if results else 'not tested', results, time.monotonic() - began)


def _check(tree: Mapping[str, Any], test: str, samples: int, device: str, seconds: float) -> List[Result]:
    """Test a property: in the process of the program."""
    from mmguard.properties.program import program_of

    module, _, function = test.partition('.')
    try:
        program = program_of(tree, device, samples)
        # What a property leaves is killed with its process: it ends by itself before.
        program.ends = time.monotonic() + 0.7 * seconds
        found: List[Result] = getattr(importlib.import_module(f'mmguard.properties.{module}'), function)(program)
        return found
    except Unavailable as reason:
        return [not_tested('', str(reason))]
    except Exception as error:
        return [not_tested('', str(Failure.describe(error)))]
