"""Search for the sample of a flight record that raises an exception."""

from __future__ import annotations

import argparse
import copy
import math
import os
import re
import traceback
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

import torch
from mmengine.dataset import pseudo_collate

from mmguard.commands.samples import Sample, Samples, build_dataset, get_random_state, load_config, open_program
from mmguard.commands.spinner import Spinner
from mmguard.config.read import ReadConfig, from_mmengine
from mmguard.errors import CannotRun
from mmguard.findings import DataRule, Finding, LabelFacts, diagnose, select_rules
from mmguard.findings.messages import unpack
from mmguard.hooks.discovery import find_offending, find_samples
from mmguard.labels.spaces import LabelSpaces
from mmguard.labels.tally import UNKNOWN
from mmguard.log.flight_record import Flight, FlightBatch, read_flight
from mmguard.log.statistics import ByKind, group_tallies
from mmguard.properties.datasets import seed_all
from mmguard.text import describe_error, find_own_failure, quantity, shorten_list

#: Outcomes of a sample; ``LEFT_OUT`` is a sample that the pipeline drops.
PASSES, RAISES, LEFT_OUT, NOT_FOUND = 'passes', 'raises', 'left out', 'not found'
#: Pattern of files of low-level libraries, in which the displayed line of an exception is not searched.
_BELOW = re.compile(r'-packages/(?:torch|numpy|mmcv|mmengine|PIL|cv2)/|^<')
#: Maximum number of listed samples, and of listed causes.
_LINES, _CAUSES = 50, 2


@dataclass
class ReplayedSample:
    """Result of replaying one sample."""

    path: str  #: Path of the sample on this machine, or if it was not found, its path in the record.
    iter: Optional[int] = None  #: Iteration, counted as on the console.
    status: str = PASSES  #: ``PASSES``, ``RAISES``, ``LEFT_OUT`` or ``NOT_FOUND``.
    error: str = ''  #: Exception in one line, or why the sample was not found.
    place: str = ''  #: Line that raised, ``'/site-packages/mmseg/models/losses/x.py:45 in forward'``.
    seed: int = 0  #: Seed of the last run.

    def __str__(self) -> str:
        where = '' if self.iter is None else f' (iteration {self.iter})'
        error = f': {self.error}' if self.error else ''
        place = f' ({self.place})' if self.place else ''
        return f'{self.status}: {self.path}{where}{error}{place}'


@dataclass
class Replay:
    """Results of all samples, the newest batch first, and likely causes in the labels of the samples that raise."""

    file: str  #: Path of the flight record.
    flight: Flight  #: Contents of the flight record.
    samples: List[ReplayedSample] = field(default_factory=list)  #: Results, the newest batch first.
    findings: List[Finding] = field(default_factory=list)  #: Likely causes.
    older: int = 0  #: Number of batches that were not replayed.

    def select(self, *statuses: str) -> List[ReplayedSample]:
        """Return the samples with one of these outcomes."""
        return [sample for sample in self.samples if sample.status in statuses]

    def list_lines(self) -> List[str]:
        """Return lines about the end of the training, the samples that do not pass, and how many samples raise."""
        flight, raising, missing = self.flight, self.select(RAISES), self.select(NOT_FOUND)
        place = 'its start' if flight.iter is None else f'iteration {flight.iter}'
        others = [*map(str, raising), *map(str, self.select(LEFT_OUT, NOT_FOUND))]
        number = quantity(len(self.samples) - len(missing), 'replayed sample')
        lines = [
            f'{self.file}: rank {flight.rank} reached {place}: {flight.error or flight.reason}',
            *flight.unread.list_messages(),
            *shorten_list(others, _LINES),
            f'raise an exception: {len(raising)} of {number}',
        ]
        if missing:
            lines.append(f'not found here: {quantity(len(missing), "sample")}; one of them may be the cause')
        elif not raising:
            untried = 'more random crops (--seeds 20), trained weights, half precision, GPU memory, several ranks'
            lines.append(f'Not tried: {untried}.')
        if self.older:
            lines.append(f'not replayed: {quantity(self.older, "older batch")}; --last N replays N batches')
        return lines

    def to_json(self) -> Dict[str, Any]:
        """Return the result as plain data for ``--json``."""
        return {
            'file': self.file,
            'rank': self.flight.rank,
            'iter': self.flight.iter,
            'reason': self.flight.reason,
            'exception': self.flight.error,
            'samples': [vars(sample) for sample in self.samples],
            'failing': list(dict.fromkeys(sample.path for sample in self.select(RAISES))),
            'not_found': [sample.path for sample in self.select(NOT_FOUND)],
            'causes': [unpack(finding) for finding in self.findings],
            'older_batches': self.older,
        }


