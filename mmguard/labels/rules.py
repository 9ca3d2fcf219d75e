"""Rules that define valid labels and sanitize numpy arrays (for tensors see ``functional.format``)."""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from mmguard.labels import OTHERS, VOID
from mmguard.labels.tally import LabelGuardError, Tally
from mmguard.language import Message, join
from mmguard.text import join_with_and, plural, quantity, shorten

Rule = TypeVar('Rule', bound='BaseRule')

LabelMap = Mapping[Union[int, str], Union[int, str]]

ON_INVALID = ('ignore', 'clip', 'raise')
#: Value ranges up to this size are counted and mapped with a table; wider ones are sorted.
_TABLE = 1 << 16
#: Number of labels that are counted at once.
_AT_ONCE = 1 << 22


class ValidLabels:
    """Definition of valid labels: the integers in ``[min_label, num_classes)``, and ``ignore_index``."""

    num_classes: int
    ignore_index: Optional[int]
    #: The first class; lower labels are a background that annotations must not contain.
    min_label: int = 0

    def is_valid(self, label: int) -> bool:
        return self.min_label <= label < self.num_classes or label == self.ignore_index


class BaseRule(ValidLabels):
    """Definition of valid labels, and the action on invalid ones.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: ``num_classes`` < 1, an unknown ``on_invalid``, or a ``label_map`` that maps to invalid labels.
    """

    #: Labeled elements: ``'pixels'`` or ``'instances'``.
    kind: ClassVar[str] = 'pixels'
    #: Allowed values of ``on_invalid``.
    choices: ClassVar[Tuple[str, ...]] = ON_INVALID
    #: True if a label map may have the key ``'*'`` for all other values.
    maps_others: ClassVar[bool] = False

    def __init__(
        self, num_classes: int, ignore_index: Optional[int], on_invalid: str, label_map: Optional[LabelMap]
    ) -> None:
        self.num_classes = check_num_classes(num_classes)
        self.ignore_index = None if ignore_index is None else check_int('ignore_index', ignore_index)
        self.on_invalid = check_on_invalid(on_invalid, self.choices)
        #: Raw value -> label; the last key may be ``'*'``, for all other values.
        self.label_map = self._check_map(label_map)

    def _check_map(self, label_map: Optional[LabelMap]) -> Dict[Any, int]:
        if label_map is None:
            return {}
        try:
            checked = {
                raw if self.maps_others and raw == OTHERS else int(raw): int(label)
                for raw, label in dict(label_map).items()
            }
        except (TypeError, ValueError) as error:
            raise TypeError(
                f'label_map must map integers to integers, got {shorten(label_map)}: write e.g. '
                f'label_map={{7: 0, 8: 1}}'
            ) from error
        wrong = {raw: label for raw, label in checked.items() if not self.is_valid(label)}
        if wrong:
            ignored = '' if self.ignore_index is None else f' or ignore_index={self.ignore_index}'
            raise ValueError(
                f'label_map maps to invalid labels: {wrong}; with num_classes={self.num_classes} a mapped '
                f'label must be {self.min_label}..{self.num_classes - 1}{ignored}'
            )
        return dict(sorted(checked.items(), key=lambda pair: pair[0] == OTHERS))

    @property
    def is_map_idempotent(self) -> bool:
        """True if applying the map twice equals applying it once."""
        return all(self.map_label(label) == label for label in self.label_map.values())

    def map_label(self, value: int) -> int:
        """Apply the label map to one value."""
        return apply_label_map(self.label_map, value, self.ignore_index)

    def drop_map(self: Rule) -> Rule:
        """Return a copy of the rule without ``label_map``, for labels that are already mapped."""
        rule = copy.copy(self)
        rule.label_map = {}
        return rule

    def to_json(self) -> Dict[str, Any]:
        """Convert to plain data for ``label_guard.json``."""
        return {
            'kind': self.kind,
            'num_classes': self.num_classes,
            **({'min_label': self.min_label} if self.min_label else {}),
            'ignore_index': self.ignore_index,
            'on_invalid': self.on_invalid,
            'label_map': {
                str(raw): label for raw, label in sorted(pair for pair in self.label_map.items() if pair[0] != OTHERS)
            },
        }


def apply_label_map(label_map: Mapping[Any, int], value: int, ignore_index: Optional[int] = None) -> int:
    """Apply a label map to one value; the key ``'*'`` does not match ``ignore_index``.

    Example:
        >>> [apply_label_map({7: 0, '*': 255}, value) for value in (7, 8)], apply_label_map({'*': 1}, 255, 255)
        ([0, 255], 255)
    """
    others = value if value == ignore_index else label_map.get(OTHERS, value)
    return label_map.get(value, others)


