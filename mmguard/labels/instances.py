"""Rule that finds and sanitizes instances (boxes, masks) with an invalid label or box."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from mmguard.labels.rules import BaseRule, LabelMap, check_int, describe_values
from mmguard.labels.tally import LabelGuardError, Tally
from mmguard.language import Message, join
from mmguard.text import quantity

#: Code -> fault of a box, for which its instance is excluded. Code 0 is a valid box; only then the label is checked.
BOX_REASONS = ('', 'box_not_finite', 'box_no_area', 'box_outside')

LABEL_REASON = 'label'

#: Up to this many instances a Python loop is faster than several numpy passes. Most images have fewer.
FEW_INSTANCES = 32

_IN_WORDS = {
    'box_not_finite': Message('not finite'),
    'box_no_area': Message('without area'),
    'box_outside': Message('outside the image'),
    'negative': Message('with a corner below 0'),
    'over_edge': Message('over the edge'),
    'beyond': Message('beyond the image'),
    'unit': Message('smaller than a pixel'),
}


class SanitizedInstances(NamedTuple):
    """Result of :meth:`InstanceRule.sanitize`; the arrays have one element per instance."""

    labels: np.ndarray  #: Mapped and clipped labels; the input if nothing changed.
    dropped: Optional[np.ndarray]  #: bool, True for instances to remove; ``None`` to remove no instance.
    moved: Optional[np.ndarray]  #: bool, True for instances to move to the ignored ones; ``None`` to move no instance.
    tally: Tally  #: Counts of seen and sanitized instances.

    @property
    def stays(self) -> Optional[np.ndarray]:
        """Bool mask of instances that are neither dropped nor moved to the ignored ones, or ``None`` if all stay."""
        if self.dropped is None:
            return None if self.moved is None else ~self.moved
        return ~self.dropped if self.moved is None else ~(self.dropped | self.moved)


class InstanceRule(BaseRule):
    """Rule for instances: labels in ``[min_label, num_classes)`` are valid; unlike in label maps, no label is ignored.

    An ignored instance (a crowd) is not trained on: only its box is checked, because assigners use the box.
    ``on_invalid='ignore'`` moves an instance with an invalid label to the ignored ones, ``'drop'`` removes it,
    ``'clip'`` clamps its label, ``'raise'`` raises ``LabelGuardError``. If a box is invalid, ``'raise'`` raises, too;
    the other choices remove the instance: boxes cannot be clamped. ``min_label`` is 1 if 0 is a detector's background.
    """

    kind: ClassVar[str] = 'instances'
    choices: ClassVar[Tuple[str, ...]] = ('ignore', 'drop', 'clip', 'raise')
    #: Definition of a valid box, for errors.
    valid_box: ClassVar[str] = 'finite corners, an area and a part inside the image'

    def __init__(
        self, num_classes: int, on_invalid: str = 'ignore', label_map: Optional[LabelMap] = None, min_label: int = 0
    ) -> None:
        self.min_label = check_int('min_label', min_label)
        super().__init__(num_classes, None, on_invalid, label_map)
        if not 0 <= self.min_label < self.num_classes:
            raise ValueError(f'min_label must be in [0, num_classes={num_classes}), got {min_label}')

    def sanitize(
        self,
        labels: np.ndarray,
        ignored: Optional[np.ndarray] = None,
        faults: Optional[np.ndarray] = None,
        source: Optional[str] = None,
    ) -> SanitizedInstances:
        """Sanitize the labels (N,) of the instances of one image; ``labels`` itself is never modified.

        ``ignored`` (bool, (N,)) is True for instances that are not trained on; ``faults`` (int, (N,)) is the index of
        each box's fault in ``BOX_REASONS``.
        """
        sanitized = self._apply_map(labels)
        invalid = (sanitized < self.min_label) | (sanitized >= self.num_classes)
        dropped = None if faults is None else faults > 0
        trained = [~mask for mask in (dropped, ignored) if mask is not None]
        for mask in trained:
            invalid &= mask
        # Images have few instances: counting them in Python is faster than in numpy.
        values = dict(Counter(labels[invalid].tolist()))
        reasons = (
            {} if faults is None else {BOX_REASONS[code]: n for code, n in Counter(faults.tolist()).items() if code}
        )
        tally = Tally(len(labels), skipped=sum(reasons.values()), values=values, source=source, reasons=reasons)
        invalid_labels = sum(values.values())
        if invalid_labels:
            reasons[LABEL_REASON] = invalid_labels
        if self.label_map:
            tally.mapped = int(np.logical_and.reduce([sanitized != labels, *trained]).sum())
        if self.on_invalid == 'raise' and reasons:
            tally.skipped += invalid_labels
            raise self._build_error(tally, np.flatnonzero(invalid if dropped is None else invalid | dropped).tolist())
        moved = None
        if invalid_labels and self.on_invalid == 'clip':
            tally.remapped += invalid_labels
            sanitized = np.where(invalid, sanitized.clip(self.min_label, self.num_classes - 1), sanitized)
        elif invalid_labels:
            tally.skipped += invalid_labels
            if self.on_invalid == 'ignore':
                moved = invalid
            else:
                dropped = invalid if dropped is None else dropped | invalid
        return SanitizedInstances(sanitized, dropped, moved, tally)

    def are_classes(self, labels: List[int]) -> bool:
        """Return True if all labels are valid and no label map has to be applied."""
        return not self.label_map and (not labels or (min(labels) >= self.min_label and max(labels) < self.num_classes))

    def _apply_map(self, labels: np.ndarray) -> np.ndarray:
        if not self.label_map:
            return labels
        mapped = labels.astype(np.int64)
        for raw, label in self.label_map.items():
            mapped[labels == raw] = label
        return mapped

    def _build_error(self, tally: Tally, positions: List[int]) -> LabelGuardError:
        first = ', '.join(map(str, positions[:5]))
        return LabelGuardError(
            f'{tally.source or "instances"}: {tally.skipped:,} of {tally.total:,} instances are invalid: '
            f'{describe_reasons(tally)}; first at {first}. Valid labels are {self.min_label}..{self.num_classes - 1}, '
            f'a valid box has {self.valid_box}. Correct the annotation, map the label with label_map, or train '
            f'without these instances: on_invalid={self.choices[0]!r}',
            [tally],
            [(position,) for position in positions[:5]],
        )


def describe_reasons(tally: Tally) -> str:
    """Describe values and box faults of a tally: ``'value 600 (2 times), 1 box without area'``."""
    parts = [describe_values(tally.values, others=tally.other_values)] if tally.values else []
    return join(', ', parts + describe_boxes(tally.reasons))


def describe_boxes(reasons: Dict[str, int]) -> List[str]:
    """Describe box faults: ``['1 box without area']``."""
    return [
        Message('{boxes} {fault}', boxes=quantity(count, 'box'), fault=_IN_WORDS.get(reason, reason))
        for reason, count in sorted(reasons.items())
        if reason != LABEL_REASON
    ]


NOT_FINITE, NO_AREA, OUTSIDE = (BOX_REASONS.index(f'box_{name}') for name in ('not_finite', 'no_area', 'outside'))


def find_corner_faults(corners: np.ndarray, sizes: Any) -> np.ndarray:
    """Return the index in ``BOX_REASONS`` of the first fault of each box (x1, y1, x2, y2), 0 if it is valid: int8 (N,).

    ``sizes`` are height and width of the image, or an array (N, 2) with one row per box. If the sizes
    are unknown, pass infinity: then no box is outside.

    Example:
        >>> find_corner_faults(np.array([[0, 0, 5, 5], [0, 0, 5, 0], [8, 0, 9, 1], [0, 0, np.inf, 1]]), (8, 8)).tolist()
        [0, 2, 3, 1]
    """
    left, top, right, bottom = corners.T
    height, width = np.asarray(sizes).T
    finite = np.isfinite(corners).all(axis=1)
    has_area = (right > left) & (bottom > top)
    inside = (right > 0) & (bottom > 0) & (left < width) & (top < height)
    if (finite & has_area & inside).all():  # the usual case
        return np.zeros(len(corners), np.int8)
    faults = np.where(has_area, np.where(inside, 0, OUTSIDE), NO_AREA)
    return np.where(finite, faults, NOT_FINITE).astype(np.int8)
