"""Record of label elements seen, skipped, remapped and mapped in a file; and the exception for invalid labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Sequence, Tuple, TypeVar

from mmguard.files.typed_json import decode
from mmguard.text import visible

Key = TypeVar('Key', int, str)

#: Key under which a sample carries its tallies, as plain data: ``{'pixels': {'total': 9, ...}, 'instances': ...}``.
LABEL_GUARD = 'label_guard'
#: Key next to the counts: the label map that a guard applied before counting.
LABEL_MAP = 'label_map'

#: Source of a tally over several files.
SEVERAL = '<several>'
#: Number of values that are counted individually; a depth map mistaken for labels has tens of thousands.
VALUES = 32


@dataclass
class Tally:
    """Exact counts of label elements (pixels, instances or loss elements).

    Adding is associative and commutative and ``Tally()`` is its neutral element, so tallies of workers, ranks
    and machines can be merged in any order. With more than 32 values, the order may decide which are counted
    individually; every sum stays exact.

    Args:
        total (int): Elements seen.
        skipped (int): Invalid elements that were taken out of training.
        remapped (int): Invalid elements that were clipped to a class.
        values (dict[int, int]): Raw value -> number of elements skipped or clipped because of it; the 32 most
            frequent values.
        source (str, optional): The file that the elements come from.
        reasons (dict[str, int]): For instances: reason (``'label'``, or the fault of the box) -> number of instances.
            Each instance counts once.
        mapped (int): Elements that the user's own ``label_map`` changed: not a mistake, so ``bool()`` ignores
            them.
        other_values (int): Elements skipped or clipped with a value that ``values`` leaves out.

    Example:
        >>> a = Tally(total=4, skipped=2, values={11: 2}, source='a.png')
        >>> b = Tally(total=4, remapped=1, values={12: 1}, source='a.png')
        >>> (a + b).total, (a + b).skipped, (a + b).values
        (8, 2, {11: 2, 12: 1})
    """

    total: int = 0
    skipped: int = 0
    remapped: int = 0
    values: Dict[int, int] = field(default_factory=dict)
    source: Optional[str] = None
    reasons: Dict[str, int] = field(default_factory=dict)
    mapped: int = 0
    other_values: int = 0

    def __post_init__(self) -> None:
        if len(self.values) > VALUES:
            ranked = sorted(self.values.items(), key=lambda item: (-item[1], item[0]))
            self.values = dict(sorted(ranked[:VALUES]))
            self.other_values += sum(count for _, count in ranked[VALUES:])

    def __bool__(self) -> bool:
        """True if anything was skipped or remapped."""
        return bool(self.skipped or self.remapped)

    @property
    def changed(self) -> bool:
        """True if any label was changed or taken out of training."""
        return bool(self or self.mapped)

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        return Tally(
            total=self.total + other.total,
            skipped=self.skipped + other.skipped,
            remapped=self.remapped + other.remapped,
            mapped=self.mapped + other.mapped,
            values=add_counts(self.values, other.values),
            other_values=self.other_values + other.other_values,
            source=_join_sources(self.source, other.source),
            reasons=add_counts(self.reasons, other.reasons),
        )

    def merge_second_look(self, later: Tally) -> Tally:
        """Merge the tally of a second guard in the pipeline, which has sanitized the same elements again."""
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
        for name in ('mapped', 'other_values'):
            if getattr(self, name):
                record[name] = getattr(self, name)
        if self.reasons:
            record['reasons'] = dict(sorted(self.reasons.items()))
        return record

    @classmethod
    def from_json(cls, record: Any) -> Tally:
        """Read ``to_json`` back.

        Raises:
            ValueError: The record is malformed; the message says why.
        """
        return decode(cls, record)


def tallies_of(sample: Any) -> Dict[str, Tally]:
    """Return the tallies that guards left in a sample, packed or not: kind -> tally.

    Example:
        >>> tallies_of({'label_guard': {'pixels': {'total': 9, 'skipped': 1, 'values': {7: 1}}}})['pixels'].values
        {7: 1}
    """
    record: Dict[str, Dict[str, Any]] = sample.get(LABEL_GUARD) or {}
    return {
        kind: Tally(**{name: value for name, value in counts.items() if name != LABEL_MAP})
        for kind, counts in record.items()
    }


def add_counts(left: Dict[Key, int], right: Dict[Key, int]) -> Dict[Key, int]:
    """Add up counts by key."""
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


class LabelGuardError(ValueError):
    """Labels that must not be trained on.

    Args:
        message (str): The fault, its place, and advice.
        tallies (Sequence[Tally]): The failure cases as data: file, values and counts. Empty where the error
            crossed a process border (a dataloader worker passes on only the message).
        positions (Sequence[tuple]): Indices of the first invalid elements in the label array.
    """

    def __init__(self, message: str, tallies: Sequence[Tally] = (), positions: Sequence[Tuple[int, ...]] = ()) -> None:
        super().__init__(visible(message))
        self.tallies = list(tallies)
        self.positions = list(positions)