class LabelRule(BaseRule):
    """Rule for label maps: every element is a class or ``ignore_index``.

    ``on_invalid='ignore'`` sets an invalid label to ``ignore_index``, ``'clip'`` clamps it into the classes,
    ``'raise'`` raises ``LabelGuardError``. ``label_map`` (raw value -> class or ``ignore_index``) is applied first; its
    key ``'*'`` matches every value that is not a key itself, except ``ignore_index``.
    """

    ignore_index: int
    maps_others: ClassVar[bool] = True

    def __init__(
        self,
        num_classes: int,
        ignore_index: int = VOID,
        on_invalid: str = 'ignore',
        label_map: Optional[LabelMap] = None,
    ) -> None:
        super().__init__(num_classes, check_int('ignore_index', ignore_index), on_invalid, label_map)

    def sanitize(self, label: np.ndarray, source: Optional[str] = None) -> Tuple[np.ndarray, Tally]:
        """Sanitize an integer (or bool) label array of any shape, which is not modified.

        Returns the array (``label`` itself if nothing changed) and its tally. The returned dtype is wider if that of
        ``label`` cannot hold ``ignore_index``.
        """
        if label.dtype == np.bool_:
            label = label.astype(np.uint8)  # not a view: pillow's arrays store True as the byte 255
        elif label.dtype == np.uint64:
            label = label.view(np.int64)  # values beyond int64 turn negative: invalid either way
        if self.label_map:
            return self._sanitize_by_value(label, source)
        # Flat positions, not a mask: every use of a mask costs another pass.
        (invalid,) = self._find_invalid(label).reshape(-1).nonzero()
        if not invalid.size:
            return label, Tally(total=label.size, source=source)
        found = label.ravel()[invalid]
        tally = self._build_tally(label.size, count_values(found), source)
        if self.on_invalid == 'raise':
            raise self._build_error(tally, label, invalid)
        if self.on_invalid == 'clip':
            sanitized = label.copy()
            sanitized.flat[invalid] = found.clip(0, min(self.num_classes - 1, np.iinfo(label.dtype).max))
        else:
            sanitized = label.astype(_widen_dtype(self.ignore_index, label.dtype))
            sanitized.flat[invalid] = self.ignore_index
        return sanitized, tally

    def _find_invalid(self, label: np.ndarray) -> np.ndarray:
        limit = self.num_classes
        if label.dtype.kind == 'i':
            # One unsigned comparison finds labels that are too large and negative ones.
            unsigned, largest = _get_unsigned(label.dtype)
            invalid = label.view(unsigned) >= limit if limit <= largest else label < 0
        else:
            invalid = label >= limit
        if not 0 <= self.ignore_index < limit:
            invalid &= label != self.ignore_index
        return invalid

    def _sanitize_by_value(self, label: np.ndarray, source: Optional[str]) -> Tuple[np.ndarray, Tally]:
        counts = count_values(label)
        sanitized_values = {value: self._sanitize_value(value) for value in counts}
        changed = {value: sanitized for value, sanitized in sanitized_values.items() if sanitized != value}
        known = counts if OTHERS in self.label_map else self.label_map
        invalid = {value: counts[value] for value in changed if value not in known}
        tally = self._build_tally(label.size, invalid, source)
        if self.on_invalid == 'raise' and tally:
            raise self._build_error(tally, label, np.flatnonzero(np.isin(label, list(invalid))))
        tally.mapped = sum(counts[value] for value in changed) - sum(invalid.values())
        if not changed:
            return label, tally
        dtype = _widen_dtype(self.ignore_index, label.dtype)
        low, high = min(counts), max(counts)
        if high - low < _TABLE:
            table = np.zeros(high - low + 1, dtype=dtype)
            table[[value - low for value in counts]] = list(sanitized_values.values())
            return table[label if low == 0 else label.astype(np.int64) - low], tally
        keys = np.array(list(counts))
        targets = np.array(list(sanitized_values.values()), dtype=dtype)
        return targets[np.searchsorted(keys, label)], tally

    def _sanitize_value(self, value: int) -> int:
        value = self.map_label(value)
        if self.is_valid(value):
            return value
        if self.on_invalid == 'clip':
            return min(max(value, 0), self.num_classes - 1)
        return self.ignore_index

    def _build_tally(self, total: int, values: Dict[int, int], source: Optional[str]) -> Tally:
        count = sum(values.values())
        clipped = count if self.on_invalid == 'clip' else 0
        return Tally(total=total, skipped=count - clipped, remapped=clipped, values=values, source=source)

    def _build_error(self, tally: Tally, label: np.ndarray, invalid: np.ndarray) -> LabelGuardError:
        first = np.stack(np.unravel_index(invalid[:5], label.shape), axis=1)
        positions = [tuple(int(i) for i in row) for row in first]
        return build_label_error(tally, positions, self.num_classes, self.ignore_index)


