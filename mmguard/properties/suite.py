"""List of the properties, and the call that tests one in the process of the program."""

from __future__ import annotations

import importlib
import pickle
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from mmguard.properties.result import OUTCOMES, Result, not_tested, worst
from mmguard.properties.worker import Failure, Worker

#: Name, as ``--only`` takes it -> its module, and what must hold.
PROPERTIES: Dict[str, Tuple[str, str]] = {
    'move-together': ('moves_together', 'image and label move together'),
    'samples-survive': ('samples_survive', 'every sample survives'),
    'labels-reach-outputs': ('label_outputs', 'each label reaches its output'),
    'ignored-weigh-nothing': ('ignored_elements', 'ignored elements weigh nothing'),
    'same-labels': ('same_labels', 'training and validation see the same labels'),
    'empty-batch': ('empty_batch', 'an empty batch is a batch'),
    'loader-batches': ('loader_batches', 'the batches that the loader can deliver'),
    'full-marks': ('full_marks', 'the evaluator gives full marks to the truth'),
}


class Tested(NamedTuple):
    """Record of a property.

    Attributes:
        name (str): As ``--only`` takes it.
        summary (str): What must hold.
        outcome (str): The worst of its results.
        results (list[Result]): One for each part that it is about, the broken ones first.
        seconds (float): How long it took.
    """

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
        samples (int): How many samples of each data set it may load.
        device (str): Where the model runs.
    """
    module, summary = PROPERTIES[name]
    began = time.monotonic()
    reply = worker.ask(_check, dict(tree), module, samples, device, seconds, seconds=seconds)
    if reply.failure is not None:
        results = [not_tested('', f'the program {reply.failure}')]
    else:
        results = sorted((Result(*one) for one in reply.value), key=lambda one: OUTCOMES.index(one.outcome))
    return Tested(name, summary, worst(results), results, time.monotonic() - began)


# ---- in the process


_programs: Dict[bytes, Any] = {}


def _check(tree: Mapping[str, Any], module: str, samples: int, device: str, seconds: float) -> List[Result]:
    from mmguard.properties.program import Program
    from mmguard.properties.result import Unavailable

    key = pickle.dumps((tree, device))
    try:
        if key not in _programs:
            _programs.clear()
            _programs[key] = Program(tree, device, samples)
        # What a property leaves is killed with its process: it ends by itself before.
        _programs[key].ends = time.monotonic() + 0.7 * seconds
        found: List[Result] = importlib.import_module(f'mmguard.properties.{module}').check(_programs[key])
    except Unavailable as reason:
        found = [not_tested('', str(reason))]
    except Exception as error:
        found = [not_tested('', str(Failure.describe(error)))]
    return [result._replace(data=dict(result.data)) for result in found]
