"""Tallies, which count labels seen, skipped, remapped and mapped in a file, and functions to store them in samples."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar

from mmguard.files.plain_data import decode
from mmguard.text import visible

if TYPE_CHECKING:
    from mmengine.structures import BaseDataElement

    from mmguard.labels.rules import Rule

Key = TypeVar('Key', int, str)

#: Key under which a sample carries its tallies, as plain data: ``{'pixels': {'total': 9, ...}, 'instances': ...}``.
LABEL_GUARD = 'label_guard'
#: Key, in the record of a kind, of the label map that a guard applied before counting.
LABEL_MAP = 'label_map'

#: Source of a tally over several files.
SEVERAL = '<several>'
#: Number of values that are counted individually; a depth map mistaken for labels has tens of thousands.
VALUES = 32


@dataclass
class Tally:
    """Exact counts of label elements (pixels, instances or loss elements).

    Adding is associative and commutative and ``Tally()`` is its neutral element, so tallies of workers, ranks
    and machines can be merged in any order. With more than 32 values, the order may decide which values are
    counted individually; every sum stays exact.

    Args:
        total (int): Elements seen.
        skipped (int): Invalid elements that were taken out of training.
        remapped (int): Invalid elements that were clipped to a class.
        values (dict[int, int]): Raw value -> number of elements skipped or clipped; only the 32 most frequent values.
        source (str, optional): The file that the elements come from.
        reasons (dict[str, int]): For instances: reason (``'label'``, or the fault of the box) -> number of instances.
            Each instance counts once.
        mapped (int): Elements changed by the user's own ``label_map``: not a mistake, so ``bool()`` ignores them.
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
        total = Tally()
        total += self
        total += other
        return total

    def __iadd__(self, other: Tally) -> Tally:
        self.total += other.total
        self.skipped += other.skipped
        self.remapped += other.remapped
        self.mapped += other.mapped
        if self.source != other.source:
            self.source = _join_sources(self.source, other.source)
        self.other_values += other.other_values
        if other.reasons:
            self.reasons = add_counts(self.reasons, other.reasons)
        if other.values:
            self.values = add_counts(self.values, other.values)
            self.__post_init__()
        return self

    def merge_second_guard(self, later: Tally) -> Tally:
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
        """Build a tally from the dict of ``to_json``.

        Raises:
            ValueError: The record is malformed; the message says why.
        """
        return decode(cls, record)


def get_tallies(sample: Any) -> Dict[str, Tally]:
    """Return the tallies that guards stored in a packed or unpacked sample as {kind: tally}.

    Example:
        >>> get_tallies({'label_guard': {'pixels': {'total': 9, 'skipped': 1, 'values': {7: 1}}}})['pixels'].values
        {7: 1}
    """
    record: Dict[str, Dict[str, Any]] = sample.get(LABEL_GUARD) or {}
    return {kind: read_counts(counts) for kind, counts in record.items()}


def read_counts(counts: Dict[str, Any]) -> Tally:
    """Build a tally from the counts of one kind in the record of a sample."""
    return Tally(**{name: value for name, value in counts.items() if name != LABEL_MAP})


def add_counts(left: Dict[Key, int], right: Dict[Key, int]) -> Dict[Key, int]:
    """Add two dicts of counts, key by key."""
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
    """Error raised for invalid labels, with counts and positions as data.

    Args:
        message (str): The fault, the file or tensor, and advice.
        tallies (Sequence[Tally]): The invalid labels as data: file, values and counts. Empty if the error comes from a
            dataloader worker, which passes on only the message.
        positions (Sequence[tuple]): Indices of the first invalid elements in the label array.
    """

    def __init__(self, message: str, tallies: Sequence[Tally] = (), positions: Sequence[Tuple[int, ...]] = ()) -> None:
        super().__init__(visible(message))
        self.tallies = list(tallies)
        self.positions = list(positions)


#: Fields of the label map in ``gt_sem_seg``, of mmseg and of mmdet.
_MAPS = ('data', 'sem_seg')


