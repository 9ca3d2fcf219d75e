"""Valid labels of an nnU-Net data set, and the label of excluded voxels."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from mmguard.labels.rules import LabelRule, count_values
from mmguard.labels.tally import Tally

#: Label of invalid voxels if the data set declares no ignore label. nnU-Net itself uses -1 outside of the image, but
#: turns these voxels into background before the guard runs.
EXCLUDED_LABEL = -1


def list_valid_labels(label_manager: Any) -> List[int]:
    """Return the labels that can be trained on, ascending, without the ignore label.

    Args:
        label_manager (LabelManager): nnU-Net's label manager, built from ``dataset.json``.

    Returns:
        list[int]: All declared labels if the data set has regions, else the labels for which the network has an output.
        nnU-Net makes as many outputs as there are labels, so a label after a gap may not have an output.
    """
    labels = [int(label) for label in label_manager.all_labels]
    if label_manager.has_regions:
        return labels
    return [label for label in labels if label < label_manager.num_segmentation_heads]


def find_labels_without_output(label_manager: Any) -> List[int]:
    """Return the declared labels that the network cannot learn because a smaller label is missing."""
    valid = set(list_valid_labels(label_manager))
    return [int(label) for label in label_manager.all_labels if int(label) not in valid]


def list_class_names(label_manager: Any) -> List[str]:
    """Return the names of the labels from 0 to the last valid label; a label without a name is named by its number."""
    names = {label: name for name, label in label_manager.label_dict.items() if isinstance(label, int)}
    return [names.get(label, str(label)) for label in range(list_valid_labels(label_manager)[-1] + 1)]


def ignore_label_of(label_manager: Any) -> int:
    """Return the label of excluded voxels: the declared ignore label, or :data:`EXCLUDED_LABEL`."""
    return EXCLUDED_LABEL if label_manager.ignore_label is None else int(label_manager.ignore_label)


def build_label_rule(label_manager: Any, on_invalid: str = 'ignore') -> LabelRule:
    """Build the rule for a data set's label volumes.

    Args:
        label_manager (LabelManager): nnU-Net's label manager, built from ``dataset.json``.
        on_invalid (str): ``'ignore'`` leaves out invalid labels, ``'clip'`` clamps them to a class, ``'raise'`` raises.
    """
    valid, ignored = list_valid_labels(label_manager), ignore_label_of(label_manager)
    gaps = sorted(set(range(valid[-1])) - set(valid))
    return _RuleWithGaps(valid[-1] + 1, ignored, on_invalid, dict.fromkeys(gaps, ignored))


class _RuleWithGaps(LabelRule):
    """Rule whose ``label_map`` ignores the values in gaps between the labels; these values count as invalid."""

    def sanitize(self, label: np.ndarray, source: Optional[str] = None) -> Tuple[np.ndarray, Tally]:
        sanitized, tally = super().sanitize(label, source)
        if tally.mapped:
            found = count_values(label[np.isin(label, list(self.label_map))])
            tally = tally + Tally(skipped=tally.mapped, values=found, mapped=-tally.mapped)
        return sanitized, tally


class WithIgnoreLabel:
    """Label manager with an ignore label, as if the data set had declared one.

    Args:
        label_manager (LabelManager): nnU-Net's label manager, which provides all other attributes.
        ignore_label (int): The label to ignore.
    """

    has_ignore_label = True

    def __init__(self, label_manager: Any, ignore_label: int) -> None:
        self._label_manager = label_manager
        self.ignore_label = ignore_label

    def __getattr__(self, name: str) -> Any:
        return getattr(self._label_manager, name)
