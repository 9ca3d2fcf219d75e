"""What is valid in an nnU-Net data set."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip('nnunetv2')

import numpy as np
from nnunetv2.utilities.label_handling.label_handling import LabelManager
from small_nnunet import IGNORING, IGNORING_REGIONS, PLAIN, REGIONS

from mmguard.nnunet.label_space import (
    MARK,
    WithIgnoreLabel,
    ignored_label,
    label_rule,
    labels_without_output,
    valid_labels,
)


def manager(labels: Any) -> LabelManager:
    return LabelManager(labels, [1, 2])


@pytest.mark.parametrize(
    ('labels', 'valid', 'ignored'),
    [
        (PLAIN, [0, 1, 2], MARK),
        (IGNORING, [0, 1, 2], 3),
        (REGIONS, [0, 1, 2], MARK),
        (IGNORING_REGIONS, [0, 1, 2], 3),
        # Labels with a gap: three outputs, so that 5 has none, and 2 would train an output that nobody declared.
        ({'background': 0, 'a': 1, 'b': 5}, [0, 1], MARK),
        # Regions may leave a gap, as BraTS' own labels do: outputs are regions there.
        ({'background': 0, 'whole': [1, 2, 4], 'core': [1, 4]}, [0, 1, 2, 4], MARK),
    ],
)
def test_valid_are_the_labels_that_can_be_trained(labels: Any, valid: list, ignored: int) -> None:
    described = manager(labels)
    assert valid_labels(described) == valid
    assert ignored_label(described) == ignored
    volume = np.array([*range(-3, 9), 255, 32767], dtype=np.int16)
    sanitized, tally = label_rule(described).sanitize(volume)
    wanted = [v if v in valid or v == ignored else ignored for v in volume.tolist()]
    assert sanitized.tolist() == wanted
    assert tally.values == {v: 1 for v in volume.tolist() if v not in valid and v != ignored}
    assert tally.skipped == len(tally.values)


def test_labels_above_a_gap_have_no_output() -> None:
    assert labels_without_output(manager({'background': 0, 'a': 1, 'b': 5, 'c': 7})) == [5, 7]
    assert labels_without_output(manager(IGNORING)) == []
    assert labels_without_output(manager({'background': 0, 'whole': [1, 2, 4], 'core': [1, 4]})) == []


def test_clip_leads_into_the_declared_labels() -> None:
    sanitized, tally = label_rule(manager(PLAIN), 'clip').sanitize(np.array([0, 7, -9, 2], dtype=np.int16))
    assert sanitized.tolist() == [0, 2, 0, 2]
    assert (tally.skipped, tally.remapped) == (0, 2)


def test_a_manager_with_an_ignore_label_is_otherwise_the_same() -> None:
    plain = manager(PLAIN)
    ignoring = WithIgnoreLabel(plain, MARK)
    assert (ignoring.has_ignore_label, ignoring.ignore_label) == (True, MARK)
    assert ignoring.num_segmentation_heads == plain.num_segmentation_heads == 3
    assert not plain.has_ignore_label
