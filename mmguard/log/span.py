"""What one iteration brought, or several between two reports."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Sequence

from mmguard.labels.maps import packed_instances
from mmguard.labels.tally import Tally, tallies_of
from mmguard.log.totals import KINDS, LossCount, added

if TYPE_CHECKING:  # without mmengine a span serves other trainers, and `mmguard report`
    from mmengine.structures import BaseDataElement

#: Scalars, in the fixed order in which ranks add them up.
SCALARS = (
    'skipped_pixels',
    'remapped_pixels',
    'skipped_instances',
    'remapped_instances',
    'loss_skipped',
    'loss_remapped',
    'mapped_pixels',
    'empty_images',
)
#: What else is added up over ranks, behind the scalars.
SEEN = ('pixels', 'instances', 'loss_elements')

#: Kind -> tallies of single images.
ByKind = Dict[str, List[Tally]]


def by_kind(pixels: Sequence[Tally] = (), instances: Sequence[Tally] = ()) -> ByKind:
    """Kind -> tallies."""
    return {'pixels': list(pixels), 'instances': list(instances)}


@dataclass
class Span:
    """The counts of one iteration, or of several between two reports.

    Args:
        iterations (int): Iterations seen.
        offending_iterations (int): Those with something skipped or remapped.
        samples (int): Images seen.
        offending_samples (int): Those with something skipped or remapped.
        pixels, instances (Tally): Sums over all images, without their values and sources.
        offending (dict[str, list[Tally]]): Kind -> tallies of single images with something skipped or remapped, in
            batch order.
        losses (dict[str, LossCount]): Guarded loss -> its counts.
        loss_samples (dict[str, list[Tally]]): Images whose labels a loss had to sanitize, because no guard in the
            pipeline did.
        empty_images (int): Images without any instance to train on, be they annotated so or emptied by a guard.
    """

    iterations: int = 0
    offending_iterations: int = 0
    samples: int = 0
    offending_samples: int = 0
    pixels: Tally = field(default_factory=Tally)
    instances: Tally = field(default_factory=Tally)
    offending: ByKind = field(default_factory=by_kind)
    losses: Dict[str, LossCount] = field(default_factory=dict)
    loss_samples: ByKind = field(default_factory=by_kind)
    empty_images: int = 0

    @classmethod
    def of(cls, samples: Iterable[BaseDataElement]) -> Span:
        """What the guards in the pipeline left in the samples of one iteration."""
        span = cls(iterations=1)
        for sample in samples:
            span.samples += 1
            tallies = tallies_of(sample)
            for kind, tally in tallies.items():
                total = span.pixels if kind == 'pixels' else span.instances
                total.total += tally.total
                total.mapped += tally.mapped
                if tally:
                    total.skipped += tally.skipped
                    total.remapped += tally.remapped
                    total.reasons = (total + tally).reasons
                    span.offending[kind].append(tally)
            span.offending_samples += any(tallies.values())
            found = packed_instances(sample)
            span.empty_images += found is not None and not len(found[0])
        span.offending_iterations = int(bool(span))
        return span

    def __bool__(self) -> bool:
        """Whether anything was skipped or remapped."""
        return any(self.offending.values()) or any(self.losses.values())

    def see_losses(self, losses: Dict[str, LossCount], samples: ByKind) -> None:
        """Adds what the guarded losses counted in this iteration, and the images that it came from."""
        self.losses = losses
        self.loss_samples = samples
        self.offending_samples = max(self.offending_samples, *map(len, samples.values()))
        self.offending_iterations = int(bool(self))

    def add(self, other: Span) -> None:
        """Adds a later iteration."""
        self.iterations += other.iterations
        self.offending_iterations += other.offending_iterations
        self.samples += other.samples
        self.offending_samples += other.offending_samples
        self.pixels = self.pixels + other.pixels
        self.instances = self.instances + other.instances
        self.offending = joined(self.offending, other.offending)
        self.losses = added(self.losses, other.losses)
        self.loss_samples = joined(self.loss_samples, other.loss_samples)
        self.empty_images += other.empty_images

    def condensed(self) -> Span:
        """Return the same counts with two tallies per kind at most: the worst image, and the sum of the others."""
        return replace(
            self,
            offending={kind: _worst_and_others(found) for kind, found in self.offending.items()},
            loss_samples={kind: _worst_and_others(found) for kind, found in self.loss_samples.items()},
        )

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
            self.pixels.mapped,
            self.empty_images,
            self.pixels.total,
            self.instances.total,
            loss.seen,
        ]

    def to_json(self, shorten: Callable[[str], str], known: Callable[[str, Tally], bool]) -> Dict[str, Any]:
        """The fields of a line of the log.

        Args:
            shorten (callable): Applied to paths.
            known (callable): Kind, tally -> whether the file offended in this way before; then it gets its counts
                alone.
        """

        def samples(tallies: ByKind) -> List[Dict[str, Any]]:
            lines = []
            for kind in KINDS:
                for tally in tallies[kind]:
                    line = tally.to_json()
                    left_out = {'total', 'mapped'} | (
                        {'values', 'other_values', 'reasons'} if known(kind, tally) else set()
                    )
                    line = {name: value for name, value in line.items() if name not in left_out}
                    line['source'] = None if tally.source is None else shorten(str(tally.source))
                    lines.append({**line, 'kind': kind} if kind == 'instances' else line)
            return lines

        record: Dict[str, Any] = {
            'skipped_pixels': self.pixels.skipped,
            'remapped_pixels': self.pixels.remapped,
            'skipped_instances': self.instances.skipped,
            'remapped_instances': self.instances.remapped,
            'total': self.pixels.total,
            'samples': samples(self.offending),
            'losses': {
                loss: {'skipped': count.skipped, 'remapped': count.remapped} for loss, count in self.losses.items()
            },
        }
        if self.instances.total:
            record.update(
                total_instances=self.instances.total, reasons=self.instances.reasons, empty_images=self.empty_images
            )
        if any(self.loss_samples.values()):
            record['loss_samples'] = samples(self.loss_samples)
        return record


def _worst_and_others(tallies: List[Tally]) -> List[Tally]:
    worst, *others = sorted(tallies, key=lambda t: (t.source is None, -(t.skipped + t.remapped))) or [Tally()]
    rest = replace(sum(others, Tally()), source=None)
    return [tally for tally in (worst, rest) if tally]


def joined(left: ByKind, right: ByKind) -> ByKind:
    return {kind: left[kind] + right[kind] for kind in KINDS}
