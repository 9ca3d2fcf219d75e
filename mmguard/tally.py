"""The record that flows through the house: what was seen, skipped and remapped, and where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Optional, TypeVar

Key = TypeVar('Key', int, str)

#: The key under which a sample carries its tallies: ``{'pixels': Tally, 'instances': Tally}``.
LABEL_GUARD = 'label_guard'

#: The source of a tally that adds up several files.
SEVERAL = '<several>'


@dataclass
class Tally:
    """Exact counts of label elements (pixels, instances or loss elements).

    Adding is associative and commutative and ``Tally()`` is its neutral element, so tallies of workers, ranks
    and machines can be merged in any order.

    Args:
        total (int): Elements seen.
        skipped (int): Elements taken out of training.
        remapped (int): Elements changed to another valid class.
        values (dict[int, int]): Raw value -> how many elements were skipped or clipped because of it.
        source (str, optional): The file that the elements come from.
        reasons (dict[str, int]): Of instances: why -> how many were skipped or clipped because of it (``'label'``, or
            what is wrong with the box). Each counts once.

    Example:
        >>> a = Tally(total=4, skipped=2, values={11: 2}, source='a.png')
        >>> b = Tally(total=4, remapped=1, values={12: 1}, source='a.png')
        >>> a + b
        Tally(total=8, skipped=2, remapped=1, values={11: 2, 12: 1}, source='a.png', reasons={})
    """

    total: int = 0
    skipped: int = 0
    remapped: int = 0
    values: Dict[int, int] = field(default_factory=dict)
    source: Optional[str] = None
    reasons: Dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything was skipped or remapped."""
        return bool(self.skipped or self.remapped)

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        return Tally(
            total=self.total + other.total,
            skipped=self.skipped + other.skipped,
            remapped=self.remapped + other.remapped,
            values=_add_counts(self.values, other.values),
            source=_join_sources(self.source, other.source),
            reasons=_add_counts(self.reasons, other.reasons),
        )

    def then(self, later: Tally) -> Tally:
        """Joins a second look at the same elements (two guards in one pipeline): seen once, mended twice."""
        joined = self + later
        joined.total = max(self.total, later.total)
        return joined

    def to_json(self) -> Dict[str, Any]:
        record: Dict[str, Any] = {
            'source': self.source,
            'total': self.total,
            'skipped': self.skipped,
            'remapped': self.remapped,
            'values': {str(value): count for value, count in sorted(self.values.items())},
        }
        if self.reasons:
            record['reasons'] = dict(sorted(self.reasons.items()))
        return record

    @classmethod
    def from_json(cls, record: Dict[str, Any]) -> Tally:
        return cls(
            total=record.get('total', 0),
            skipped=record['skipped'],
            remapped=record['remapped'],
            values={int(value): count for value, count in record['values'].items()},
            source=record['source'],
            reasons=dict(record.get('reasons', {})),
        )


def merge_by_source(tallies: Iterable[Tally]) -> Dict[Optional[str], Tally]:
    """Adds up tallies file by file: source -> tally."""
    merged: Dict[Optional[str], Tally] = {}
    for tally in tallies:
        seen = merged.get(tally.source)
        merged[tally.source] = tally if seen is None else seen + tally
    return merged


def _add_counts(left: Dict[Key, int], right: Dict[Key, int]) -> Dict[Key, int]:
    if not left or not right:
        return dict(left or right)
    added = dict(left)
    for value, count in right.items():
        added[value] = added.get(value, 0) + count
    return added


def _join_sources(left: Optional[str], right: Optional[str]) -> Optional[str]:
    # A flat lattice (nothing < one file < several) is what makes adding associative.
    if left is None or left == right:
        return right
    return left if right is None else SEVERAL
