"""Objects of a point cloud, or of camera images labelled in space (MMDetection3D)."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

import numpy as np
import torch

from mmguard.labels.instances import NO_AREA, NOT_FINITE, InstanceRule
from mmguard.labels.tally import Tally

#: Label that mmdet3d's data sets write for a category outside the class list; ``ObjectNameFilter`` removes it.
UNLISTED = -1
#: Centre, size and angle of a box; the velocities that follow may be unknown (NaN), which heads expect.
_GEOMETRY = 7
_SIZE = slice(3, 6)


class SanitizedObjects(NamedTuple):
    """Result of :func:`sanitize_objects`.

    Attributes:
        labels (np.ndarray): Mapped and clipped labels, int64 (N,).
        stays (np.ndarray, optional): bool (N,), objects to train on; ``None``: all of them.
        tally (Tally): Counts of seen and sanitized objects.
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
    """Sanitize the objects of one sample. mmdet3d's detectors have no ignored objects: what takes no part is removed.

    The label -1 is not a mistake: it marks categories outside the user's class list. Such objects are
    removed and count as mapped.

    Args:
        rule (InstanceRule): Defines the valid labels.
        labels (np.ndarray): int64 (N,).
        boxes (BaseInstance3DBoxes, Tensor or np.ndarray, optional): N boxes to check, (x, y, z, three sizes, yaw,
            ...) in metres.
        known (np.ndarray, optional): bool (N,), objects that were checked already.
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
    """Sanitize the boxes in an image that belong to the objects, and may have other labels.

    Args:
        labels (np.ndarray): int64 (N,), labels of the boxes in the image.
        found (SanitizedObjects): The objects in space.
        raw (np.ndarray): int64 (N,), their original labels.

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
    """Find the fault of each box: int8 (N,), index in ``BOX_REASONS``; 0: no fault.

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
