"""Rules of label maps and of instances, against rules written out element by element."""

from __future__ import annotations

import re
import time
import timeit
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mmguard.labels.instances import BOX_REASONS, InstanceRule
from mmguard.labels.rules import OTHERS, LabelRule, count_values, describe_values
from mmguard.labels.tally import LabelGuardError, Tally

DTYPES = [np.uint8, np.uint16, np.int8, np.int16, np.int32, np.int64, np.uint32, np.uint64]


@st.composite
def maps(draw: Any) -> np.ndarray:
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    limits = np.iinfo(dtype)
    near = st.sampled_from([v for v in (-1, 0, 1, 2, 3, 19, 100, 255) if limits.min <= v <= limits.max])
    anything = st.integers(max(int(limits.min), -(2**40)), min(int(limits.max), 2**40))
    shape = draw(hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6))
    return draw(hnp.arrays(dtype, shape, elements=st.one_of(near, anything)))


def element_by_element(value: int, rule: LabelRule) -> Any:
    """The contract, one label at a time: (sanitized, what was done)."""
    if value in rule.label_map:
        sanitized = rule.label_map[value]
        if sanitized == value:
            return value, 'kept'
        return sanitized, 'mapped'
    if OTHERS in rule.label_map and value != rule.ignore_index:
        return rule.label_map[OTHERS], 'kept' if value == rule.label_map[OTHERS] else 'mapped'
    if 0 <= value < rule.num_classes or value == rule.ignore_index:
        return value, 'kept'
    if rule.on_invalid == 'clip':
        return min(max(value, 0), rule.num_classes - 1), 'remapped'
    return rule.ignore_index, 'skipped'


@given(
    label=maps(),
    num_classes=st.sampled_from([1, 2, 3, 19, 300]),
    ignore_index=st.sampled_from([255, 0, -1, -100, 1000]),
    on_invalid=st.sampled_from(['ignore', 'clip']),
    mapped=st.sampled_from([{}, {19: 0}, {0: 'ignore', 100: 0}, {-1: 0, 2**40: 0}, {'*': 'ignore'}, {19: 0, '*': 0}]),
)
@settings(derandomize=True, deadline=None, max_examples=400)
def test_every_label_becomes_what_the_contract_says_and_is_counted_once(
    label: np.ndarray, num_classes: int, ignore_index: int, on_invalid: str, mapped: Dict[Any, Any]
) -> None:
    label_map = {raw: ignore_index if to == 'ignore' else to for raw, to in mapped.items()}
    rule = LabelRule(num_classes, ignore_index, on_invalid, label_map)
    before = label.copy()
    sanitized, tally = rule.sanitize(label, 'a.png')
    assert np.array_equal(label, before)
    expected = [element_by_element(int(value), rule) for value in label.ravel()]
    assert sanitized.shape == label.shape
    assert [int(value) for value in sanitized.ravel()] == [value for value, _ in expected]
    done = [what for _, what in expected]
    assert (tally.total, tally.skipped, tally.remapped) == (label.size, done.count('skipped'), done.count('remapped'))
    assert tally.mapped == done.count('mapped')
    assert tally.source == 'a.png'
    invalid = [value for value, what in zip(label.ravel(), done) if what in ('skipped', 'remapped')]
    assert Tally(values=count_values(np.array(invalid, dtype=label.dtype))).values == tally.values


def test_all_other_values_cost_no_more_than_a_table_that_names_them() -> None:
    label = np.random.default_rng(0).integers(0, 34, (1024, 2048)).astype(np.uint8)
    named = LabelRule(19, label_map={value: 255 if value > 18 else value for value in range(34)})
    others = LabelRule(19, label_map={**{value: value for value in range(19)}, '*': 255})
    assert np.array_equal(named.sanitize(label)[0], others.sanitize(label)[0])

    def seconds(rule: LabelRule) -> float:
        return min(timeit.repeat(lambda: rule.sanitize(label), timer=time.process_time, number=1))

    assert seconds(others) <= 2 * seconds(named)


@pytest.mark.parametrize('dtype', DTYPES)
def test_a_clean_map_is_returned_itself(dtype: Any) -> None:
    label = np.array([[0, 1, 2], [2, 1, 0]], dtype=dtype)
    sanitized, tally = LabelRule(3).sanitize(label)
    assert np.shares_memory(sanitized, label)
    assert not tally
    assert tally.total == 6


