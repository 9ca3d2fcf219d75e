"""Search for the failing sample in a flight record."""

from __future__ import annotations

import argparse
import contextlib
import copy
import os
import warnings
from itertools import takewhile
from typing import Any, Dict, Iterator, List, Mapping

from torch import nn

from mmguard.config.read import ReadConfig, from_mmengine
from mmguard.errors import CannotRun
from mmguard.findings import LabelFacts, diagnose
from mmguard.findings.engine import select_rules
from mmguard.findings.finding import POSSIBLE, Finding
from mmguard.findings.order import sort_key
from mmguard.findings.rules.config.own_lines import OwnLineFails
from mmguard.hooks.discovery import find_class_names, walk_rules
from mmguard.labels.heads import from_model
from mmguard.labels.rules import BaseRule
from mmguard.log.flight_record import Flight
from mmguard.properties.datasets import seed_all
from mmguard.properties.program import Program
from mmguard.text import describe_error, quantity
from mmguard.tools.exit_codes import CLEAN, COULD_NOT_RUN, FOUND
from mmguard.tools.replay.network import describe_raised, run_sample
from mmguard.tools.replay.outcome import (
    DIES,
    INVALID,
    LEFT_OUT,
    NOT_FINITE,
    NOT_FOUND,
    OUR_FAILURE,
    InvalidLabels,
    Outcome,
    RecordedSample,
    describe_exception,
    judge,
    load_record,
    read_batches,
)
from mmguard.tools.samples import Sample, Samples, build_dataset, get_random_state, load_config, open_program
from mmguard.tools.spinner import Spinner
from mmguard.tools.trace.snapshot import take


def replay(spinner: Spinner, args: argparse.Namespace) -> Dict[str, Any]:
    """Replay the samples of a flight record as the command line asks, and return the outcome of each."""
    flight = load_record(args.record)
    batches = read_batches(flight, args.record)
    config = load_config(args.config, args.run_code)
    program = open_program(config)
    dataset = build_dataset(program)
    samples = Samples(dataset)
    model = _build_model(program, args.config)
    # Only of the heads: the effect of guards in the pipeline shows in the samples.
    spaces = from_model(model, find_class_names(dataset)).build_rules()
    notes = [*flight.unread.list_messages(), *_collect_notes(config, spaces)]
    replayer = Replayer(spaces, model, from_mmengine(config), args.seeds)
    batches = batches[: args.last]
    outcomes: List[Outcome] = []
    looked_at = 0
    with program.scope():
        for batch in batches:
            spinner.text = f'{quantity(len(batch), "sample")} of iteration {batch[0].iteration}'
            outcomes += [outcome for recorded in batch for outcome in _create_outcomes(recorded, samples, replayer)]
            looked_at += 1
            # A failure among successes is the one searched for. If all fail, older samples show whether
            # it depends on the samples at all.
            found = [o for o in outcomes if o.status in (DIES, NOT_FINITE)]
            if args.last is None and found and any(not o.fails and o.seeds for o in outcomes):
                break
    if all(outcome.status == NOT_FOUND for outcome in outcomes):
        raise CannotRun(f'none of the {len(outcomes)} recorded samples is in the data set: {outcomes[0].notes[0]}')
    return _report(flight, args.record, outcomes, notes, len(batches) - looked_at)


def _build_model(program: Program, file: str) -> nn.Module:
    """Build the model of a config with random weights, always the same."""
    try:
        model: nn.Module = program.build_model()
        return model
    except Exception as error:
        raise CannotRun(f'{file}: the model cannot be built on the CPU: {describe_error(error)}') from error


@contextlib.contextmanager
def hide_gpus() -> Iterator[None]:
    """Hide the GPUs from this process."""
    name = 'CUDA_VISIBLE_DEVICES'
    before = os.environ.get(name)
    os.environ[name] = ''
    try:
        yield
    finally:
        del os.environ[name]
        os.environ.update({} if before is None else {name: before})


def _create_outcomes(recorded: RecordedSample, samples: Samples, replayer: Replayer) -> List[Outcome]:
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


def _report(flight: Flight, file: str, outcomes: List[Outcome], notes: List[str], older: int) -> Dict[str, Any]:
    failing = [outcome for outcome in outcomes if outcome.fails]
    missing, ours = ([one for one in outcomes if one.status == status] for status in (NOT_FOUND, OUR_FAILURE))
    return {
        'file': file,
        'reason': flight.reason,
        'rank': flight.rank,
        'iter': flight.iter,
        'exception': describe_exception(flight),
        'notes': notes,
        'outcomes': outcomes,
        'failing': failing,
        'not_found': missing,
        'our_failures': ours,
        'older_batches': older,
        'same_for_all': _describe_common_failure(outcomes),
        'exit_code': FOUND if failing else COULD_NOT_RUN if missing or ours else CLEAN,
    }


def _describe_common_failure(outcomes: List[Outcome]) -> str:
    """Describe a failure of every sample at one place that none of their labels explains; empty without one."""
    run = [outcome for outcome in outcomes if outcome.seeds]
    raised = [o.raised for o in run if o.raised is not None and not o.raised.own and not o.invalid]
    places = {f'{error.type} at {error.place}' for error in raised}
    return places.pop() if len(run) > 1 and len(raised) == len(run) and len(places) == 1 else ''


