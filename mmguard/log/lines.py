"""The lines of a training's ``label_guard.jsonl``: what of them can be understood."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterator, List, Optional

from mmguard.files.regular import open_regular
from mmguard.files.typed_json import Rank
from mmguard.labels.tally import Tally
from mmguard.log.line_reader import Unread, read_lines
from mmguard.log.source import UNKNOWN
from mmguard.log.totals import LossCount


@dataclass
class FoundIn(Tally):
    """What was found in a file; of which ``kind``, another version may know more."""

    kind: str = 'pixels'

    def __post_init__(self) -> None:
        super().__post_init__()
        self.source = self.source or UNKNOWN


@dataclass
class FilledRank:
    """A rank that lacked losses in an iteration, and trained with zeros in their place."""

    rank: Rank
    losses: List[str] = field(default_factory=list)
    samples: List[str] = field(default_factory=list)


@dataclass
class Line:
    """One iteration that had something skipped or remapped, as ``Span.to_json`` writes it.

    Args:
        mode (str): ``'train'``, ``'val'`` or ``'test'``.
        iter (int): As the console counts.
        step (int, optional): Of a validation: the iteration of the training.
        samples, loss_samples (list[FoundIn]): What was found in single files, by the pipeline or by a loss.
        losses (dict[str, LossCount]): Guarded loss -> what it skipped and remapped.
        empty_images (int): Images without any instance.
        filled (list[FilledRank]): Ranks that lacked losses; a line of its own, without any counts.
    """

    mode: str
    iter: int
    step: Optional[int] = None
    total: int = 0
    skipped_pixels: int = 0
    remapped_pixels: int = 0
    total_instances: int = 0
    skipped_instances: int = 0
    remapped_instances: int = 0
    reasons: Dict[str, int] = field(default_factory=dict)
    samples: List[FoundIn] = field(default_factory=list)
    loss_samples: List[FoundIn] = field(default_factory=list)
    losses: Dict[str, LossCount] = field(default_factory=dict)
    empty_images: int = 0
    filled: List[FilledRank] = field(default_factory=list)

    @property
    def place(self) -> int:
        """The iteration since the start of the training; of a test, the iteration."""
        return self.iter if self.step is None else self.step

    @property
    def kinds(self) -> Dict[str, Tally]:
        """Kind -> the sum over the images."""
        return {
            'pixels': Tally(self.total, self.skipped_pixels, self.remapped_pixels),
            'instances': Tally(
                self.total_instances, self.skipped_instances, self.remapped_instances, reasons=self.reasons
            ),
        }

    def found(self, kind: str) -> List[FoundIn]:
        """In single files."""
        return [sample for sample in (*self.samples, *self.loss_samples) if sample.kind == kind]


def read_logs(paths: List[Path], unread: Unread) -> Iterator[Line]:
    """The lines of all files, one after the other; what cannot be understood is noted in ``unread``."""
    for path in paths:
        try:
            with open_regular(path) as file:
                yield from read_lines(file, str(path), Line, unread)
        except OSError as error:
            unread.add(str(path), error.strerror or error)
