"""The rule of instances against a rule written out element by element."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmguard import LabelGuardError
from mmguard.labels.instances import BOX_REASONS, InstanceRule, describe_reasons
from mmguard.labels.tally import Tally

Instance = Tuple[int, bool, int]  # label, ignored, fault


def one_by_one(instances: List[Instance], rule: InstanceRule) -> Tuple[List[Optional[int]], List[bool], Tally]:
    """Label (None: removed) and ignore flag of every instance, and what was counted."""
    labels: List[Optional[int]] = []
    flags: List[bool] = []
    tally = Tally(len(instances))
    for label, ignored, fault in instances:
        mapped = rule.label_map.get(label, label)
        flag = ignored
        reason = BOX_REASONS[fault]
        if not fault and not ignored:
            if not 0 <= mapped < rule.num_classes:
                reason = 'label'
                tally.values[label] = tally.values.get(label, 0) + 1
                if rule.on_invalid == 'clip':
                    mapped = min(max(mapped, 0), rule.num_classes - 1)
                    tally.remapped += 1
                else:
                    tally.skipped += 1
                    flag = rule.on_invalid == 'ignore'
            else:
                tally.mapped += mapped != label
        tally.skipped += bool(fault)
        if reason:
            tally.reasons[reason] = tally.reasons.get(reason, 0) + 1
        removed = fault or (reason == 'label' and rule.on_invalid == 'drop')
        labels.append(None if removed else mapped)
        flags.append(flag)
    return labels, flags, tally


instances_lists = st.lists(st.tuples(st.integers(-2, 8), st.booleans(), st.integers(0, 3)), max_size=12)


@given(
    instances=instances_lists,
    on_invalid=st.sampled_from(['ignore', 'drop', 'clip']),
    label_map=st.sampled_from([None, {7: 1}, {0: 2, 2: 0}]),
)
def test_agrees_with_a_rule_one_by_one(
    instances: List[Instance], on_invalid: str, label_map: Optional[Dict[int, int]]
) -> None:
    rule = InstanceRule(4, on_invalid, label_map)
    given_labels = np.array([label for label, _, _ in instances], dtype=np.int64)
    before = given_labels.copy()
    ignored = np.array([flag for _, flag, _ in instances], dtype=bool)
    faults = np.array([fault for _, _, fault in instances], dtype=np.int64)
    sanitized = rule.sanitize(given_labels, ignored, faults if faults.any() else None)
    labels, flags, tally = one_by_one(instances, rule)
    kept = [label is not None for label in labels]
    assert (np.ones(len(kept), bool) if sanitized.dropped is None else ~sanitized.dropped).tolist() == kept
    assert [int(label) for label, keep in zip(sanitized.labels, kept) if keep] == [n for n in labels if n is not None]
    moved = ignored if sanitized.moved is None else ignored | sanitized.moved
    assert [bool(flag) for flag, keep in zip(moved, kept) if keep] == [f for f, keep in zip(flags, kept) if keep]
    assert sanitized.tally == tally
    assert sum(tally.reasons.values()) == tally.skipped + (tally.reasons.get('label', 0) if on_invalid == 'clip' else 0)
    assert np.array_equal(given_labels, before), 'the loaded labels may be shared'


def test_clean_labels_come_back_as_they_are() -> None:
    labels = np.array([0, 3, 1])
    sanitized = InstanceRule(4).sanitize(labels, source='a.jpg')
    assert sanitized.labels is labels
    assert (sanitized.dropped, sanitized.moved, sanitized.tally) == (None, None, Tally(3, source='a.jpg'))


def test_raise_names_file_values_boxes_and_positions(refuses: Any) -> None:
    rule = InstanceRule(264, 'raise')
    labels, faults = np.array([5, 264, 600, 600, 3]), np.array([0, 0, 0, 0, 2])
    with refuses(LabelGuardError) as caught:
        rule.sanitize(labels, None, faults, 'dir/a.jpg')
    assert caught.value.tallies == [Tally(5, 4, 0, {600: 2, 264: 1}, 'dir/a.jpg', {'label': 3, 'box_no_area': 1})]
    assert caught.value.positions == [(1,), (2,), (3,), (4,)]
    assert rule.sanitize(labels[:1]).tally == Tally(1)
    with pytest.raises(LabelGuardError) as caught:
        rule.sanitize(np.full(9, 300))
    assert caught.value.positions == [(0,), (1,), (2,), (3,), (4,)]


def test_the_label_of_an_ignored_instance_is_not_looked_at() -> None:
    sanitized = InstanceRule(2, 'raise').sanitize(np.array([0, 9]), np.array([False, True]))
    assert not sanitized.tally


@pytest.mark.parametrize(
    ('name', 'value', 'error'),
    [
        ('num_classes', 0, ValueError),
        ('num_classes', '2', TypeError),
        ('on_invalid', 'skip', ValueError),
        ('label_map', {3: 2}, ValueError),
        ('label_map', {'cat': 2}, TypeError),
        ('min_label', 'a', TypeError),
        ('min_label', -1, ValueError),
        ('min_label', 2, ValueError),
    ],
)
def test_misuse_is_reported(name: str, value: Any, error: type, refuses: Any) -> None:
    with refuses(error, match=f'^{name}'):
        InstanceRule(**{'num_classes': 2, name: value})


def test_no_reason_has_no_text() -> None:
    assert describe_reasons(Tally()) == ''