@pytest.mark.parametrize('low', ['least', 0, 'greatest'])
@pytest.mark.parametrize('dtype', DTYPES)
def test_values_of_every_dtype_are_counted(dtype: Any, low: Any) -> None:
    limits = np.iinfo(dtype)
    first = {'least': int(limits.min), 'greatest': int(limits.max) - 3}.get(low, low)
    label = np.array([[first, first + 3], [first, first + 1]], dtype=dtype)
    assert count_values(label) == {first: 2, first + 1: 1, first + 3: 1}


@pytest.mark.parametrize('layout', [np.asfortranarray, lambda a: a[::2, ::3], lambda a: a.T])
def test_any_memory_layout(layout: Any) -> None:
    label = layout(np.arange(48, dtype=np.int32).reshape(6, 8))
    sanitized, tally = LabelRule(20).sanitize(label)
    assert np.array_equal(sanitized, np.where(label < 20, label, 255))
    assert tally.skipped == (label >= 20).sum()


def test_raise_names_file_values_counts_positions_and_the_way_out(refuses: Any) -> None:
    label = np.zeros((4, 5), np.uint8)
    label[2, 3] = label[3, 0] = 19
    label[0, 4] = 200
    with refuses(LabelGuardError) as caught:
        LabelRule(19, on_invalid='raise').sanitize(label, 'city/a.png')
    assert caught.value.positions == [(0, 4), (2, 3), (3, 0)]
    assert caught.value.tallies[0].values == {19: 2, 200: 1}


def test_raise_applies_the_label_map_first() -> None:
    rule = LabelRule(2, on_invalid='raise', label_map={7: 1})
    assert rule.sanitize(np.array([[7, 0]]))[0].tolist() == [[1, 0]]
    with pytest.raises(LabelGuardError) as caught:
        rule.sanitize(np.array([[7, 8]]))
    assert caught.value.positions == [(0, 1)]
    assert caught.value.tallies == [Tally(2, 1, values={8: 1})]


@pytest.mark.parametrize(
    ('name', 'value', 'error'),
    [
        ('num_classes', 0, ValueError),
        ('num_classes', 2.0, TypeError),
        ('num_classes', True, TypeError),
        ('ignore_index', None, TypeError),
        ('ignore_index', -(2**63) - 1, ValueError),
        ('ignore_index', 2**63, ValueError),
        ('on_invalid', 'drop', ValueError),
        ('label_map', {1: 2}, ValueError),
        ('label_map', {1: 'road'}, TypeError),
    ],
)
def test_arguments_that_cannot_be_used_are_named(name: str, value: Any, error: type, refuses: Any) -> None:
    with refuses(error, match=f'^{name}'):
        LabelRule(**{'num_classes': 2, name: value})


def test_the_least_and_the_greatest_label_may_be_ignored() -> None:
    for ignored in (-(2**63), 2**63 - 1, 0, 1):
        label = np.array([[0, 1, 2, ignored]])
        assert LabelRule(2, ignored).sanitize(label)[1] == Tally(4, 1, values={2: 1})


def test_label_map_keys_may_be_strings_as_in_json_configs() -> None:
    assert LabelRule(2, label_map={'7': '1'}).label_map == {7: 1}


@pytest.mark.parametrize(
    ('values', 'limits', 'numbers'),
    [
        ({11: 2503}, {}, '11 2,503'),
        ({1: 1, 2: 5}, {}, '2 5 1 1'),
        (dict.fromkeys(range(10), 1), {'limit': 2}, '0 1 1 1 8'),
        ({1: 2, 2: 1}, {'limit': 1, 'others': 4}, '1 2 5'),
    ],
)
def test_values_are_described_most_frequent_first(values: Dict[int, int], limits: Dict, numbers: str) -> None:
    assert re.findall(r'[\d,]*\d', describe_values(values, **limits)) == numbers.split()


def test_a_true_is_1_whatever_its_byte() -> None:
    """Pillow hands out arrays of bool whose True is 255."""
    label = np.array([[255, 0]], dtype=np.uint8).view(bool)
    sanitized, tally = LabelRule(2).sanitize(label)
    assert (sanitized.tolist(), tally.skipped) == ([[1, 0]], 0)


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
