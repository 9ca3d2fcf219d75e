"""List of the properties, and the call that tests one in the process of the program."""

from __future__ import annotations

import importlib
import pickle
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from mmguard.properties.result import OUTCOMES, Result, not_tested, worst
from mmguard.properties.worker import Failure, Worker

#: Name, as ``--only`` takes it -> what tests it, and what must hold.
PROPERTIES: Dict[str, Tuple[str, str]] = {
    'move-together': ('moves_together.check', 'image and label move together'),
    'samples-survive': ('samples_survive.check', 'every sample survives'),
    'labels-reach-outputs': ('label_outputs.check', 'each label reaches its output'),
    'ignored-weigh-nothing': ('ignored_elements.check', 'ignored elements weigh nothing'),
    'averages': ('loss_terms.check_averages', 'averages leave ignored elements out'),
    'class-weights': ('loss_terms.check_weights', 'class weights act on their own class'),
    'same-labels': ('same_labels.check', 'training and validation see the same labels'),
    'empty-batch': ('batches.check_empty', 'an empty batch is a batch'),
    'loader-batches': ('batches.check_sizes', 'the batches that the loader can deliver'),
    'full-marks': ('full_marks.check', 'the evaluator gives full marks to the truth'),
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
    return Tested(name, summary, worst(results), results, time.monotonic() - began)


# ---- in the process


_programs: Dict[bytes, Any] = {}


def _check(tree: Mapping[str, Any], test: str, samples: int, device: str, seconds: float) -> List[Result]:
    from mmguard.properties.program import Program
    from mmguard.properties.result import Unavailable

    key = pickle.dumps((tree, device))
    try:
        if key not in _programs:
            _programs.clear()
            _programs[key] = Program(tree, device, samples)
        # What a property leaves is killed with its process: it ends by itself before.
        _programs[key].ends = time.monotonic() + 0.7 * seconds
        module, _, function = test.partition('.')
        found: List[Result] = getattr(importlib.import_module(f'mmguard.properties.{module}'), function)(_programs[key])
    except Unavailable as reason:
        found = [not_tested('', str(reason))]
    except Exception as error:
        found = [not_tested('', str(Failure.describe(error)))]
    return [result._replace(data=dict(result.data)) for result in found]