def _collect_notes(config: Any, spaces: Mapping[str, BaseRule]) -> List[str]:
    notes = ['random weights: a loss that only trained ones drive to NaN does not show here']
    if not spaces:
        notes.append('the number of classes is unknown: only the forward pass is checked, not the labels')
    wrapper = config.get('optim_wrapper') or {}
    if 'Amp' in str(wrapper.get('type')):
        notes.append('float32 on the CPU: overflows in half precision do not show here')
    return notes


#: Frameworks whose transforms never change the value of a label.
_FRAMEWORKS = {'mmcv', 'mmseg', 'mmdet'}
#: Maximum number of causes reported per sample.
_MOST_FINDINGS = 2


class Replayer:
    """Runner of samples, one at a time, with random pipelines several times."""

    def __init__(self, spaces: Mapping[str, BaseRule], model: nn.Module, config: ReadConfig, seeds: int) -> None:
        self._spaces = spaces
        self._model = model
        self._config = config
        self._seeds = seeds

    def replay(self, sample: Sample, outcome: Outcome) -> None:
        """Replay a sample into ``outcome``, and stop at the first failing seed."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            self._load(sample, outcome)
            self._run_seeds(sample, outcome)
        of_user = [w for w in caught if issubclass(w.category, (UserWarning, RuntimeWarning))]
        reported = [' '.join(f'{w.category.__name__}: {w.message}'.split())[:200] for w in of_user]
        outcome.warnings = list(dict.fromkeys(reported))
        self._weigh(sample, outcome)

    # ---- the steps

    def _load(self, sample: Sample, outcome: Outcome) -> None:
        results: Any = copy.deepcopy(sample.info)
        seed_all(0)
        try:
            for transform in takewhile(lambda one: type(one).__name__.startswith('Load'), sample.transforms):
                results = transform(results)
        except Exception:
            return  # the whole pipeline raises the same exception
        outcome.loaded = judge(take('loaded', results), self._spaces, outcome.path)

    def _run_seeds(self, sample: Sample, outcome: Outcome) -> None:
        is_dropped = True
        for seed in range(self._seeds):
            seed_all(seed)
            before = get_random_state()
            try:
                packed = sample.load()
            except Exception as error:
                outcome.seeds, outcome.seed = seed + 1, seed
                outcome.die('pipeline', describe_raised(error))
                return
            is_random = get_random_state() != before
            outcome.seeds = seed + 1
            if packed is not None:
                is_dropped, outcome.seed = False, seed
                outcome.trained = judge(take('trained', packed), self._spaces, outcome.path)
                self._run_model(packed, seed, outcome)
                if outcome.fails or outcome.raised is not None:
                    return
                if any(judged.is_invalid for judged in outcome.trained.values()):
                    outcome.status = INVALID
                    return
            if not is_random:
                break
        if is_dropped:
            outcome.status = LEFT_OUT
            outcome.notes.append('the pipeline drops it (no target?); training draws another one instead')

    def _run_model(self, sample: Any, seed: int, outcome: Outcome) -> None:
        result = run_sample(self._model, sample, seed)
        outcome.run = result
        outcome.notes += [note for note in result.notes if note not in outcome.notes]
        if result.raised is not None:
            outcome.die('forward', result.raised)
        elif result.fails:
            outcome.status = NOT_FINITE

    def _weigh(self, sample: Sample, outcome: Outcome) -> None:
        """Note invalid labels that are in the files but in no sample drawn, and find the likely causes."""
        hidden = '; '.join(str(judged) for judged in outcome.loaded.values() if judged.is_invalid)
        if hidden and any(True for _ in walk_rules(sample.transforms)):
            if not outcome.invalid:
                outcome.notes.append(f'the files hold {hidden}, but the guard in the pipeline removes them')
        elif hidden and not outcome.fails:
            packages = {type(one).__module__.partition('.')[0] for one in sample.transforms}
            if outcome.status != LEFT_OUT and packages <= _FRAMEWORKS:
                outcome.status = INVALID
                outcome.notes.append(
                    f'with these {outcome.seeds} seeds, random transforms removed the invalid labels: try more --seeds'
                )
            else:
                outcome.notes.append(f'the files hold {hidden}, but the pipeline removes them')
        if sample.mixes:
            outcome.notes.append('other images are mixed in: the failure may be in one of them')
        if outcome.fails and outcome.stage != 'pipeline':
            names = find_class_names(sample.dataset)
            found = self._find_causes(outcome.invalid, names, outcome)
            sure = [finding for finding in found if finding.certainty != POSSIBLE]
            outcome.findings = (sure or found)[:_MOST_FINDINGS]

    def _find_causes(self, invalid: Dict[str, InvalidLabels], names: List[str], outcome: Outcome) -> List[Finding]:
        # Without an invalid label, the config may still mistreat valid ones.
        asked = list(invalid.values()) or list(outcome.trained.values())
        found: List[Finding] = []
        for judged in asked:
            facts = LabelFacts(
                values=dict(judged.tally.values),
                num_classes=judged.num_classes,
                ignore_index=judged.ignore_index,
                total=judged.tally.total,
                files=1,
                offending_files=int(judged.is_invalid),
                kind=judged.kind,
                reasons=dict(judged.tally.reasons),
                class_names=names,
                split='train',
            )
            rules = [rule for rule in select_rules() if rule is not OwnLineFails]  # the crashed run had built them
            found += [one for one in diagnose(facts, self._config, rules) if one.severity == 'error']
        return sorted(found, key=sort_key)