def find_map(sample: Any) -> Optional[Tuple[Any, str]]:
    """Return (``gt_sem_seg``, field of the label map in it), or ``None`` if a sample has no label map."""
    holder = sample.get('gt_sem_seg')
    for name in _MAPS if holder is not None else ():
        if name in holder:
            return holder, name
    return None


def find_instances(sample: Any) -> Optional[Any]:
    """Return the ``gt_instances`` of a sample, or ``None`` if they are missing or have no fields."""
    instances = sample.get('gt_instances')
    return instances if instances is not None and instances.keys() else None


#: Keys of a sample that name its label file, or else its image.
_KEYS = ('seg_map_path', 'img_path')


def get_file(sample: Any) -> Optional[str]:
    """Return the label file of a sample, else its image (of the first camera), or ``None`` if neither is known.

    Example:
        >>> get_file({'img_path': ['front.jpg', 'left.jpg']}), get_file({})
        ('front.jpg', None)
    """
    for key in _KEYS:
        found = sample.get(key)
        if isinstance(found, (list, tuple)):
            found = next(iter(found), None)
        if found:
            return str(found)
    return None


#: Source of a sample without a path.
UNKNOWN = '<unknown>'


def get_source(sample: BaseDataElement) -> str:
    """Return the label file or image of a sample, or ``UNKNOWN`` if the sample names neither."""
    return get_file(sample) or UNKNOWN


def make_relative(source: str, roots: List[str]) -> str:
    """Return a path relative to the data root that contains it, or the path itself if no root does."""
    for root in roots:
        prefix = root.rstrip('/\\')
        if source.startswith(prefix) and source[len(prefix) : len(prefix) + 1] in ('/', os.sep):
            return source[len(prefix) + 1 :]
    return source


def find_path(name: str, roots: Sequence[str]) -> str:
    """Return the path of a file that a log names, or the name itself if no file or several files match."""
    paths = (os.path.join(root, name) for root in (*roots, ''))
    found = {os.path.realpath(path): path for path in paths if os.path.isfile(path)}
    return next(iter(found.values())) if len(found) == 1 else name  # two roots may have a file of this name


Record = Dict[str, Dict[str, Any]]


def adapt_rule(rule: Rule, sample: Any) -> Rule:
    """Return the rule, without its label map if an earlier guard has applied the same map to the sample."""
    if not rule.label_map:
        return rule
    record: Record = sample.get(LABEL_GUARD) or {}
    return rule.drop_map() if record.get(rule.kind, {}).get(LABEL_MAP) == rule.label_map else rule


def leave_in_results(results: Dict[str, Any], kind: str, tally: Tally, label_map: Mapping[Any, int]) -> None:
    """Attach a tally, and the applied label map, to an unpacked sample."""
    results[LABEL_GUARD] = _join_record(results, kind, tally, label_map)


def leave_in_sample(sample: Any, kind: str, tally: Tally, label_map: Mapping[Any, int]) -> None:
    """Attach a tally, and the applied label map, to the meta information of a packed sample."""
    # Not set_metainfo, which would make a deep copy of a record that only the guards change.
    sample.set_field(_join_record(sample, kind, tally, label_map), LABEL_GUARD, field_type='metainfo')


def _join_record(sample: Any, kind: str, tally: Tally, label_map: Mapping[Any, int]) -> Record:
    """Return the sample's record with a tally added, merged with the tally of an earlier guard, if any."""
    joined: Record = dict(sample.get(LABEL_GUARD) or {})
    if kind in joined:
        tally = read_counts(joined[kind]).merge_second_guard(tally)
    mapped = dict(label_map) or joined.get(kind, {}).get(LABEL_MAP)
    # mmengine makes deep copies of the record for every batch, so counts of 0 are left out.
    counts = {name: value for name, value in vars(tally).items() if value}
    joined[kind] = {**counts, **({LABEL_MAP: mapped} if mapped else {})}
    return joined
