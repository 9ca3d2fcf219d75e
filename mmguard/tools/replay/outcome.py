"""Result of replaying a sample: errors, and the invalid labels at each stage of its pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional

import numpy as np

from mmguard.errors import CannotRun
from mmguard.findings import Finding
from mmguard.findings.messages import unpack
from mmguard.labels.instances import BOX_REASONS, InstanceRule, describe_reasons, find_corner_faults
from mmguard.labels.rules import BaseRule, LabelRule
from mmguard.labels.tally import UNKNOWN, Tally
from mmguard.log.flight_record import NAME, Flight, FlightBatch, FlightSample, read_flight
from mmguard.tools.replay.network import Pass, ReplayException
from mmguard.tools.trace.snapshot import Snapshot

_INF = float('inf')
#: Outcomes of a sample; the first ones are failures.
DIES, NOT_FINITE, INVALID, PASSES, LEFT_OUT, NOT_FOUND, OUR_FAILURE = (
    'dies',
    'not finite',
    'invalid labels',
    'passes',
    'left out',
    'not found',
    'mmguard failed',
)
FAILURES = (DIES, NOT_FINITE, INVALID)


@dataclass
class InvalidLabels:
    """Counts of invalid pixels or instances in a sample, and the first of these instances."""

    kind: str
    num_classes: int
    ignore_index: Optional[int]
    tally: Tally
    examples: List[str] = field(default_factory=list)

    @property
    def is_invalid(self) -> bool:
        return bool(self.tally.values or self.tally.reasons)

    def __str__(self) -> str:
        ignored = '' if self.ignore_index is None else f' or {self.ignore_index} (ignored)'
        shown = f'; {", ".join(self.examples)}' if self.examples else ''
        return f'{describe_reasons(self.tally)}; valid labels are 0..{self.num_classes - 1}{ignored}{shown}'


def judge(snapshot: Snapshot, spaces: Mapping[str, BaseRule], source: str) -> Dict[str, InvalidLabels]:
    """Return kind -> invalid labels in a sample, for the kinds that it contains."""
    judged: Dict[str, InvalidLabels] = {}
    pixels, instances = spaces.get('pixels'), spaces.get('instances')
    if isinstance(pixels, LabelRule) and snapshot.label is not None:
        label = snapshot.label
        if label.dtype.kind == 'f':  # the loss also truncates fractions, or refuses them itself
            label = np.nan_to_num(label, nan=-1, posinf=2**31, neginf=-(2**31)).astype(np.int64)
        judged['pixels'] = InvalidLabels(
            'pixels', pixels.num_classes, pixels.ignore_index, pixels.sanitize(label, source)[1]
        )
    if isinstance(instances, InstanceRule) and snapshot.instances is not None:
        judged['instances'] = _judge_instances(snapshot, instances, source)
    return judged


def _judge_instances(snapshot: Snapshot, rule: InstanceRule, source: str) -> InvalidLabels:
    found = snapshot.instances or []
    labels = np.array([instance.label for instance in found], dtype=np.int64)
    ignored = np.array([instance.ignored for instance in found], dtype=bool)
    boxes = np.array([instance.box for instance in found], dtype=np.float64).reshape(-1, 4)
    faults = find_corner_faults(boxes, snapshot.size or (_INF, _INF))
    tally = rule.sanitize(labels, ignored, faults, source).tally
    examples = []
    for instance, fault in zip(found, faults.tolist()):
        invalid = not instance.ignored and not rule.min_label <= instance.label < rule.num_classes
        if fault or invalid:
            examples.append(f'{instance} ({BOX_REASONS[fault].replace("_", " ")})' if fault else str(instance))
    return InvalidLabels('instances', rule.num_classes, None, tally, examples[:3])


@dataclass
class Outcome:
    """Result of replaying one sample.

    Args:
        recorded (RecordedSample): The sample in the record.
        path (str): Its file here; empty if it is not found.
        status (str): ``DIES``, ``NOT_FINITE``, ... of this module.
        loaded (dict[str, InvalidLabels]): Kind -> invalid labels after the loading steps of the pipeline, uncropped.
        trained (dict[str, InvalidLabels]): The same after the whole pipeline, as the losses see them.
        raised (ReplayException, optional): The exception that ended it.
        stage (str): Where it was raised, ``'pipeline'`` or ``'forward'``.
        run (Pass): Losses and gradients of the last seed.
        warnings (list[str]): Warnings that were raised.
        notes (list[str]): Remarks.
        seeds (int): Number of seeds that were tried.
        seed (int): The last seed.
        findings (list[Finding]): Likely causes, the most likely first.
    """

    recorded: RecordedSample
    path: str = ''
    status: str = PASSES
    loaded: Dict[str, InvalidLabels] = field(default_factory=dict)
    trained: Dict[str, InvalidLabels] = field(default_factory=dict)
    raised: Optional[ReplayException] = None
    stage: str = ''
    run: Pass = field(default_factory=Pass)
    warnings: List[str] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)
    seeds: int = 0
    seed: int = 0
    findings: List[Finding] = field(default_factory=list)

    def die(self, stage: str, exception: ReplayException) -> None:
        """End the replay with an exception in a stage; one from mmguard itself says nothing about the sample."""
        self.status, self.stage, self.raised = (OUR_FAILURE if exception.own else DIES), stage, exception

    @property
    def fails(self) -> bool:
        return self.status in FAILURES

    @property
    def invalid(self) -> Dict[str, InvalidLabels]:
        """Kind -> invalid labels as seen in training; if random transforms hid them, as loaded."""
        seen = {kind: judged for kind, judged in self.trained.items() if judged.is_invalid}
        hidden = {kind: judged for kind, judged in self.loaded.items() if judged.is_invalid}
        return seen or (hidden if self.status == INVALID else {})

    def to_json(self) -> Dict[str, Any]:
        """Return plain data; non-finite numbers become text."""
        return {
            'source': self.recorded.source,
            'recorded_path': self.recorded.path,
            'path': self.path,
            'iter': self.recorded.iteration,
            'unfinished_batch': self.recorded.unfinished,
            'status': self.status,
            'fails': self.fails,
            'loaded': _convert_counts(self.loaded),
            'trained': _convert_counts(self.trained),
            'exception': None if self.raised is None else {**vars(self.raised), 'stage': self.stage},
            'losses': {name: value if abs(value) < _INF else str(value) for name, value in self.run.losses.items()},
            'nonfinite_losses': self.run.nonfinite_losses,
            'nonfinite_gradients': self.run.nonfinite_gradients,
            'warnings': self.warnings,
            'notes': self.notes,
            'seeds': self.seeds,
            'seed': self.seed,
            'causes': [unpack(finding) for finding in self.findings],
        }


def _convert_counts(invalid: Dict[str, InvalidLabels]) -> Dict[str, Any]:
    return {
        kind: {
            'values': {str(value): count for value, count in one.tally.values.items()},
            'reasons': dict(one.tally.reasons),
            'total': one.tally.total,
            'num_classes': one.num_classes,
            'ignore_index': one.ignore_index,
        }
        for kind, one in invalid.items()
    }


@dataclass(frozen=True)
class RecordedSample:
    """A sample of a recorded batch: original path, path in the data root; ``unfinished``: its iteration did not end."""

    path: str
    source: str
    iteration: Optional[int] = None
    unfinished: bool = False


def load_record(file: str) -> Flight:
    """Read a flight record."""
    try:
        return read_flight(file)
    except OSError as error:
        raise CannotRun(
            f'{file}: {error.strerror or error}. Give the {NAME} that FlightRecorderHook writes into the log '
            f'folder of a run'
        ) from error
    except ValueError as error:
        raise CannotRun(str(error)) from error


def read_batches(flight: Flight, file: str) -> List[List[RecordedSample]]:
    """Return the batches of a record, the newest first; the samples of each in order, without repetitions."""
    batches = [batch for batch in reversed(flight.batches) if batch.samples]
    if not batches:
        raise CannotRun(
            '; '.join(
                [
                    f'{file}: no batch is recorded. Training ended before the first one was loaded: '
                    f'{describe_exception(flight) or flight.reason}',
                    *flight.unread.list_messages(),
                ]
            )
        )
    return [list(dict.fromkeys(_read_sample(sample, batch) for sample in batch.samples)) for batch in batches]


def _read_sample(sample: FlightSample, batch: FlightBatch) -> RecordedSample:
    path = sample.path or sample.source or UNKNOWN
    return RecordedSample(path, sample.source or path, batch.iter, batch.losses is None)


def describe_exception(flight: Flight) -> str:
    """Return the exception that ended the training on one line; empty if the record has none."""
    error = flight.exception
    return '' if error is None else f'{error.type}: {" ".join(error.message.split())[:300]}'
