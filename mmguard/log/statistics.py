"""Statistics: sums of tallies over one or more iterations, over a loop or a run, and for each file."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from mmguard.files.plain_data import decode
from mmguard.labels.instances import LABEL_REASON
from mmguard.labels.tally import LABEL_GUARD, Record, Tally, add_counts, find_instances, read_counts

if TYPE_CHECKING:
    from mmengine.structures import BaseDataElement

#: Kinds of tallies, which are the keys of a sample's record.
KINDS = ('pixels', 'instances')
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
#: Further numbers that ranks add up, after the scalars.
SEEN = ('pixels', 'instances', 'loss_elements')
#: Minimum number of files whose values a run keeps.
DETAILED = 1000

#: Kind -> tallies of single images.
ByKind = Dict[str, List[Tally]]


def group_tallies(pixels: Sequence[Tally] = (), instances: Sequence[Tally] = ()) -> ByKind:
    """Return ``{'pixels': [...], 'instances': [...]}`` with copies of the two lists."""
    return {'pixels': list(pixels), 'instances': list(instances)}


@dataclass
class Stats:
    """Sum of tallies over one or more iterations. Statistics of windows, loops and ranks can be added.

    Example:
        >>> a = Stats(iterations=3, offending_iterations=1, losses={'loss': Tally(9, skipped=1)})
        >>> (a + a).losses['loss'].skipped
        2
        >>> Stats.from_json(a.to_json()) == a
        True
    """

    iterations: int = 0  #: Iterations seen.
    offending_iterations: int = 0  #: Iterations with skipped or remapped labels.
    files: int = 0  #: Label files seen; in a sum over ranks, a file counts once for each rank that saw it.
    offending_files: int = 0  #: Files with skipped or remapped labels.
    #: Kind -> sum of its tallies. For a loop, the sum includes invalid values, even those that only a loss saw.
    kinds: Dict[str, Tally] = field(default_factory=lambda: {'pixels': Tally(), 'instances': Tally()})
    losses: Dict[str, Tally] = field(default_factory=dict)  #: Guarded loss -> its counts.
    empty_images: int = 0  #: Images without any instance, in the annotations or because a guard removed all instances.
    #: Loss -> rank -> number of iterations in which the loss was missing on the rank and replaced by a zero.
    filled: Dict[str, Dict[str, int]] = field(default_factory=dict)
    samples: int = 0  #: Images seen. This field and those below are kept only until the next report.
    offending_samples: int = 0  #: Images with skipped or remapped labels.
    offending: ByKind = field(default_factory=group_tallies)  #: Kind -> tallies of offending images, in batch order.
    #: Kind -> tallies of images that only a loss sanitized, because no guard in the pipeline did.
    loss_samples: ByKind = field(default_factory=group_tallies)

    @classmethod
    def from_samples(cls, samples: Iterable[BaseDataElement], losses: Optional[Dict[str, Tally]] = None) -> Stats:
        """Add up the tallies that guards left in the samples of one iteration, and the counts of its losses."""
        stats = cls(losses=losses or {})
        for sample in samples:
            stats.add_image(sample.get(LABEL_GUARD) or {})
            instances = find_instances(sample)
            if instances is not None and not len(instances):
                stats.empty_images += 1
        return stats.end_iteration()

    def add_image(self, record: Record) -> None:
        """Add the counts that guards left in an image; append its tallies to ``offending`` if a label is invalid."""
        self.samples += 1
        is_offending = False
        for kind, counts in record.items():
            total = self.kinds[kind]
            total.total += counts.get('total', 0)
            total.mapped += counts.get('mapped', 0)
            if counts.get('skipped') or counts.get('remapped'):
                is_offending, tally = True, read_counts(counts)
                total.skipped += tally.skipped
                total.remapped += tally.remapped
                total.reasons = add_counts(total.reasons, tally.reasons)
                self.offending[kind].append(tally)
        self.offending_samples += is_offending

    def add_losses(self, losses: Dict[str, Tally]) -> None:
        """Set the counts of the guarded losses, and count the iteration."""
        self.losses = losses
        self.end_iteration()

    def add_loss_samples(self, samples: ByKind) -> None:
        """Set the tallies of the images that the losses had to sanitize."""
        self.loss_samples = samples
        self.offending_samples = max(self.offending_samples, *map(len, samples.values()))

    def end_iteration(self) -> Stats:
        """Count the added images and losses as one iteration, and return the statistics."""
        self.iterations, self.offending_iterations = 1, int(bool(self))
        return self

    def add_filled_losses(self, rank: int, losses: Iterable[str]) -> None:
        """Count an iteration in which these losses were missing on a rank and replaced by zeros."""
        self.add_sums(Stats(filled={name: {str(rank): 1} for name in losses}))

    def __bool__(self) -> bool:
        """True if anything was skipped or remapped."""
        for tallies in (self.kinds.values(), self.losses.values()):
            for tally in tallies:
                if tally.skipped or tally.remapped:
                    return True
        return False

    def __add__(self, other: Stats) -> Stats:
        total = Stats()
        total += self
        total += other
        return total

    def __iadd__(self, other: Stats) -> Stats:
        self.add_sums(other)
        self.samples += other.samples
        self.offending_samples += other.offending_samples
        for kind in KINDS:
            self.offending[kind] += other.offending[kind]
            self.loss_samples[kind] += other.loss_samples[kind]
        return self

    def add_sums(self, other: Stats) -> None:
        """Add the sums of ``other``, but not the tallies of single images, which are kept only for the next report."""
        self.iterations += other.iterations
        self.offending_iterations += other.offending_iterations
        self.files += other.files
        self.offending_files += other.offending_files
        self.empty_images += other.empty_images
        for kind in KINDS:
            self.kinds[kind] += other.kinds[kind]
        for name, tally in other.losses.items():
            if name not in self.losses:
                self.losses[name] = Tally()
            self.losses[name] += tally
        for name, by_rank in other.filled.items():
            self.filled[name] = add_counts(self.filled.get(name, {}), by_rank)

    def condense(self) -> None:
        """Keep at most two tallies per kind: the worst image, and the sum of the others."""
        for images in (self.offending, self.loss_samples):
            images.update({kind: _condense_tallies(tallies) for kind, tallies in images.items()})

    def vector(self) -> List[int]:
        """Return the counts to be summed over all ranks, in the order of ``SCALARS`` and ``SEEN``."""
        pixels, instances = self.kinds['pixels'], self.kinds['instances']
        skipped = remapped = total = 0
        for loss in self.losses.values():
            skipped, remapped, total = skipped + loss.skipped, remapped + loss.remapped, total + loss.total
        return [
            pixels.skipped,
            pixels.remapped,
            instances.skipped,
            instances.remapped,
            skipped,
            remapped,
            pixels.mapped,
            self.empty_images,
            pixels.total,
            instances.total,
            total,
        ]

    def to_line(self) -> Dict[str, Any]:
        """Return the counts of an iteration, and the tallies of its images, as fields of a JSON line."""
        pixels, instances = self.kinds['pixels'], self.kinds['instances']
        record: Dict[str, Any] = {
            **dict(zip(SCALARS[:4], self.vector())),
            'total': pixels.total,
            'samples': _list_images(self.offending),
            'losses': {
                name: {'skipped': loss.skipped, 'remapped': loss.remapped} for name, loss in self.losses.items()
            },
        }
        if instances.total:
            record.update(total_instances=instances.total, reasons=instances.reasons, empty_images=self.empty_images)
        found_by_losses = _list_images(self.loss_samples)
        return {**record, 'loss_samples': found_by_losses} if found_by_losses else record

    def to_json(self) -> Dict[str, Any]:
        """Convert the sums to plain data, including counts of 0."""
        kinds = {kind: tally.to_json() for kind, tally in self.kinds.items()}
        for record in kinds.values():
            del record['source']
        return {
            'iterations': self.iterations,
            'offending_iterations': self.offending_iterations,
            'files': self.files,
            'offending_files': self.offending_files,
            **kinds,
            'losses': {
                name: {'seen': loss.total, 'skipped': loss.skipped, 'remapped': loss.remapped}
                for name, loss in self.losses.items()
            },
            'empty_images': self.empty_images,
            **({'filled': self.filled} if self.filled else {}),
        }

    @classmethod
    def from_json(cls, record: Any) -> Stats:
        """Build statistics from the dict of ``to_json``.

        Raises:
            ValueError: The record is malformed; the message says why.
        """
        fields = vars(decode(_StatsRecord, record))
        kinds = {kind: fields.pop(kind) for kind in KINDS}
        return cls(kinds=kinds, losses=tally_losses(fields.pop('losses')), **fields)


@dataclass
class LossRecord:
    """Counts of a guarded loss in a JSON file."""

    seen: int = 0
    skipped: int = 0
    remapped: int = 0


@dataclass
class _StatsRecord:
    """Sums of a loop in a JSON file."""

    pixels: Tally
    instances: Tally
    iterations: int = 0
    offending_iterations: int = 0
    files: int = 0
    offending_files: int = 0
    losses: Dict[str, LossRecord] = field(default_factory=dict)
    empty_images: int = 0
    filled: Dict[str, Dict[str, int]] = field(default_factory=dict)


def tally_losses(losses: Dict[str, LossRecord]) -> Dict[str, Tally]:
    """Convert the records of losses to tallies."""
    return {name: Tally(loss.seen, loss.skipped, loss.remapped) for name, loss in losses.items()}


def _condense_tallies(tallies: List[Tally]) -> List[Tally]:
    worst, *others = sorted(tallies, key=lambda t: (t.source is None, -(t.skipped + t.remapped))) or [Tally()]
    rest = replace(sum(others, Tally()), source=None)
    return [tally for tally in (worst, rest) if tally]


def _list_images(tallies: ByKind) -> List[Dict[str, Any]]:
    entries = []
    for kind in KINDS:
        for tally in tallies[kind]:
            entry = tally.to_json()
            for name in ('total', 'mapped'):
                entry.pop(name, None)
            if not (tally.values or tally.other_values or tally.reasons):
                del entry['values']
            entries.append({**entry, 'kind': kind} if kind == 'instances' else entry)
    return entries


class PerFileStats:
    """Counts of every file of a mode; a million offending files take less than 300 MB.

    Counts are kept for all files, invalid values for at least the ``detailed`` worst files (``None``: for all files).
    """

    def __init__(self, detailed: Optional[int] = DETAILED) -> None:
        self._detailed = detailed
        self._indices: Dict[str, int] = {}
        #: Kind -> (files, 3): skipped and remapped in the current loop, and a hash of the last offence.
        self._counts: Dict[str, np.ndarray] = {}
        self._details: Dict[str, Dict[str, Tally]] = {}
        #: (files,): True for files with invalid labels in an earlier loop.
        self._offended = np.zeros(0, bool)
        self.start_loop()

    def start_loop(self) -> None:
        """Reset the counts of all files; keep their names."""
        self._offended = self._find_offending()
        self._counts = {kind: np.zeros((0, 3), np.int64) for kind in KINDS}
        self._details = {kind: {} for kind in KINDS}

    def __len__(self) -> int:
        return len(self._indices)

    @property
    def offending(self) -> int:
        """Number of files with skipped or remapped labels, in this loop or an earlier one."""
        return int(self._find_offending().sum())

    def see(self, names: Iterable[str]) -> None:
        for name in names:
            self._indices.setdefault(name, len(self._indices))

    def add(self, kind: str, tally: Tally) -> bool:
        """Add the tally of a file, ``tally.source``; return True if the file's last tally had the same invalid values.

        If True, the log line needs only the sums. If there are several values, their counts must be equal, too; the
        count of a single value follows from the sums.
        """
        name, offence = str(tally.source), _hash_offence(tally)
        index = self._indices.setdefault(name, len(self._indices))
        counts = self._counts[kind]
        if index >= len(counts):
            counts = self._counts[kind] = _lengthen(counts, index + 1 + index // 4)
        repeats = bool(counts[index, 2] == offence != 0)
        counts[index] = counts[index, 0] + tally.skipped, counts[index, 1] + tally.remapped, offence
        details = self._details[kind]
        details[name] = details[name] + tally if name in details else tally
        if self._detailed is not None and len(details) > 2 * self._detailed:
            kept = heapq.nsmallest(self._detailed, details, key=lambda one: -int(counts[self._indices[one], :2].sum()))
            self._details[kind] = {one: details[one] for one in kept}
        return repeats

    def find_worst(self, kind: str, number: Optional[int] = None) -> List[Tally]:
        """Return the ``number`` files (or all) with the most skipped or remapped elements, sorted by count and name."""
        sums, names = self._counts[kind][:, :2].sum(axis=1), list(self._indices)
        found = [(-int(sums[index]), names[index]) for index in np.flatnonzero(sums)]
        return [
            self._build_tally(kind, name)
            for _, name in heapq.nsmallest(len(found) if number is None else number, found)
        ]

    def count_files(self, kind: str) -> int:
        """Return the number of files with skipped or remapped elements of a kind in this loop."""
        return int(self._counts[kind][:, :2].any(axis=1).sum())

    def _find_offending(self) -> np.ndarray:
        offended = _lengthen(self._offended, max(map(len, (self._offended, *self._counts.values()))))
        for counts in self._counts.values():
            offended[: len(counts)] |= counts[:, :2].any(axis=1)
        return offended

    def _build_tally(self, kind: str, name: str) -> Tally:
        skipped, remapped, _ = self._counts[kind][self._indices[name]].tolist()
        detail = self._details[kind].get(name, Tally())
        # Counts from before the values were dropped.
        unknown = skipped + remapped - detail.skipped - detail.remapped
        others = detail.other_values + unknown
        return replace(detail, skipped=skipped, remapped=remapped, source=name, mapped=0, other_values=others)


def _hash_offence(tally: Tally) -> int:
    """Hash the invalid values of a tally; return 0 for box faults, which the log never abbreviates."""
    if tally.reasons.keys() - {LABEL_REASON}:
        return 0
    is_single = len(tally.values) == 1 and not tally.other_values
    counts: Tuple[Any, ...] = tuple(tally.values) if is_single else (*tally.values.items(),)
    return hash((counts, tally.other_values))


def _lengthen(rows: np.ndarray, length: int) -> np.ndarray:
    """Return a copy with zeros appended up to a length."""
    longer = np.zeros((length, *rows.shape[1:]), rows.dtype)
    longer[: len(rows)] = rows
    return longer
