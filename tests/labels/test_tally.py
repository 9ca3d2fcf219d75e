"""Names in a log are below the data root; on a screen they are paths that can be opened."""

from __future__ import annotations

import functools
import operator
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from put_file import put
from window_stats import make_stats

from mmguard.labels.tally import SEVERAL, VALUES, Tally, find_path, make_relative
from mmguard.log.messages import summarize_loop
from mmguard.log.run_log import RunLog
from mmguard.log.statistics import group_tallies

counts = st.integers(0, 10**9)
tallies = st.builds(
    Tally,
    total=counts,
    skipped=counts,
    remapped=counts,
    values=st.dictionaries(st.integers(-(2**40), 2**40), st.integers(1, 10**6), max_size=4),
    source=st.sampled_from([None, 'a.png', 'b.png', SEVERAL]),
)


@given(st.lists(tallies, max_size=6), st.randoms(use_true_random=False))
@settings(derandomize=True, deadline=None)
def test_tallies_merge_in_any_order_and_grouping(several: list, shuffler: random.Random) -> None:
    expected = functools.reduce(operator.add, several, Tally())
    pool = list(several)
    while len(pool) > 1:
        left = pool.pop(shuffler.randrange(len(pool)))
        right = pool.pop(shuffler.randrange(len(pool)))
        pool.append(left + right)
    assert (pool[0] if pool else Tally()) == expected


@given(tallies)
@settings(derandomize=True, deadline=None)
def test_the_empty_tally_is_neutral_and_adding_changes_no_operand(tally: Tally) -> None:
    before = pickle.loads(pickle.dumps(tally))
    assert Tally() + tally == tally + Tally() == before
    tally + Tally(values={1: 1})
    assert tally == before


def test_every_count_is_added() -> None:
    one = Tally(1, 2, 3, {1: 1}, 'a', {'label': 1}, 4, 5)
    other = Tally(10, 20, 30, {1: 2, 2: 3}, 'b', {'label': 2, 'box_outside': 1}, 40, 50)
    assert one + other == Tally(11, 22, 33, {1: 3, 2: 3}, SEVERAL, {'label': 3, 'box_outside': 1}, 44, 55)
    assert other.merge_second_guard(one) == Tally(
        10, 22, 33, {1: 3, 2: 3}, SEVERAL, {'label': 3, 'box_outside': 1}, 44, 55
    )
    assert other.to_json() == {
        'source': 'b',
        'total': 10,
        'skipped': 20,
        'remapped': 30,
        'values': {'1': 2, '2': 3},
        'mapped': 40,
        'other_values': 50,
        'reasons': {'box_outside': 1, 'label': 2},
    }


def test_only_a_tally_with_something_sanitized_is_true() -> None:
    assert not Tally(total=5)
    assert Tally(skipped=1)
    assert Tally(remapped=1)


def test_what_a_label_map_did_is_no_offence() -> None:
    tally = Tally(total=5, mapped=3)
    assert not tally
    assert tally.changed
    assert (tally + tally).mapped == 6
    assert Tally.from_json(tally.to_json()) == tally


@given(st.lists(st.dictionaries(st.integers(-500, 500), st.integers(1, 10**6), max_size=80), max_size=4))
@settings(derandomize=True, deadline=None)
def test_only_the_most_frequent_values_are_counted_one_by_one(several: list) -> None:
    made = [Tally(skipped=sum(values.values()), values=values) for values in several]
    before = [len(values) for values in several]
    total = functools.reduce(operator.add, made, Tally())
    for tally in (*made, total):
        assert len(tally.values) <= VALUES
        assert sum(tally.values.values()) + tally.other_values == tally.skipped
    assert [len(values) for values in several] == before  # what was handed in is not written to
    for tally, values in zip(made, several):
        assert sorted(tally.values.values()) == sorted(values.values())[-VALUES:]


def test_a_path_is_that_of_the_one_root_that_has_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ('first/a.png', 'first/b.png', 'second/b.png', 'third/c.png', 'here.png'):
        put(tmp_path / file, b'')
    monkeypatch.chdir(tmp_path)
    roots = ['first', str(tmp_path / 'second'), 'first/../first/']
    assert find_path('a.png', roots) in ('first/a.png', 'first/../first/a.png')
    assert find_path('b.png', roots) == 'b.png'  # of two files, neither
    assert find_path('b.png', ['third', roots[1]]) == str(tmp_path / 'second/b.png')
    assert find_path('here.png', roots) == 'here.png'
    assert find_path('gone.png', roots) == 'gone.png'
    assert find_path(str(tmp_path / 'first/a.png'), roots) == str(tmp_path / 'first/a.png')
    assert make_relative('first/a.png', ['first']) == 'a.png'


def test_tables_and_the_page_name_files_that_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    put(Path('data/labels/a.png'), b'')
    log = RunLog('run')
    log.begin('train', {'data_roots': ['data']}, ['data'])
    found = Tally(9, 4, 0, {11: 4}, 'data/labels/a.png')
    log.see('train', {'iter': 1}, make_stats(1, 1, 1, 1, Tally(9, 4), offending=group_tallies(pixels=[found])))
    log.end('train')
    assert '"source": "labels/a.png"' in Path('run/label_guard.jsonl').read_text()
    assert '  data/labels/a.png (11: 4)' in summarize_loop('train', log.modes['train'], 5, log.lines)
    pytest.importorskip('rich')
    from mmguard.cli import main

    assert main(['report', 'run']) == 1
    assert '  data/labels/a.png (11: 4)' in capsys.readouterr().out