def build_label_error(
    tally: Tally, positions: Sequence[Tuple[int, ...]], num_classes: int, ignore_index: Optional[int]
) -> LabelGuardError:
    """Build the error of ``on_invalid='raise'``, which names file, values, counts, first positions and remedies."""
    ignored = '' if ignore_index is None else f' or ignore_index={ignore_index}'
    message = (
        f'{tally.source or "labels"}: {tally.skipped + tally.remapped:,} of {tally.total:,} labels are invalid: '
        f'{describe_values(tally.values, others=tally.other_values)}; first at {", ".join(map(str, positions))}. '
        f'Valid labels are 0..{num_classes - 1}{ignored}. Correct the file, map the value with label_map, or train '
        "without these labels: on_invalid='ignore'"
    )
    return LabelGuardError(message, [tally], positions)


def count_values(label: np.ndarray, most: int = 0) -> Dict[int, int]:
    """Return {value: count} of an integer array, sorted; only the ``most`` frequent values if their range is wide."""
    if not label.size:
        return {}
    low, high = int(label.min()), int(label.max())
    if high - low < _TABLE:
        counts = np.zeros(high - low + 1, np.int64)
        flat = label.reshape(-1)
        for begin in range(0, flat.size, _AT_ONCE):  # bincount copies labels of 8 bits to 64
            some = flat[begin : begin + _AT_ONCE]
            if label.dtype == np.uint64:  # bincount does not take uint64; the shifted values fit int64
                some = (some - label.min()).astype(np.int64)
            elif low:
                some = some.astype(np.int64) - low
            counts += np.bincount(some, minlength=len(counts))
        return {int(value) + low: int(counts[value]) for value in np.flatnonzero(counts)}
    values, numbers = np.unique(label, return_counts=True)
    if 0 < most < len(values):
        kept = np.sort(np.argsort(-numbers, kind='stable')[:most])
        values, numbers = values[kept], numbers[kept]
    return {int(value): int(count) for value, count in zip(values, numbers)}


def describe_values(values: Mapping[int, int], limit: int = 8, others: int = 0) -> str:
    """Describe values (value -> count), the most frequent first; ``others`` counts elements with other values.

    Example:
        >>> describe_values({11: 2503}), describe_values({1: 1, 2: 5}, limit=1, others=7)
        ('value 11 (2,503 times)', 'values 2 (5 times) and others (8 times)')
    """
    ranked: List[Tuple[int, int]] = sorted(values.items(), key=lambda item: (-item[1], item[0]))
    named: str = join(
        ', ',
        (Message('{value} ({times})', value=value, times=quantity(count, 'time')) for value, count in ranked[:limit]),
    )
    left = ranked[limit:]
    others += sum(count for _, count in left) if others else 0
    if others:
        named = Message('{named} and others ({times})', named=named, times=quantity(others, 'time'))
    elif left:
        named = join_with_and((named, quantity(len(left), 'more value')))
    return join(' ', (plural(2 if others or left else len(ranked), 'value'), named))


def check_on_invalid(on_invalid: str, allowed: Sequence[str] = ON_INVALID) -> str:
    if on_invalid not in allowed:
        raise ValueError(f'on_invalid must be one of {", ".join(map(repr, allowed))}, got {shorten(on_invalid)}')
    return on_invalid


def check_num_classes(num_classes: Any) -> int:
    return check_int('num_classes', num_classes, at_least=1)


def check_int(name: str, value: Any, at_least: Optional[int] = None) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f'{name} must be an int, got {shorten(value)} of type {type(value).__name__}')
    if at_least is not None and value < at_least:
        raise ValueError(f'{name} must be at least {at_least}, got {value}')
    if not -(2**63) <= value < 2**63:
        raise ValueError(f'{name} must fit into 64 bits, got {value}')
    return int(value)


@lru_cache(maxsize=None)
def _get_unsigned(dtype: Any) -> Tuple[Any, int]:
    """Return the unsigned dtype of the same size as a signed one, and the largest value of the signed one."""
    return np.dtype(dtype.str.replace('i', 'u')), np.iinfo(dtype).max


def _widen_dtype(value: int, dtype: Any) -> Any:
    """Return ``dtype``, or the narrowest signed dtype that also fits ``value``: 256 in uint8 would wrap to class 0."""
    limits = np.iinfo(dtype)
    if limits.min <= value <= limits.max:
        return dtype
    wider: Tuple[Any, ...] = (np.int16, np.int32, np.int64)
    return next(np.dtype(t) for t in wider if np.can_cast(dtype, t) and np.iinfo(t).min <= value <= np.iinfo(t).max)
