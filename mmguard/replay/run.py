"""``mmguard replay``: from a flight record to the sample that fails."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

from mmguard.replay.errors import CannotReplay
from mmguard.replay.network import build_model
from mmguard.replay.outcome import DIES, NOT_FINITE, NOT_FOUND, OUR_FAILURE, Outcome
from mmguard.replay.places import Places, build_dataset
from mmguard.replay.recorded import Recorded, chosen, load_record, recorded_batches, told_exception
from mmguard.replay.sample import Replayer
from mmguard.replay.scope import in_scope
from mmguard.replay.screen import show
from mmguard.replay.spaces import spaces_in, spaces_of
from mmguard.replay.surroundings import without_gpu
from mmguard.words import counted

NONE_FAILS, FAILS, COULD_NOT_RUN = 0, 1, 2


def replay(
    config_file: Path,
    record_file: Path,
    last: Optional[int] = None,
    sample: Optional[str] = None,
    weights: Optional[str] = None,
    seeds: int = 3,
    forward: bool = True,
    json_file: Optional[str] = None,
) -> int:
    """Replays the samples of a flight record; returns the exit code.

    Args:
        config_file (Path): The config of the run.
        record_file (Path): A ``label_guard_flight.jsonl``.
        last (int, optional): So many batches, the newest first. ``None``: back to the first with a sample that fails.
        sample (str, optional): This one alone; the end of its path is enough.
        weights (str, optional): A checkpoint.
        seeds (int): How often a random pipeline is run.
        forward (bool): Whether the model is run, too.
        json_file (str, optional): Where to write the outcome; ``'-'``: standard output, and nothing else there.
    """
    from rich.console import Console

    file = sys.stderr if json_file == '-' else sys.stdout
    console = Console(file=file, markup=False, emoji=False, highlight=False)
    with without_gpu(), _quiet():
        report = _replayed(console, config_file, record_file, last, sample, weights, seeds, forward)
    show(console, report)
    if json_file is not None:
        _write(json_file, report)
    return int(report['exit_code'])


def _replayed(
    console: Any,
    config_file: Path,
    record_file: Path,
    last: Optional[int],
    sample: Optional[str],
    weights: Optional[str],
    seeds: int,
    forward: bool,
) -> Dict[str, Any]:
    record = load_record(str(record_file))
    batches = recorded_batches(record, str(record_file))
    config = _load_config(config_file)
    with console.status('building data set and model on the CPU'):
        places = Places(build_dataset(config))
        model = build_model(config, weights) if forward else None
    spaces = spaces_in(config) if model is None else spaces_of(model)
    notes = _notes(config, spaces, model, weights)
    replayer = Replayer(spaces, model, _facts_of(config), seeds)
    if sample is not None:
        batches = [[chosen(batches, sample)]]
        places.find(batches[0][0].path)  # one that is nowhere is the user's slip
    elif last is not None:
        batches = batches[:last]
    outcomes: List[Outcome] = []
    looked_at = 0
    with in_scope(config):
        for batch in batches:
            with console.status(f'replaying {counted(len(batch), "sample")} of iteration {batch[0].iteration}'):
                outcomes += [outcome for recorded in batch for outcome in _outcomes(recorded, places, replayer)]
            looked_at += 1
            # One that fails among others that do not is what was looked for. Where all fail, older ones tell whether
            # it is a matter of samples at all.
            found = [o for o in outcomes if o.status in (DIES, NOT_FINITE) or (o.fails and not forward)]
            if last is None and found and any(not o.fails and o.seeds for o in outcomes):
                break
    if all(outcome.status == NOT_FOUND for outcome in outcomes):
        raise CannotReplay(f'none of the {len(outcomes)} recorded samples is in the data set: {outcomes[0].notes[0]}')
    return _report(record, str(record_file), outcomes, notes, len(batches) - looked_at, forward)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Models and data sets print and log a lot when they are built; what goes wrong is raised."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    finally:
        logging.disable(before)


def _outcomes(recorded: Recorded, places: Places, replayer: Replayer) -> List[Outcome]:
    try:
        path, found = places.find(recorded.path)
    except CannotReplay as error:
        return [Outcome(recorded, status=NOT_FOUND, notes=[str(error)])]
    outcomes = []
    for place in found:
        outcome = Outcome(recorded, path)
        replayer.replay(place, outcome)
        outcomes.append(outcome)
    return outcomes


def _report(
    record: Dict[str, Any], file: str, outcomes: List[Outcome], notes: List[str], older: int, forward: bool
) -> Dict[str, Any]:
    failing = [outcome for outcome in outcomes if outcome.fails]
    lost = [outcome for outcome in outcomes if outcome.status == NOT_FOUND]
    ours = [outcome for outcome in outcomes if outcome.status == OUR_FAILURE]
    return {
        'file': file,
        'reason': record.get('reason'),
        'rank': record.get('rank'),
        'iter': record.get('iter'),
        'exception': told_exception(record),
        'forward': forward,
        'notes': notes,
        'outcomes': outcomes,
        'failing': failing,
        'not_found': lost,
        'our_failures': ours,
        'older_batches': older,
        'same_for_all': _same_for_all(outcomes),
        'exit_code': FAILS if failing else COULD_NOT_RUN if lost or ours else NONE_FAILS,
    }


def _same_for_all(outcomes: List[Outcome]) -> str:
    """Where every sample fails at one place, and no label of theirs explains it; empty otherwise."""
    run = [outcome for outcome in outcomes if outcome.seeds]
    raised = [o.raised for o in run if o.raised is not None and not o.raised.own and not o.invalid]
    if len(run) < 2 or len(raised) < len(run):
        return ''
    ((place, count),) = Counter(f'{error.type} at {error.place}' for error in raised).most_common(1)
    return place if count == len(run) else ''


def _load_config(file: Path) -> Any:
    from mmguard.trace.samples import load_config

    if not file.is_file():
        raise CannotReplay(f'{file}: no such config')
    return load_config(file)


def _facts_of(config: Any) -> Any:
    from mmguard.check.facts import facts_of_config

    try:
        return facts_of_config(config)
    except Exception:  # an odd config costs the hints that come from it, no more
        return None


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


def _write(target: str, report: Dict[str, Any]) -> None:
    from mmguard.files import write_or_print

    plain = {
        key: value for key, value in report.items() if key not in ('outcomes', 'failing', 'not_found', 'our_failures')
    }
    plain['failing'] = list(dict.fromkeys(outcome.path for outcome in report['failing']))
    plain['not_found'] = [outcome.recorded.path for outcome in report['not_found']]
    plain['our_failures'] = [outcome.path for outcome in report['our_failures']]
    plain['samples'] = [outcome.to_json() for outcome in report['outcomes']]
    write_or_print(target, json.dumps(plain, indent=1))