def replay(spinner: Spinner, args: argparse.Namespace) -> Replay:
    """Replay the samples of a flight record with the options of the command line."""
    try:
        flight = read_flight(args.record)
    except ValueError as error:
        raise CannotRun(str(error)) from error
    batches = [batch for batch in reversed(flight.batches) if batch.samples]
    if not batches:
        ended = [flight.error or flight.reason, *flight.unread.list_messages()]
        raise CannotRun(f'{args.record}: no batch is recorded, training ended before the first one: {"; ".join(ended)}')
    config = load_config(args.config, args.run_code)
    program = open_program(config)
    dataset = build_dataset(program)
    try:
        model = program.build_model()  # with random weights, always the same
    except Exception as error:
        raise CannotRun(f'{args.config}: the model cannot be built on the CPU: {describe_error(error)}') from error
    replayer = Replayer(Samples(dataset), model, program.find_spaces(), args.seeds)
    replayed = Replay(args.record, flight)
    with program.scope():
        for number, batch in enumerate(batches[: args.last], start=1):
            spinner.text = f'{quantity(len(batch.samples), "sample")} of iteration {batch.iter}'
            replayed.samples += replayer.replay_batch(batch)
            replayed.older = len(batches) - number
            if args.last is None and replayed.select(RAISES):
                break
    if len(replayed.select(NOT_FOUND)) == len(replayed.samples):
        missing = f'none of the {len(replayed.samples)} recorded samples is in the data set'
        raise CannotRun(f'{missing}: {replayed.samples[0].error}')
    replayed.findings = replayer.find_causes(from_mmengine(config))
    return replayed


class Replayer:
    """Runner of single samples, which runs a random pipeline once for each of ``seeds`` seeds."""

    def __init__(self, samples: Samples, model: Any, spaces: LabelSpaces, seeds: int) -> None:
        self._samples, self._model, self._spaces, self._seeds = samples, model, spaces, seeds
        self._offending: ByKind = group_tallies()

    def replay_batch(self, batch: FlightBatch) -> List[ReplayedSample]:
        """Replay each sample of a batch once, even if it occurs twice in the batch."""
        replayed = []
        for path in dict.fromkeys(sample.path or UNKNOWN for sample in batch.samples):
            try:
                here, found = self._samples.find(path)
            except CannotRun as error:
                replayed.append(ReplayedSample(path, batch.iter, NOT_FOUND, str(error)))
                continue
            for sample in found:
                replayed.append(ReplayedSample(here, batch.iter))
                self._replay(sample, replayed[-1])
        return replayed

    def _replay(self, sample: Sample, replayed: ReplayedSample) -> None:
        """Replay a sample, and stop at the first seed with which it raises."""
        replayed.status = LEFT_OUT
        for seed in range(self._seeds):
            seed_all(seed)
            before, packed, replayed.seed = get_random_state(), None, seed
            try:
                packed = sample.load()
                is_random = get_random_state() != before
                if packed is not None:
                    replayed.status = PASSES
                    run_sample(self._model, packed, seed)
            except Exception as error:
                if find_own_failure(error):
                    raise
                replayed.status, replayed.error, replayed.place = RAISES, describe_error(error), find_place(error)
                for kind, tallies in find_offending(find_samples(packed), self._spaces.to_dict()).items():
                    self._offending[kind] += tallies
                return
            if not is_random:
                return

    def find_causes(self, config: ReadConfig) -> List[Finding]:
        """Find the likely causes in the labels of the samples that raised."""
        findings: List[Finding] = []
        for kind, tallies in self._offending.items():
            space = self._spaces.get(kind)
            if space is not None and tallies:
                facts = LabelFacts.from_tallies(
                    tallies,
                    kind,
                    num_classes=space.num_classes,
                    ignore_index=space.ignore_index,
                    files=len(tallies),
                    class_names=list(self._spaces.names),
                    split='train',
                )
                findings += diagnose(facts, config, [rule for rule in select_rules() if issubclass(rule, DataRule)])
        return [finding for finding in findings if finding.severity == 'error'][:_CAUSES]


def run_sample(model: Any, packed: Any, seed: int) -> None:
    """Train a copy of a model on a batch of two copies of a packed sample, as batch norm may fail for one.

    Raises:
        FloatingPointError: A loss is not finite.
        Exception: Anything that the model raises.
    """
    model = copy.deepcopy(model).train()
    torch.manual_seed(seed)
    data = model.data_preprocessor(pseudo_collate([copy.deepcopy(packed) for _ in range(2)]), True)
    total, logged = model.parse_losses(model(**data, mode='loss'))
    losses = {name: float(value) for name, value in logged.items()}
    wrong = [name for name, value in losses.items() if 'loss' in name and not math.isfinite(value)]
    if wrong:
        # Name the total only if all of its parts are finite.
        named = [name for name in wrong if name != 'loss'] or wrong
        raise FloatingPointError(', '.join(f'{name} is {losses[name]}' for name in named))
    if total.requires_grad:
        total.backward()


def find_place(error: BaseException) -> str:
    """Return the innermost line in a framework or the user's code, as ``'file:45 in forward'``; '' without one."""
    frames = traceback.extract_tb(error.__traceback__)
    above = [f for f in frames if f.filename != __file__ and not _BELOW.search(f.filename.replace(os.sep, '/'))]
    return f'{above[-1].filename}:{above[-1].lineno} in {above[-1].name}' if above else ''
