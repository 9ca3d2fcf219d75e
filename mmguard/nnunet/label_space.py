"""Which labels are valid in an nnU-Net data set, and what stands where a voxel had another."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from mmguard.labels.space import LabelRule, value_counts
from mmguard.labels.tally import Tally

#: Stands for an invalid voxel where the data set declares no ignore label. nnU-Net marks what lies outside of the image
#: with it and turns it into background before the guard looks, so no voxel has it any more.
MARK = -1


def valid_labels(label_manager: Any) -> List[int]:
    """The labels that can be trained on, ascending; the ignore label is none of them.

    Args:
        label_manager (LabelManager): nnU-Net's, made of ``dataset.json``.

    Returns:
        list[int]: With regions all labels that they name. Else those that have an output of the network: nnU-Net wants
        labels without gaps, and makes ``len(labels)`` outputs.
    """
    labels = [int(label) for label in label_manager.all_labels]
    if label_manager.has_regions:
        return labels
    return [label for label in labels if label < label_manager.num_segmentation_heads]


def labels_without_output(label_manager: Any) -> List[int]:
    """Declared labels that the network cannot learn, as there is a gap below them."""
    valid = set(valid_labels(label_manager))
    return [int(label) for label in label_manager.all_labels if int(label) not in valid]


def class_names(label_manager: Any) -> List[str]:
    """The names of the labels from 0 to the last valid one; the number where no name is for one label alone, as with
    regions.
    """
    names = {label: name for name, label in label_manager.label_dict.items() if isinstance(label, int)}
    return [names.get(label, str(label)) for label in range(valid_labels(label_manager)[-1] + 1)]


def ignored_label(label_manager: Any) -> int:
    """The label of voxels that are left out: the declared ignore label, or :data:`MARK`."""
    return MARK if label_manager.ignore_label is None else int(label_manager.ignore_label)


def label_rule(label_manager: Any, on_invalid: str = 'ignore') -> LabelRule:
    """The rule for a data set's label volumes.

    Args:
        label_manager (LabelManager): nnU-Net's, made of ``dataset.json``.
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'``.
    """
    valid, ignored = valid_labels(label_manager), ignored_label(label_manager)
    gaps = sorted(set(range(valid[-1])) - set(valid))
    return _RuleWithGaps(valid[-1] + 1, ignored, on_invalid, dict.fromkeys(gaps, ignored))


class _RuleWithGaps(LabelRule):
    """Its ``label_map`` holds the gaps between the labels. No user asked for it: what it sends away is invalid."""

    def sanitize(self, label: np.ndarray, source: Optional[str] = None) -> Tuple[np.ndarray, Tally]:
        sanitized, tally = super().sanitize(label, source)
        if tally.mapped:
            found = value_counts(label[np.isin(label, list(self.label_map))])
            tally = tally + Tally(skipped=tally.mapped, values=found, mapped=-tally.mapped)
        return sanitized, tally


class WithIgnoreLabel:
    """A label manager as it would be, had the data set declared an ignore label.

    Args:
        label_manager (LabelManager): nnU-Net's; whatever is not said here is asked of it.
        ignore_label (int): The label to ignore.
    """

    has_ignore_label = True

    def __init__(self, label_manager: Any, ignore_label: int) -> None:
        self._label_manager = label_manager
        self.ignore_label = ignore_label

    def __getattr__(self, name: str) -> Any:
        return getattr(self._label_manager, name)
