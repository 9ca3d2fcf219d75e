from __future__ import annotations

import tracemalloc
from collections import Counter
from typing import Dict, List, Tuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmguard.labels.tally import Tally
from mmguard.log import loop_stats
from mmguard.log.loop_stats import PerFileStats

FOUND = st.lists(
    st.tuples(
        st.sampled_from(['a', 'b', '/a', 'x/a', 'x/b', 'x//a', '/x/a', 'y/']),
        st.sampled_from(['pixels', 'instances']),
        st.integers(0, 9),
        st.integers(0, 9),
    ),
    max_size=40,
)


@given(FOUND, st.integers(1, 9))
@settings(derandomize=True, deadline=None)
def test_counts_and_order_are_those_of_a_plain_sum(found: List[Tuple[str, str, int, int]], number: int) -> None:
    files = PerFileStats()
    files.see('clean')
    sums: Dict[str, Counter] = {'pixels': Counter(), 'instances': Counter()}
    for name, kind, skipped, remapped in found:
        if skipped + remapped:
            files.add(kind, Tally(99, skipped, remapped, {7: skipped + remapped}, name))
            sums[kind][name] += skipped + remapped
    for kind, count in sums.items():
        ranked = sorted(count.items(), key=lambda item: (-item[1], item[0]))
        worst = files.worst(kind, number)
        assert [(tally.source, tally.skipped + tally.remapped) for tally in worst] == ranked[:number]
        assert all(tally.values == {7: tally.skipped + tally.remapped} for tally in worst)
        assert files.number(kind) == len(count)
    assert files.offending == len(sums['pixels'].keys() | sums['instances'].keys())
    assert len(files) == files.offending + 1


def test_the_values_of_files_far_from_the_worst_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_stats, 'DETAILED', 5)
    files = PerFileStats()
    for number in range(100):
        files.add('pixels', Tally(9, number + 1, 0, {11: number + 1}, f'{number:03}'))
    files.add('pixels', Tally(9, 1000, 0, {12: 1000}, '000'))
    first, *others = files.worst('pixels', 100)
    assert first == Tally(9, 1001, 0, {12: 1000}, '000', other_values=1)
    assert [tally.source for tally in others] == [f'{number:03}' for number in range(99, 0, -1)]
    assert all(tally.values == {11: tally.skipped} for tally in others[:4])
    assert all(sum(tally.values.values()) + tally.other_values == tally.skipped for tally in others)


def test_a_file_that_offends_again_in_the_same_way() -> None:
    files = PerFileStats()
    asked = [
        ({11: 3}, {}, False),
        ({11: 3}, {}, True),
        ({11: 9}, {}, True),  # one value: the sums give its count
        ({12: 9}, {}, False),
        ({11: 1, 12: 2}, {}, False),
        ({11: 1, 12: 2}, {}, True),
        ({11: 2, 12: 2}, {}, False),
        ({11: 2}, {'label': 2}, False),
        ({11: 2}, {'label': 2}, True),
        ({11: 2}, {'label': 2, 'box_no_area': 1}, False),
        ({11: 2}, {'label': 2, 'box_no_area': 1}, False),
    ]
    for values, reasons, expected in asked:
        tally = Tally(99, sum(values.values()), values=values, source='a.png', reasons=reasons)
        assert files.add('pixels', tally) is expected, values
    assert not files.add('pixels', Tally(9, 3, 0, {11: 3}, 'b.png'))
    assert not files.add('instances', Tally(9, 3, 0, {11: 3}, 'b.png'))


def test_ten_thousand_offending_files_take_less_than_4_mb() -> None:
    tracemalloc.start()
    try:
        files = PerFileStats()
        for number in range(10_000):
            name = f'gtFine/train/aachen/aachen_{number:06d}_000019_gtFine_labelTrainIds.png'
            files.add('pixels', Tally(9, 2, 0, {11: 1, number: 1}, name))
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()
    assert (files.number('pixels'), len(files.worst('pixels', 20))) == (10_000, 20)


def test_files_of_a_later_loop_count_once() -> None:
    first, second = PerFileStats(), PerFileStats()
    first.see('clean')
    first.add('pixels', Tally(9, 1, 0, {7: 1}, 'a'))
    second.add('pixels', Tally(9, 1, 0, {7: 1}, 'a'))
    second.add('pixels', Tally(9, 1, 0, {7: 1}, 'clean'))
    second.see('new')
    first.merge(second)
    assert (len(first), first.offending) == (3, 2)
