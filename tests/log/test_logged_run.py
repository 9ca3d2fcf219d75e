"""What of ``label_guard.json`` can be read, whatever stands in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mmguard.labels.tally import Tally
from mmguard.log.logged_run import read_run
from mmguard.log.totals import LoopTotals, LossCount

TOTALS = LoopTotals(
    iterations=9, files=4, kinds={'pixels': Tally(90, 3), 'instances': Tally()}, losses={'h.loss': LossCount(9, 1)}
)
GUARD = dict(kind='pixels', num_classes=5, ignore_index=250, on_invalid='ignore', label_map={'7': 0})


def mode(**more: Any) -> Any:
    said = dict(
        guards=[GUARD], losses={'h.loss': dict(num_classes=3, ignore_index=255)}, classes=['a'], data_roots=['/d'],
        ended=True, iter=9, totals=TOTALS.to_json(),
    )  # fmt: skip
    return {**said, **more}


def read(path: Path, *runs: Any) -> Any:
    path.write_text(json.dumps(dict(format=1, runs=list(runs))))
    return read_run([path])


def run(**modes: Any) -> Any:
    return dict(world_size=2, modes=modes)


def test_the_guard_says_what_is_valid(tmp_path: Path) -> None:
    train = read(tmp_path / 'r.json', run(train=mode())).modes['train']
    space = train.spaces.pixels
    assert (space.num_classes, space.ignore_index, space.label_map) == (5, 250, {7: 0})
    assert (train.spaces.names, train.data_roots) == (('a',), ['/d'])


def test_without_a_guard_of_the_kind_the_loss_that_met_others_does(tmp_path: Path) -> None:
    train = read(tmp_path / 'r.json', run(train=mode())).modes['train']
    assert train.spaces.instances.num_classes == 3
    train.totals.losses['h.loss'] = LossCount(9)
    assert train.spaces.instances is None


@pytest.mark.parametrize(('kind', 'pixels', 'instances'), [('pixels', 133, None), ('instances', None, 133)])
def test_a_loss_says_which_kind_it_is_about(tmp_path: Path, kind: str, pixels: int, instances: int) -> None:
    losses = {'h.loss': [dict(kind=kind, num_classes=133, ignore_index=None)]}
    train = read(tmp_path / 'r.json', run(train=mode(guards=[], losses=losses))).modes['train']
    found = (train.spaces.pixels, train.spaces.instances)
    assert tuple(space and space.num_classes for space in found) == (pixels, instances)


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


@pytest.mark.parametrize(
    ('damaged', 'place'),
    [
        (run(train=mode(), val=dict(mode(), totals=3)), 'totals: 3'),
        (run(train=dict(mode(), totals={**TOTALS.to_json(), 'pixels': None})), 'pixels: null'),
        (run(train=mode(iter=-1)), 'iter: -1'),
        (run(train=mode(ended='no')), 'ended: "no"'),
        (run(train=mode(totals={**TOTALS.to_json(), 'filled': {'loss': {'1': -1}}})), 'filled: loss: 1: -1'),
        (dict(run(), world_size=10**9), 'world_size: 1000000000'),
        (dict(run(), modes=[]), 'modes: '),
        (3, '3'),
    ],
)
def test_a_damaged_run_is_named_and_hides_no_other(tmp_path: Path, damaged: Any, place: str) -> None:
    found = read(tmp_path / 'r.json', damaged, run(train=mode()))
    assert found.modes['train'].totals == TOTALS
    (problem,) = found.problems
    assert 'r.json: runs[0]' in problem
    assert place in problem


@pytest.mark.parametrize('junk', [5, {'a': 0}, {'7': None}])
def test_a_label_map_that_is_none_is_empty(tmp_path: Path, junk: Any) -> None:
    found = read(tmp_path / 'r.json', run(train=mode(guards=[dict(GUARD, label_map=junk)])))
    assert not found.modes['train'].spaces.pixels.label_map


@pytest.mark.parametrize('text', ['{"format": 1', '[' * 100_000, '{"format": 9, "runs": []}', '{"format": 1}'])
def test_what_is_no_record_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / 'r.json').write_text(text)
    (problem,) = read_run([tmp_path / 'r.json']).problems
    assert str(tmp_path / 'r.json') in problem
