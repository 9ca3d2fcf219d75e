"""What one iteration brought, and what a whole loop added up to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List

from mmguard.tally import Tally, merge_by_source

#: Scalars, in the fixed order in which ranks add them up.
SCALARS = (
    'skipped_pixels',
    'remapped_pixels',
    'skipped_instances',
    'remapped_instances',
    'loss_skipped',
    'loss_remapped',
)
#: What else is added up over ranks, behind the scalars.
SEEN = ('pixels', 'instances', 'loss_elements')


@dataclass
class LossCount:
    """Label elements that a guarded loss saw, skipped and remapped."""

    seen: int = 0
    skipped: int = 0
    remapped: int = 0

    def __bool__(self) -> bool:
        return bool(self.skipped or self.remapped)

    def __add__(self, other: LossCount) -> LossCount:
        return LossCount(self.seen + other.seen, self.skipped + other.skipped, self.remapped + other.remapped)


@dataclass
class Span:
    """The counts of one iteration, or of several between two reports.

    Args:
        samples (int): Images seen.
        pixels, instances (Tally): Sums over all images.
        offending (list[Tally]): Tallies of single images with something skipped or remapped, in batch order.
        losses (dict[str, LossCount]): Guarded loss -> its counts.
        loss_samples (list[Tally]): Where the pipeline reports nothing: images whose labels a loss had to mend.
    """

    samples: int = 0
    pixels: Tally = field(default_factory=Tally)
    instances: Tally = field(default_factory=Tally)
    offending: List[Tally] = field(default_factory=list)
    losses: Dict[str, LossCount] = field(default_factory=dict)
    loss_samples: List[Tally] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.offending) or any(self.losses.values())

    def see(self, record: Dict[str, Tally]) -> None:
        """Adds the record that a sample carries."""
        for kind, tally in record.items():
            total = self.pixels if kind == 'pixels' else self.instances
            total.total += tally.total
            if tally:
                total.skipped += tally.skipped
                total.remapped += tally.remapped
                self.offending.append(tally)

    def vector(self) -> List[int]:
        """The numbers that ranks add up: ``SCALARS``, then ``SEEN``."""
        loss = sum(self.losses.values(), LossCount())
        return [
            self.pixels.skipped,
            self.pixels.remapped,
            self.instances.skipped,
            self.instances.remapped,
            loss.skipped,
            loss.remapped,
            self.pixels.total,
            self.instances.total,
            loss.seen,
        ]

    def to_json(self, roots: List[str], name: Any) -> Dict[str, Any]:
        """The fields of a line of the log; ``name(source, roots)`` shortens a path."""

        def sample(tally: Tally) -> Dict[str, Any]:
            line = tally.to_json()
            line.pop('total')
            line['source'] = None if tally.source is None else name(tally.source, roots)
            return line

        record: Dict[str, Any] = {
            'skipped_pixels': self.pixels.skipped,
            'remapped_pixels': self.pixels.remapped,
            'skipped_instances': self.instances.skipped,
            'remapped_instances': self.instances.remapped,
            'total': self.pixels.total,
            'samples': [sample(tally) for tally in self.offending],
            'losses': {
                loss: {'skipped': count.skipped, 'remapped': count.remapped} for loss, count in self.losses.items()
            },
        }
        if self.loss_samples:
            record['loss_samples'] = [sample(tally) for tally in self.loss_samples]
        return record


@dataclass
class Ledger:
    """A whole loop: totals, and every offending file with its counts."""

    samples: int = 0
    iterations: int = 0
    offending_iterations: int = 0
    pixels: Tally = field(default_factory=Tally)
    instances: Tally = field(default_factory=Tally)
    files: Dict[Any, Tally] = field(default_factory=dict)
    sources: Dict[str, None] = field(default_factory=dict)
    losses: Dict[str, LossCount] = field(default_factory=dict)
    #: The running sums over all ranks, in the order of ``Span.vector``.
    everywhere: List[int] = field(default_factory=lambda: [0] * (len(SCALARS) + len(SEEN)))

    def add(self, span: Span) -> None:
        self.samples += span.samples
        self.pixels = _total(self.pixels, span.pixels)
        self.instances = _total(self.instances, span.instances)
        for tally in span.offending + span.loss_samples:
            seen = self.files.get(tally.source)
            self.files[tally.source] = tally if seen is None else seen + tally
        for name, count in span.losses.items():
            self.losses[name] = self.losses.get(name, LossCount()) + count

    def values(self) -> Dict[int, int]:
        """Invalid value -> count over all files."""
        return sum(merge_by_source(self.files.values()).values(), Tally()).values

    def skipped_ratio(self) -> float:
        """The larger of the share of skipped pixels, instances and loss elements, over all ranks."""
        pixels, _, instances, _, loss, _, all_pixels, all_instances, all_loss = self.everywhere
        parts = ((pixels, all_pixels), (instances, all_instances), (loss, all_loss))
        return max(part / whole if whole else 0.0 for part, whole in parts)


def _total(left: Tally, right: Tally) -> Tally:
    return Tally(left.total + right.total, left.skipped + right.skipped, left.remapped + right.remapped)
