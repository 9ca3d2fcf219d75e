"""What a whole loop added up to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Dict, Iterable, List, Optional, Sequence

from mmguard.labels.tally import Tally
from mmguard.log.files_seen import FilesSeen
from mmguard.log.source import UNKNOWN, path_of, relative_to, source_of
from mmguard.log.span import SCALARS, SEEN, Span
from mmguard.log.totals import KINDS, LoopTotals, LossCount, added

if TYPE_CHECKING:
    from mmengine.structures import BaseDataElement


@dataclass
class Ledger:
    """A whole loop: totals, and every file with its counts.

    Args:
        roots (list[str]): Data roots; files are named relative to them.
        pending (Span, optional): What was seen since the last report; not yet in the numbers below.
    """

    roots: List[str] = field(default_factory=list)
    pending: Optional[Span] = None
    iterations: int = 0
    offending_iterations: int = 0
    kinds: Dict[str, Tally] = field(default_factory=lambda: {kind: Tally() for kind in KINDS})
    empty_images: int = 0
    files: FilesSeen = field(default_factory=FilesSeen)
    losses: Dict[str, LossCount] = field(default_factory=dict)
    filled: Dict[str, Dict[str, int]] = field(default_factory=dict)
    #: The running sums over all ranks, in the order of ``Span.vector``.
    everywhere: List[int] = field(default_factory=lambda: [0] * (len(SCALARS) + len(SEEN)))

    def see(self, samples: Iterable[BaseDataElement]) -> Span:
        """Makes the span of one iteration, and remembers its files."""
        samples = list(samples)
        self.see_files(map(source_of, samples))
        return Span.of(samples)

    def see_files(self, sources: Iterable[str]) -> None:
        for source in sources:
            self.files.see(self.shorten(source))

    def add(self, span: Span) -> None:
        """Takes an iteration; it is pending until the next report."""
        if self.pending is None:
            self.pending = span
        else:
            self.pending.add(span)

    def take_pending(self) -> Span:
        """Moves what is pending into the totals, and returns it."""
        span, self.pending = Span() if self.pending is None else self.pending, None
        self.iterations += span.iterations
        self.offending_iterations += span.offending_iterations
        self.empty_images += span.empty_images
        self.losses = added(self.losses, span.losses)
        for kind, total in (('pixels', span.pixels), ('instances', span.instances)):
            if total.total:
                self.kinds[kind] = self.kinds[kind] + total
            for tally in span.offending[kind] + span.loss_samples[kind]:
                self.files.add(kind, self.named(tally))
                found = Tally(values=tally.values, other_values=tally.other_values)
                self.kinds[kind] = self.kinds[kind] + found
        return span

    def fill(self, rank: int, losses: Iterable[str]) -> None:
        """A rank lacked these losses, and trained with zeros in their place."""
        for name in losses:
            by_rank = self.filled.setdefault(name, {})
            by_rank[str(rank)] = by_rank.get(str(rank), 0) + 1

    def add_everywhere(self, numbers: Sequence[int]) -> None:
        """Adds the sums over all ranks of a ``Span.vector``; others, of another version's checkpoint, are left out."""
        if len(numbers) == len(self.everywhere):
            self.everywhere = [a + b for a, b in zip(self.everywhere, numbers)]

    def shorten(self, source: str) -> str:
        return relative_to(source, self.roots)

    def named(self, tally: Tally) -> Tally:
        """A tally under the name of its file here."""
        return replace(tally, source=UNKNOWN if tally.source is None else self.shorten(str(tally.source)))

    def repeats(self, kind: str, tally: Tally) -> bool:
        """Whether a file offends as it did before."""
        return self.files.repeats(kind, self.named(tally))

    def worst(self, kind: str, number: int) -> List[Tally]:
        """Return the files with the most skipped or remapped elements, under paths that an editor can open."""
        found = self.files.worst(kind, number)
        return [replace(tally, source=path_of(str(tally.source), self.roots)) for tally in found]

    def totals(self) -> LoopTotals:
        """The sums of what was reported so far."""
        return LoopTotals(
            self.iterations,
            self.offending_iterations,
            len(self.files),
            self.files.offending,
            dict(self.kinds),
            dict(self.losses),
            self.empty_images,
            {name: dict(by_rank) for name, by_rank in self.filled.items()},
        )

    def skipped_ratio(self) -> float:
        """The larger of the share of skipped pixels, instances and loss elements, over all ranks."""
        numbers = dict(zip(SCALARS + SEEN, self.everywhere))
        parts = (('skipped_pixels', 'pixels'), ('skipped_instances', 'instances'), ('loss_skipped', 'loss_elements'))
        return max(numbers[part] / numbers[whole] if numbers[whole] else 0.0 for part, whole in parts)
