"""Counts of a run: of one or more iterations, and the sums over a loop."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Sequence

from mmguard.files.typed_json import decoded
from mmguard.labels.samples import packed_instances
from mmguard.labels.tally import Tally, tallies_of

if TYPE_CHECKING:
    from mmengine.structures import BaseDataElement


#: What a tally may count, as samples name it.
KINDS = ('pixels', 'instances')


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
class LoopTotals:
    """The sums over a loop. They add up over loops and ranks.

    Args:
        iterations (int): Iterations seen.
        offending_iterations (int): Those with something skipped or remapped.
        files (int): Label files seen; added up over ranks, one that several have seen counts several times.
        offending_files (int): Those with something skipped or remapped.
        kinds (dict[str, Tally]): Kind -> its sum; its values are also those that only a loss met.
        losses (dict[str, LossCount]): Guarded loss -> its counts.
        empty_images (int): Images without any instance to train on.
        filled (dict[str, dict[str, int]]): Loss -> rank -> iterations in which the rank lacked it, and trained with a
            zero in its place.

    Example:
        >>> a = LoopTotals(iterations=3, offending_iterations=1, losses={'loss': LossCount(9, 1)})
        >>> (a + a).losses['loss']
        LossCount(seen=18, skipped=2, remapped=0)
        >>> LoopTotals.from_json(a.to_json()) == a
        True
    """

    iterations: int = 0
    offending_iterations: int = 0
    files: int = 0
    offending_files: int = 0
    kinds: Dict[str, Tally] = field(default_factory=lambda: {kind: Tally() for kind in KINDS})
    losses: Dict[str, LossCount] = field(default_factory=dict)
    empty_images: int = 0
    filled: Dict[str, Dict[str, int]] = field(default_factory=dict)

    def __add__(self, other: LoopTotals) -> LoopTotals:
        return LoopTotals(
            self.iterations + other.iterations,
            self.offending_iterations + other.offending_iterations,
            self.files + other.files,
            self.offending_files + other.offending_files,
            {kind: self.kinds[kind] + other.kinds[kind] for kind in KINDS},
            added(self.losses, other.losses),
            self.empty_images + other.empty_images,
            _added_by_rank(self.filled, other.filled),
        )

    def __bool__(self) -> bool:
        """Whether anything was skipped or remapped."""
        return any(self.kinds.values()) or any(self.losses.values())

    def fill(self, rank: int, losses: Iterable[str]) -> None:
        """Count an iteration in which a rank lacked these losses, and trained with zeros in their place."""
        self.filled = _added_by_rank(self.filled, {name: {str(rank): 1} for name in losses})

    def vector(self) -> List[int]:
        """Return the numbers that ranks add up: ``SCALARS``, then ``SEEN``."""
        pixels, instances, loss = self.kinds['pixels'], self.kinds['instances'], sum(self.losses.values(), LossCount())
        changed = [count for one in (pixels, instances, loss) for count in (one.skipped, one.remapped)]
        return [*changed, pixels.mapped, self.empty_images, pixels.total, instances.total, loss.seen]

    @property
    def counted(self) -> bool:
        """Whether any label was seen: by a guard, or by a guarded loss; an image without any counts, too."""
        seen = any(tally.total for tally in self.kinds.values()) or any(n.seen for n in self.losses.values())
        return seen or bool(self) or self.empty_images > 0

    def to_json(self) -> Dict[str, Any]:
        """As plain data; counts of zero are there, too."""
        kinds = {kind: tally.to_json() for kind, tally in self.kinds.items()}
        for record in kinds.values():
            del record['source']
        return {
            'iterations': self.iterations,
            'offending_iterations': self.offending_iterations,
            'files': self.files,
            'offending_files': self.offending_files,
            **kinds,
            'losses': {name: dict(vars(count)) for name, count in self.losses.items()},
            'empty_images': self.empty_images,
            **({'filled': self.filled} if self.filled else {}),
        }

    @classmethod
    def from_json(cls, record: Any) -> LoopTotals:
        """Reads ``to_json`` back.

        Raises:
            ValueError: Not such a record; says why.
        """
        flat = decoded(Dict[str, Any], record)
        return decoded(cls, {**flat, 'kinds': {kind: flat.get(kind) for kind in KINDS}})


def added(left: Dict[str, LossCount], right: Dict[str, LossCount]) -> Dict[str, LossCount]:
    """The counts of losses by name, added up."""
    both = dict(left)
    for name, count in right.items():
        both[name] = both.get(name, LossCount()) + count
    return both


def _added_by_rank(left: Dict[str, Dict[str, int]], right: Dict[str, Dict[str, int]]) -> Dict[str, Dict[str, int]]:
    both = {name: dict(by_rank) for name, by_rank in left.items()}
    for name, by_rank in right.items():
        known = both.setdefault(name, {})
        for rank, number in by_rank.items():
            known[rank] = known.get(rank, 0) + number
    return both


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
class IterationStats:
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
    def of(cls, samples: Iterable[BaseDataElement]) -> IterationStats:
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

    def add(self, other: IterationStats) -> None:
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

    def condensed(self) -> IterationStats:
        """Return the same counts with two tallies per kind at most: the worst image, and the sum of the others."""
        return replace(
            self,
            offending={kind: _worst_and_others(found) for kind, found in self.offending.items()},
            loss_samples={kind: _worst_and_others(found) for kind, found in self.loss_samples.items()},
        )

    def totals(self) -> LoopTotals:
        """Return the sums, without files."""
        kinds = {'pixels': self.pixels, 'instances': self.instances}
        return LoopTotals(
            self.iterations, self.offending_iterations, kinds=kinds, losses=self.losses, empty_images=self.empty_images
        )

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
