"""What one iteration brought, and what a whole loop added up to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Set

from mmengine.structures import BaseDataElement

from mmguard.hooks.discovery import relative_to, source_of
from mmguard.tally import LABEL_GUARD, Tally

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
        iterations (int): Iterations seen.
        offending_iterations (int): Those with something skipped or remapped.
        samples (int): Images seen.
        offending_samples (int): Those with something skipped or remapped.
        pixels, instances (Tally): Sums over all images.
        offending (list[Tally]): Tallies of single images with something skipped or remapped, in batch order.
        losses (dict[str, LossCount]): Guarded loss -> its counts.
        loss_samples (list[Tally]): Images whose labels a loss had to mend, because no guard in the pipeline did.
    """

    iterations: int = 0
    offending_iterations: int = 0
    samples: int = 0
    offending_samples: int = 0
    pixels: Tally = field(default_factory=Tally)
    instances: Tally = field(default_factory=Tally)
    offending: List[Tally] = field(default_factory=list)
    losses: Dict[str, LossCount] = field(default_factory=dict)
    loss_samples: List[Tally] = field(default_factory=list)

    @classmethod
    def of(cls, samples: Iterable[BaseDataElement]) -> Span:
        """What the guards in the pipeline left in the samples of one iteration."""
        span = cls(iterations=1)
        for sample in samples:
            span.samples += 1
            record: Dict[str, Tally] = sample.get(LABEL_GUARD) or {}
            for kind, tally in record.items():
                total = span.pixels if kind == 'pixels' else span.instances
                total.total += tally.total
                if tally:
                    total.skipped += tally.skipped
                    total.remapped += tally.remapped
                    span.offending.append(tally)
            span.offending_samples += any(record.values())
        span.offending_iterations = int(bool(span))
        return span

    def __bool__(self) -> bool:
        """Whether anything was skipped or remapped."""
        return bool(self.offending) or any(self.losses.values())

    def see_losses(self, losses: Dict[str, LossCount], samples: List[Tally]) -> None:
        """Adds what the guarded losses counted in this iteration, and the images that it came from."""
        self.losses = losses
        self.loss_samples = samples
        self.offending_samples = max(self.offending_samples, len(samples))
        self.offending_iterations = int(bool(self))

    def add(self, other: Span) -> None:
        """Adds a later iteration."""
        self.iterations += other.iterations
        self.offending_iterations += other.offending_iterations
        self.samples += other.samples
        self.offending_samples += other.offending_samples
        self.pixels = _total(self.pixels, other.pixels)
        self.instances = _total(self.instances, other.instances)
        self.offending += other.offending
        self.losses = _added(self.losses, other.losses)
        self.loss_samples += other.loss_samples

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

    def to_json(self, shorten: Callable[[str], str]) -> Dict[str, Any]:
        """The fields of a line of the log; ``shorten`` is applied to paths."""

        def sample(tally: Tally) -> Dict[str, Any]:
            line = tally.to_json()
            line.pop('total')
            line['source'] = None if tally.source is None else shorten(str(tally.source))
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
    """A whole loop: totals, and every offending file with its counts.

    Args:
        roots (list[str]): Data roots; paths are shown relative to them.
        pending (Span): What was seen since the last report; not yet in the numbers below.
    """

    roots: List[str] = field(default_factory=list)
    pending: Span = field(default_factory=Span)
    iterations: int = 0
    offending_iterations: int = 0
    pixels: Tally = field(default_factory=Tally)
    instances: Tally = field(default_factory=Tally)
    files: Dict[Any, Tally] = field(default_factory=dict)
    sources: Set[str] = field(default_factory=set)
    losses: Dict[str, LossCount] = field(default_factory=dict)
    #: The running sums over all ranks, in the order of ``Span.vector``.
    everywhere: List[int] = field(default_factory=lambda: [0] * (len(SCALARS) + len(SEEN)))

    def see(self, samples: List[BaseDataElement]) -> Span:
        """Makes the span of one iteration, and remembers its files."""
        self.sources.update(map(source_of, samples))
        return Span.of(samples)

    def take_pending(self) -> Span:
        """Moves what is pending into the totals, and returns it."""
        span, self.pending = self.pending, Span()
        self.iterations += span.iterations
        self.offending_iterations += span.offending_iterations
        self.pixels = _total(self.pixels, span.pixels)
        self.instances = _total(self.instances, span.instances)
        for tally in span.offending + span.loss_samples:
            seen = self.files.get(tally.source)
            self.files[tally.source] = tally if seen is None else seen + tally
        self.losses = _added(self.losses, span.losses)
        return span

    def add_everywhere(self, numbers: List[int]) -> None:
        """Adds the sums over all ranks of a ``Span.vector``."""
        self.everywhere = [a + b for a, b in zip(self.everywhere, numbers)]

    def shorten(self, source: str) -> str:
        return relative_to(source, self.roots)

    def values(self) -> Dict[int, int]:
        """Invalid value -> count over all files."""
        return sum(self.files.values(), Tally()).values

    def skipped_ratio(self) -> float:
        """The larger of the share of skipped pixels, instances and loss elements, over all ranks."""
        pixels, _, instances, _, loss, _, all_pixels, all_instances, all_loss = self.everywhere
        parts = ((pixels, all_pixels), (instances, all_instances), (loss, all_loss))
        return max(part / whole if whole else 0.0 for part, whole in parts)


def _total(left: Tally, right: Tally) -> Tally:
    return Tally(left.total + right.total, left.skipped + right.skipped, left.remapped + right.remapped)


def _added(left: Dict[str, LossCount], right: Dict[str, LossCount]) -> Dict[str, LossCount]:
    added = dict(left)
    for name, count in right.items():
        added[name] = added.get(name, LossCount()) + count
    return added
