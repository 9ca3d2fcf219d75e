"""The objects of a point cloud, or of camera images that are labelled in space (MMDetection3D)."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

import numpy as np
import torch

from mmguard.labels.instances import NO_AREA, NOT_FINITE, InstanceRule
from mmguard.labels.tally import Tally

#: What mmdet3d's data sets write for a category that the class list leaves out; ``ObjectNameFilter`` removes it.
UNLISTED = -1
#: Centre, size and angle of a box; velocities behind them may be unknown (NaN), which heads expect.
_GEOMETRY = 7
_SIZE = slice(3, 6)


class SanitizedObjects(NamedTuple):
    """What :func:`sanitize_objects` returns.

    Attributes:
        labels (np.ndarray): Mapped and clipped labels, int64 (N,).
        stays (np.ndarray, optional): bool (N,), what is trained on; ``None``: all of them.
        tally (Tally): What was seen and sanitized.
    """

    labels: np.ndarray
    stays: Optional[np.ndarray]
    tally: Tally


def sanitize_objects(
    rule: InstanceRule,
    labels: np.ndarray,
    boxes: Any = None,
    known: Optional[np.ndarray] = None,
    source: Optional[str] = None,
) -> SanitizedObjects:
    """Judges the objects of one sample. No detector of mmdet3d has ignored objects: what takes no part is removed.

    The label -1 is no mistake: it stands for categories that the user's class list leaves out. Such objects are
    removed and count as mapped.

    Args:
        rule (InstanceRule): Which labels are valid.
        labels (np.ndarray): int64 (N,).
        boxes (BaseInstance3DBoxes, Tensor or np.ndarray, optional): N boxes to be judged, (x, y, z, three sizes, yaw,
            ...) in metres.
        known (np.ndarray, optional): bool (N,), objects that were judged already.
        source (str, optional): The file, for messages and the tally.

    Raises:
        LabelGuardError: An invalid label or box, with ``on_invalid='raise'``.
    """
    judged = np.zeros(len(labels), bool) if known is None else known
    listed = judged | (labels != UNLISTED) if UNLISTED not in rule.label_map else np.ones(len(labels), bool)
    faults = None
    if boxes is not None:
        faults = np.where(listed, box_faults_3d(boxes), 0)
    sanitized = rule.sanitize(labels, judged | ~listed, faults, source)
    stays = sanitized.stays
    if not listed.all():
        sanitized.tally.mapped += int((~listed).sum())
        stays = listed if stays is None else stays & listed
    return SanitizedObjects(sanitized.labels, stays, sanitized.tally)


def sanitize_projected(
    rule: InstanceRule, labels: np.ndarray, found: SanitizedObjects, raw: np.ndarray, source: Optional[str]
) -> Tuple[np.ndarray, SanitizedObjects]:
    """The same for objects that have boxes in an image as well, whose labels may be others.

    Args:
        labels (np.ndarray): int64 (N,), of the boxes in the image.
        found (SanitizedObjects): Of the objects in space.
        raw (np.ndarray): int64 (N,), their labels before.

    Returns:
        tuple: the labels in the image, and what stays of both; an object whose labels agree is counted once.
    """
    same = labels == raw
    also = sanitize_objects(rule, labels, None, same if found.stays is None else same | ~found.stays, source)
    both = [stays for stays in (found.stays, also.stays) if stays is not None]
    stays = both[0] & both[-1] if both else None
    tally = found.tally.then(also.tally)
    return np.where(same, found.labels, also.labels), SanitizedObjects(found.labels, stays, tally)


def box_faults_3d(boxes: Any) -> np.ndarray:
    """What is wrong with each box: int8 (N,), its place in ``BOX_REASONS``; 0: nothing.

    Example:
        >>> box_faults_3d(np.array([[0, 0, 0, 4, 2, 1, 0.5], [0, 0, 0, 4, 0, 1, 0.5]])).tolist()
        [0, 2]
    """
    values = getattr(boxes, 'tensor', boxes)
    values = values.numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    faults = np.zeros(len(values), np.int8)
    if not len(values):
        return faults
    faults[~(values[:, _SIZE] > 0).all(axis=1)] = NO_AREA
    faults[~np.isfinite(values[:, :_GEOMETRY]).all(axis=1)] = NOT_FINITE
    return faults
