"""``label_guard.json``: the sums over all iterations, whatever stops the writing."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, List

import pytest
from hypothesis import given
from hypothesis import strategies as st
from window_stats import make_stats

from mmguard.labels.instances import InstanceRule
from mmguard.labels.rules import LabelRule
from mmguard.labels.tally import Tally
from mmguard.log import run_log
from mmguard.log.flight_record import FlightRecord
from mmguard.log.guard_log import read_log
from mmguard.log.run_files import read_run
from mmguard.log.run_log import RunLog
from mmguard.log.statistics import Stats, group_tallies

COUNTS = st.integers(0, 10**12)
TALLIES = st.builds(
    Tally,
    COUNTS,
    COUNTS,
    COUNTS,
    st.dictionaries(st.integers(-9, 9), COUNTS),
    reasons=st.dictionaries(st.sampled_from(['label', 'box']), COUNTS),
    mapped=COUNTS,
    other_values=COUNTS,
)
FILLED = st.dictionaries(st.sampled_from(['loss_mask', 'loss_bbox']), st.dictionaries(st.sampled_from('01'), COUNTS))
TOTALS = st.builds(
    Stats,
    COUNTS,
    COUNTS,
    COUNTS,
    COUNTS,
    st.fixed_dictionaries({'pixels': TALLIES, 'instances': TALLIES}),
    st.dictionaries(st.sampled_from('ab'), st.builds(Tally, COUNTS, COUNTS, COUNTS)),
    COUNTS,
    FILLED,
)


@given(TOTALS, TOTALS, TOTALS)
def test_totals_add_up_in_any_order_and_survive_json(a: Stats, b: Stats, c: Stats) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + Stats() == a
    assert Stats.from_json(json.loads(json.dumps(a.to_json()))) == a


def iteration(skipped: int, total: int = 100, file: str = 'a.png') -> Stats:
    """An iteration of two files."""
    found = [Tally(total, skipped, 0, {11: skipped}, file)] if skipped else []
    return make_stats(
        1, int(bool(found)), 2, len(found), Tally(2 * total, skipped), offending=group_tallies(pixels=found)
    )


def loop(log: RunLog, mode: str, stats: Stats, valid: Any = None, **place: int) -> None:
    """A loop of one iteration, of two files."""
    log.begin(mode, valid)
    log.see(mode, {'iter': 1, **place}, stats, ['a.png', 'clean.png'])
    log.end(mode)


def runs(path: Path) -> List[Any]:
    record = json.loads(path.read_text())
    assert record['format'] == 1
    return record['runs']


def test_what_is_valid_is_there_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / 'new' / 'label_guard.rank1.json'
    guards = [
        LabelRule(11, label_map={12: 3, 11: 255}).to_json(),
        InstanceRule(5, 'drop', min_label=1).to_json(),
    ]
    RunLog(str(path.parent), 1, 2, config='configs/a.py').begin('train', {'guards': guards})
    (run,) = runs(path)
    assert (run['config'], run['rank'], run['world_size'], run['framework']) == ('configs/a.py', 1, 2, 'openmmlab')
    assert time.strptime(run['started'], '%Y-%m-%dT%H:%M:%S%z')
    train = run['modes']['train']
    assert train['guards'] == [
        dict(kind='pixels', num_classes=11, ignore_index=255, on_invalid='ignore', label_map={'11': 255, '12': 3}),
        dict(kind='instances', num_classes=5, min_label=1, ignore_index=None, on_invalid='drop', label_map={}),
    ]
    assert train['ended'] is False
    assert Stats.from_json(train['totals']) == Stats()


def test_loops_of_a_mode_add_up_and_files_count_once(tmp_path: Path) -> None:
    path = tmp_path / 'label_guard.json'
    log = RunLog(str(tmp_path))
    for number, skipped in enumerate((3, 4, 0)):
        loop(log, 'val', iteration(skipped), {'number': number}, step=number)
    (run,) = runs(path)
    assert run['modes']['val']['number'] == 0, 'said at the first'
    assert (run['modes']['val']['step'], run['modes']['val']['ended']) == (2, True)
    totals = Stats.from_json(run['modes']['val']['totals'])
    assert (totals.iterations, totals.offending_iterations) == (3, 2)
    assert (totals.files, totals.offending_files) == (2, 1)
    assert totals.kinds['pixels'] == Tally(600, 7, 0, {11: 7})


def test_a_running_loop_is_written_once_per_period(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / 'label_guard.json'
    for seconds, folder in ((0.0, tmp_path), (1000.0, tmp_path / 'seldom')):
        monkeypatch.setattr(run_log, 'EVERY', seconds)
        log = RunLog(str(folder))
        log.begin('train', {})
        log.see('train', {'iter': 1}, make_stats(1, pixels=Tally(50)))
    other = tmp_path / 'seldom' / 'label_guard.json'
    assert runs(path)[0]['modes']['train']['totals']['pixels']['total'] == 50
    assert runs(path)[0]['modes']['train']['iter'] == 1
    assert runs(other)[0]['modes']['train']['totals']['pixels']['total'] == 0
    log.end('train')
    assert runs(other)[0]['modes']['train']['totals']['pixels']['total'] == 50


def test_a_run_in_the_same_folder_keeps_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / 'label_guard.json'
    for skipped in (3, 4):
        loop(RunLog(str(tmp_path)), 'train', iteration(skipped))
    assert [run['modes']['train']['totals']['pixels']['skipped'] for run in runs(path)] == [3, 4]


DEEP = b'[' * 200_000
UNREAD = [b'{', b'[]', DEEP, b'{"format": 1, "runs": [%s]}' % (b'[' * 200 + b']' * 200), b'\xff', b' ' * (1 << 20 | 1)]
NEWER = [b'{"format": 99, "runs": [1]}', b'{"format": 1, "runs": 3}']


@pytest.mark.parametrize('content', [*UNREAD, *NEWER], ids=range(8))
def test_a_record_that_cannot_be_read_is_kept_and_the_run_gets_the_next_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / 'label_guard.json'
    path.write_bytes(content)
    for skipped in (3, 4):
        log = RunLog(str(tmp_path))
        loop(log, 'train', iteration(skipped))
        (problem,) = log.take_problems()
        assert str(path) in problem
        assert log.take_problems() == []
    assert path.read_bytes() == content
    assert len(runs(tmp_path / 'label_guard.2.json')) == 2
    assert len((tmp_path / 'label_guard.2.jsonl').read_text().splitlines()) == 2


def test_a_run_under_the_next_name_is_read_back(tmp_path: Path) -> None:
    (tmp_path / 'label_guard.json').write_bytes(b'{"torn')
    loop(RunLog(str(tmp_path)), 'train', iteration(3))
    log = read_log(str(tmp_path))
    assert log.totals('train').kinds['pixels'].skipped == 3
    (problem,) = log.problems
    assert str(tmp_path / 'label_guard.json') in problem


def test_an_empty_record_is_replaced(tmp_path: Path) -> None:
    (tmp_path / 'label_guard.json').touch()
    RunLog(str(tmp_path)).begin('train')
    assert len(runs(tmp_path / 'label_guard.json')) == 1


def make_node(path: Path, kind: str) -> None:
    if kind == 'fifo':
        os.mkfifo(path)
    elif kind == 'folder':
        path.mkdir()
    else:
        path.symlink_to(kind)


@pytest.mark.parametrize('kind', ['fifo', '/dev/zero', '/dev/full', '../victim', 'folder'])
@pytest.mark.parametrize('name', ['label_guard.json', 'label_guard.jsonl'])
@pytest.mark.timeout(60)
def test_neither_links_nor_pipes_are_opened_in_a_training(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / 'victim').write_text('keep')
    (tmp_path / 'run').mkdir()
    make_node(tmp_path / 'run' / name, kind)
    log = RunLog(str(tmp_path / 'run'))
    for number in range(2):
        loop(log, ('train', 'val')[number], iteration(3))
    (problem,) = log.take_problems()
    assert 'label_guard.2.json' in problem
    assert f'{tmp_path}/run/{name} ' in problem
    assert (tmp_path / 'victim').read_text() == 'keep'
    assert set(runs(tmp_path / 'run' / 'label_guard.2.json')[0]['modes']) == {'train', 'val'}
    assert len(Path(log.lines).read_text().splitlines()) == 2


@pytest.mark.parametrize('kind', ['fifo', '/dev/zero', '../victim', 'folder'])
@pytest.mark.timeout(60)
def test_a_flight_record_opens_neither_links_nor_pipes(tmp_path: Path, kind: str) -> None:
    (tmp_path / 'victim').write_text('keep')
    (tmp_path / 'run').mkdir()
    make_node(tmp_path / 'run' / 'flight.jsonl', kind)
    record = FlightRecord(str(tmp_path / 'run' / 'flight.jsonl'), 3)
    record.write(iter=1)
    assert record.error is not None
    assert (tmp_path / 'victim').read_text() == 'keep'


LOGGED = Stats(
    iterations=9, files=4, kinds={'pixels': Tally(90, 3), 'instances': Tally()}, losses={'h.loss': Tally(9, 1)}
)
GUARD = dict(kind='pixels', num_classes=5, ignore_index=250, on_invalid='ignore', label_map={'7': 0})


def mode(**more: Any) -> Any:
    said = dict(
        guards=[GUARD], losses={'h.loss': dict(num_classes=3, ignore_index=255)}, classes=['a'], data_roots=['/d'],
        ended=True, iter=9, totals=LOGGED.to_json(),
    )  # fmt: skip
    return {**said, **more}


def read(path: Path, *runs: Any) -> Any:
    path.write_text(json.dumps(dict(format=1, runs=list(runs))))
    return read_run([path])


def run(**modes: Any) -> Any:
    return dict(world_size=2, modes=modes)


def test_without_a_guard_of_the_kind_the_loss_that_met_others_does(tmp_path: Path) -> None:
    train = read(tmp_path / 'r.json', run(train=mode())).modes['train']
    assert train.spaces.instances.num_classes == 3
    train.totals.losses['h.loss'] = Tally(9)
    assert train.spaces.instances is None


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
        (run(train=dict(mode(), totals={**LOGGED.to_json(), 'pixels': None})), 'pixels: null'),
        (run(train=mode(iter=-1)), 'iter: -1'),
        (run(train=mode(ended='no')), 'ended: "no"'),
        (run(train=mode(totals={**LOGGED.to_json(), 'filled': {'loss': {'1': -1}}})), 'filled: loss: 1: -1'),
        (dict(run(), world_size=10**9), 'world_size: 1000000000'),
        (dict(run(), modes=[]), 'modes: '),
        (3, '3'),
    ],
)
def test_a_damaged_run_is_named_and_hides_no_other(tmp_path: Path, damaged: Any, place: str) -> None:
    found = read(tmp_path / 'r.json', damaged, run(train=mode()))
    assert found.modes['train'].totals == LOGGED
    (problem,) = found.problems
    assert 'r.json: runs[0]' in problem
    assert place in problem


@pytest.mark.parametrize('text', ['{"format": 1', '[' * 100_000, '{"format": 9, "runs": []}', '{"format": 1}'])
def test_what_is_no_record_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / 'r.json').write_text(text)
    (problem,) = read_run([tmp_path / 'r.json']).problems
    assert str(tmp_path / 'r.json') in problem
