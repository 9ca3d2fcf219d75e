"""What of ``label_guard.json`` can be read, whatever stands in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmguard.log.totals import KINDS, LoopTotals, LossCount
from mmguard.report.logged_run import read_run
from mmguard.tally import Tally

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
TOTALS = LoopTotals(
    iterations=9, files=4, kinds={'pixels': Tally(90, 3), 'instances': Tally()}, losses={'h.loss': LossCount(9, 1)}
)
GUARD = dict(kind='pixels', num_classes=5, ignore_index=250, on_invalid='ignore', label_map={'7': 0})


def mode(**more: Any) -> Any:
    return dict(
        guards=[GUARD], losses={'h.loss': dict(num_classes=3, ignore_index=255)}, classes=['a'], data_roots=['/d'],
        ended=True, iter=9, totals=TOTALS.to_json(), **more,
    )  # fmt: skip


def read(path: Path, *runs: Any) -> Any:
    path.write_text(json.dumps(dict(format=1, runs=list(runs))))
    return read_run([path])


def run(**modes: Any) -> Any:
    return dict(world_size=2, modes=modes)


def test_the_guard_says_what_is_valid(tmp_path: Path) -> None:
    space = read(tmp_path / 'r.json', run(train=mode())).modes['train'].space('pixels')
    assert (space.num_classes, space.ignore_index, space.label_map) == (5, 250, {7: 0})
    assert (space.class_names, space.data_roots) == (['a'], ['/d'])


def test_without_a_guard_of_the_kind_the_loss_that_met_others_does(tmp_path: Path) -> None:
    train = read(tmp_path / 'r.json', run(train=mode())).modes['train']
    assert train.space('instances').num_classes == 3
    train.totals.losses['h.loss'] = LossCount(9)
    assert train.space('instances') is None


def test_runs_in_one_folder_add_up(tmp_path: Path) -> None:
    read_twice = read(tmp_path / 'r.json', run(train=mode()), run(train=mode(), val=mode(step=40)))
    assert read_twice.modes['train'].totals.kinds['pixels'] == Tally(180, 6)
    assert read_twice.modes['val'].place == 40
    assert (read_twice.ranks, read_twice.world_size) == (1, 2)


def test_of_several_ranks_nobody_knows_how_many_files_there_were(tmp_path: Path) -> None:
    paths = [tmp_path / 'r.json', tmp_path / 'r.rank1.json']
    for path in paths:
        read(path, run(train=mode()))
    both = read_run(paths)
    assert (both.ranks, both.modes['train'].totals.iterations, both.modes['train'].totals.files) == (2, 18, 0)


def test_a_damaged_run_adds_nothing(tmp_path: Path) -> None:
    damaged = run(train=mode(), val=dict(mode(), totals=3))
    found = read(tmp_path / 'r.json', damaged)
    assert found.modes == {}
    assert 'r.json is left out' in found.problems[0]


PLACES = ('run', 'modes', 'train', 'guards', 'guard', 'label_map', 'losses', 'classes', 'totals', 'pixels', 'iter')


@given(junk=JSON, place=st.sampled_from(PLACES))
def test_no_json_crashes_the_reader(tmp_path_factory: pytest.TempPathFactory, junk: Any, place: str) -> None:
    train = mode()
    whole = run(train=train)
    if place == 'run':
        whole = junk
    elif place == 'modes':
        whole['modes'] = junk
    elif place == 'train':
        whole['modes']['train'] = junk
    elif place == 'guard':
        train['guards'] = [junk]
    elif place == 'label_map':
        train['guards'] = [dict(GUARD, label_map=junk)]
    elif place == 'pixels':
        train['totals']['pixels'] = junk
    else:
        train[place] = junk
    found = read(tmp_path_factory.mktemp('any') / 'r.json', whole)
    for one in found.modes.values():
        for kind in KINDS:
            one.space(kind)
