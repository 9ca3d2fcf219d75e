"""From a flight record to the sample that fails."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import warnings
from collections import Counter
from typing import Any, Dict, Iterator, List, Optional

from mmguard.config.label_spaces import from_config
from mmguard.config.read import from_mmengine
from mmguard.errors import CannotRun
from mmguard.hooks.discovery import class_names_of
from mmguard.labels.spaces import from_model
from mmguard.log.flight_record import Flight
from mmguard.text.words import counted
from mmguard.tools.exit_codes import CLEAN, COULD_NOT_RUN, FOUND
from mmguard.tools.replay.network import build_model
from mmguard.tools.replay.outcome import DIES, NOT_FINITE, NOT_FOUND, OUR_FAILURE, Outcome
from mmguard.tools.replay.recorded import Recorded, chosen, exception_of, load_record, recorded_batches
from mmguard.tools.replay.replayer import Replayer
from mmguard.tools.samples import Samples, build_dataset, in_scope, load_config


def replayed(
    console: Any,
    config_file: str,
    record_file: str,
    last: Optional[int],
    sample: Optional[str],
    weights: Optional[str],
    seeds: int,
    forward: bool,
    run_code: bool = False,
) -> Dict[str, Any]:
    """Replays the samples of a flight record, and reports what came of each.

    Args:
        console (rich.console.Console): Shows how far it is.
        config_file (str): The config of the run.
        record_file (str): A ``label_guard_flight.jsonl``.
        last (int, optional): So many batches, the newest first. ``None``: back to the first with a sample that fails.
        sample (str, optional): This one alone; the end of its path is enough.
        weights (str, optional): A checkpoint.
        seeds (int): How often a random pipeline is run.
        forward (bool): Whether the model is run, too.
        run_code (bool): Whether a config in YAML or JSON may name code.

    Raises:
        CannotRun: Nothing can be replayed, and why.
    """
    flight = load_record(record_file)
    batches = recorded_batches(flight, record_file)
    config = load_config(config_file, run_code)
    with console.status('building data set and model on the CPU'):
        dataset = build_dataset(config)
        samples = Samples(dataset)
        model = build_model(config, weights) if forward else None
    # What guards in the pipeline do is looked at in the samples.
    spaces = from_config(from_mmengine(config)) if model is None else from_model(model, class_names_of(dataset))
    notes = [*flight.unread.words(), *_notes(config, spaces.rules(), model, weights)]
    replayer = Replayer(spaces.rules(), model, from_mmengine(config), seeds)
    if sample is not None:
        batches = [[chosen(batches, sample)]]
        samples.find(batches[0][0].path)  # one that is nowhere is the user's slip
    elif last is not None:
        batches = batches[:last]
    outcomes: List[Outcome] = []
    looked_at = 0
    with in_scope(config):
        for batch in batches:
            with console.status(f'replaying {counted(len(batch), "sample")} of iteration {batch[0].iteration}'):
                outcomes += [outcome for recorded in batch for outcome in _outcomes(recorded, samples, replayer)]
            looked_at += 1
            # One that fails among others that do not is what was looked for. Where all fail, older ones tell whether
            # it is a matter of samples at all.
            found = [o for o in outcomes if o.status in (DIES, NOT_FINITE) or (o.fails and not forward)]
            if last is None and found and any(not o.fails and o.seeds for o in outcomes):
                break
    if all(outcome.status == NOT_FOUND for outcome in outcomes):
        raise CannotRun(f'none of the {len(outcomes)} recorded samples is in the data set: {outcomes[0].notes[0]}')
    return _report(flight, record_file, outcomes, notes, len(batches) - looked_at, forward)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Models and data sets print and log a lot when they are built; what goes wrong is raised."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def without_gpu() -> Iterator[None]:
    """Hide the GPUs from whatever looks for one."""
    name = 'CUDA_VISIBLE_DEVICES'
    before = os.environ.get(name)
    os.environ[name] = ''
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _outcomes(recorded: Recorded, samples: Samples, replayer: Replayer) -> List[Outcome]:
    try:
        path, found = samples.find(recorded.path)
    except CannotRun as error:
        return [Outcome(recorded, status=NOT_FOUND, notes=[str(error)])]
    outcomes = []
    for sample in found:
        outcome = Outcome(recorded, path)
        replayer.replay(sample, outcome)
        outcomes.append(outcome)
    return outcomes


def _report(
    flight: Flight, file: str, outcomes: List[Outcome], notes: List[str], older: int, forward: bool
) -> Dict[str, Any]:
    failing = [outcome for outcome in outcomes if outcome.fails]
    missing = [outcome for outcome in outcomes if outcome.status == NOT_FOUND]
    ours = [outcome for outcome in outcomes if outcome.status == OUR_FAILURE]
    return {
        'file': file,
        'reason': flight.reason,
        'rank': flight.rank,
        'iter': flight.iter,
        'exception': exception_of(flight),
        'forward': forward,
        'notes': notes,
        'outcomes': outcomes,
        'failing': failing,
        'not_found': missing,
        'our_failures': ours,
        'older_batches': older,
        'same_for_all': _same_for_all(outcomes),
        'exit_code': FOUND if failing else COULD_NOT_RUN if missing or ours else CLEAN,
    }


def _same_for_all(outcomes: List[Outcome]) -> str:
    """Where every sample fails at one place, and no label of theirs explains it; empty otherwise."""
    run = [outcome for outcome in outcomes if outcome.seeds]
    raised = [o.raised for o in run if o.raised is not None and not o.raised.own and not o.invalid]
    if len(run) < 2 or len(raised) < len(run):
        return ''
    ((place, count),) = Counter(f'{error.type} at {error.place}' for error in raised).most_common(1)
    return place if count == len(run) else ''


def _notes(config: Any, spaces: Dict[str, Any], model: Any, weights: Optional[str]) -> List[str]:
    notes = []
    if not spaces:
        notes.append('no head says how many classes there are: labels are not checked, the forward alone is')
    if model is not None and weights is None:
        notes.append('random weights: a loss that only trained ones drive to NaN needs --weights CHECKPOINT')
    wrapper = config.get('optim_wrapper') or {}
    if 'Amp' in str(wrapper.get('type')):
        notes.append('float32 on the CPU: what overflows in half precision alone does not show here')
    return notes
