"""What replaying one sample brought."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from mmguard.findings import Finding
from mmguard.findings.wording import unpack
from mmguard.tools.replay.forward import Raised
from mmguard.tools.replay.labels import Judged
from mmguard.tools.replay.recorded import Recorded

#: What may become of a sample; the first ones fail.
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
class Outcome:
    """What replaying one sample brought.

    Args:
        recorded (Recorded): The sample in the record.
        path (str): Its file here; empty where it is not found.
        status (str): One of the words above.
        stored (dict[str, Judged]): Kind -> what is invalid in the file or the annotations, as they are stored.
        loaded (dict[str, Judged]): The same behind the loading steps of the pipeline: values mapped, nothing cropped.
        trained (dict[str, Judged]): The same behind the whole pipeline: what the losses see.
        raised (Raised, optional): The exception that it ends by.
        stage (str): Where that is, ``'pipeline'`` or ``'forward'``.
        losses (dict[str, float]): As logged.
        nonfinite_losses, nonfinite_gradients (list[str]): Losses, and parameters.
        warnings (list[str]): That were raised on the way.
        notes (list[str]): What else is to be known.
        seeds (int): How many were tried.
        seed (int): The last of them.
        findings (list[Finding]): Likely causes, the most likely first.
    """

    recorded: Recorded
    path: str = ''
    status: str = PASSES
    stored: Dict[str, Judged] = field(default_factory=dict)
    loaded: Dict[str, Judged] = field(default_factory=dict)
    trained: Dict[str, Judged] = field(default_factory=dict)
    raised: Optional[Raised] = None
    stage: str = ''
    losses: Dict[str, float] = field(default_factory=dict)
    nonfinite_losses: List[str] = field(default_factory=list)
    nonfinite_gradients: List[str] = field(default_factory=list)
    warnings: List[str] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)
    seeds: int = 0
    seed: int = 0
    findings: List[Finding] = field(default_factory=list)

    def die(self, stage: str, raised: Raised) -> None:
        """It ends by an exception in a stage; where that came up in mmguard itself, it says nothing of the sample."""
        self.status, self.stage, self.raised = (OUR_FAILURE if raised.own else DIES), stage, raised

    @property
    def fails(self) -> bool:
        return self.status in FAILURES

    @property
    def invalid(self) -> Dict[str, Judged]:
        """Kind -> what training sees of invalid labels; where random transforms hid them, what was loaded."""
        seen = {kind: judged for kind, judged in self.trained.items() if judged.is_invalid}
        hidden = {kind: judged for kind, judged in self.loaded.items() if judged.is_invalid}
        return seen or (hidden if self.status == INVALID else {})

    def to_json(self) -> Dict[str, Any]:
        """As plain data; what is not finite is text."""
        return {
            'source': self.recorded.source,
            'recorded_path': self.recorded.path,
            'path': self.path,
            'iter': self.recorded.iteration,
            'unfinished_batch': self.recorded.unfinished,
            'status': self.status,
            'fails': self.fails,
            'stored': _counts(self.stored),
            'loaded': _counts(self.loaded),
            'trained': _counts(self.trained),
            'exception': None if self.raised is None else {**vars(self.raised), 'stage': self.stage},
            'losses': {name: value if abs(value) < float('inf') else str(value) for name, value in self.losses.items()},
            'nonfinite_losses': self.nonfinite_losses,
            'nonfinite_gradients': self.nonfinite_gradients,
            'warnings': self.warnings,
            'notes': self.notes,
            'seeds': self.seeds,
            'seed': self.seed,
            'causes': [unpack(finding) for finding in self.findings],
        }


def _counts(judged: Dict[str, Judged]) -> Dict[str, Any]:
    return {
        kind: {
            'values': {str(value): count for value, count in one.tally.values.items()},
            'reasons': dict(one.tally.reasons),
            'total': one.tally.total,
            'num_classes': one.num_classes,
            'ignore_index': one.ignore_index,
        }
        for kind, one in judged.items()
    }
