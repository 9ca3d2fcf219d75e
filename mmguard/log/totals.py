"""What a loop saw in all: every iteration counts, clean ones too, so that a share is exact."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict

from mmguard.files.typed_json import decoded
from mmguard.labels.tally import Tally

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
