"""Parts of configs are built and called in a process of their own, whatever they do."""

from __future__ import annotations

import contextlib
import copy
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import hostile
import numpy as np
import pytest
import torch
from programs import tree_of

from mmguard.config.changes import change_config
from mmguard.config.read import ReadConfig
from mmguard.properties.builder import BROKEN, NOT_VERIFIED, VERIFIED, Builder, call_part
from mmguard.properties.worker import Worker

pytestmark = pytest.mark.slow

FCN = 'mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py'
FASTER_RCNN = 'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'


@pytest.fixture(scope='module')
def builder():
    with Builder(seconds=200) as builder:
        yield builder


def config_with(dataset, **arguments):
    return ReadConfig(
        dict(
            custom_imports=dict(imports=['hostile']),
            default_scope='mmengine',
            train_dataloader=dict(dataset=dict(type=dataset, pipeline=[], **arguments)),
        )
    )


@pytest.mark.parametrize(
    ('dataset', 'kind'),
    [
        ('Dies', 'crash'),
        ('EndsTheProgram', 'SystemExit'),
        ('Interrupts', 'KeyboardInterrupt'),
        ('Unspeakable', 'Mute'),
        ('NoSuchDataset', 'KeyError'),
    ],
)
def test_what_fails_is_data(builder, dataset, kind):
    outcome = builder.call(config_with(dataset), 'training data')
    assert outcome.failure.kind == kind
    for dataset in ('Quiet', 'StartsPool'):
        assert builder.call(config_with(dataset), 'training data').works


@pytest.mark.parametrize('how', ['connect', 'send', 'send parts', 'look up'])
def test_no_connection(how, builder):
    failure = builder.call(config_with('Connects', how=how), 'training data').failure
    assert (failure.kind, os.path.basename(failure.place)[:11]) == ('ConnectionRefusedError', 'hostile.py:')


def test_a_flood_of_output_goes_nowhere(builder, capfd):
    assert builder.call(config_with('Floods'), 'training data').works
    assert capfd.readouterr() == ('', '')


def test_what_hangs_is_ended_and_not_blamed():
    with Builder(seconds=4) as builder:
        outcome = builder.call(config_with('Hangs'), 'training data')
        assert outcome.value
        assert outcome.failure is None
        # The time is up for all that comes after it.
        assert builder.call(config_with('Quiet'), 'training data').value


def test_what_had_no_time_without_an_edit_is_not_broken_by_it():
    with Builder(seconds=4) as builder:
        assert builder.compare(config_with('Hangs'), config_with('Dies')).state == NOT_VERIFIED
    with Builder(seconds=100) as builder:
        assert builder.compare(config_with('Quiet'), config_with('Dies')).state == BROKEN


linux = pytest.mark.skipif(sys.platform != 'linux', reason='other systems do not say what a process started')


@linux
@pytest.mark.parametrize(
    ('message', 'then', 'kind'),
    [
        (b'\x00\x00\x01\x00{"val', 'wait', 'hang'),
        (b'\x00\x00', 'wait', 'hang'),
        (b'\x00\x00\x01\x00{"val', 'end', 'crash'),
        (b'\xff\xff\xff\xff' + b'\x7f' * 8, 'wait', 'crash'),
        (b'\x00\x00\x00\x02[]', 'wait', 'crash'),
        (b'\x00\x00\x00\x0e{"failure": 5}', 'wait', 'crash'),
        (b'\x00\x00\x00\x01{', 'go on', 'crash'),
    ],
)
def test_a_reply_that_is_not_one(message, then, kind):
    seconds = 20 if kind == 'hang' else 200
    tree = config_with('Replies', message=message, then=then).written
    with Worker() as worker:
        assert worker.ask(os.getpid, seconds=200).value
        began = time.monotonic()
        assert worker.ask(call_part, tree, 'training data', seconds=seconds).failure.kind == kind
        assert time.monotonic() - began < seconds + 20
        assert worker.ask(os.getpid, seconds=200).value


@pytest.mark.parametrize('forks', [False, True])
def test_a_program_starts_no_threads(forks, monkeypatch):
    monkeypatch.setenv('OMP_NUM_THREADS', '3')
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with Worker(forks=forks) as worker:
            assert worker.ask(torch.get_num_threads, seconds=200).value == 1
            assert worker.ask(os.getenv, 'OMP_NUM_THREADS', seconds=200).value == '1'  # of the workers of a loader
    finally:
        torch.set_num_threads(threads)


@linux
def test_memory_is_bounded():
    with Builder(seconds=100, memory=2 << 30) as builder:
        assert builder.call(config_with('Allocates'), 'training data').failure.kind == 'memory'


@linux
def test_memory_of_what_it_starts_counts(tmp_path):
    program = 'import time; held = bytearray(900 << 20); time.sleep(600)'
    config = config_with('StartsPrograms', program=program, ids=str(tmp_path / 'ids'), waits=True)
    with Builder(seconds=100, memory=2 << 30) as builder:
        assert builder.call(config, 'training data').failure.kind == 'memory'


@linux
def test_what_it_starts_is_ended_with_it(tmp_path):
    config = config_with('StartsPrograms', program='import time; time.sleep(600)', ids=str(tmp_path / 'ids'))
    with Builder(seconds=100) as builder:
        assert builder.call(config, 'training data').works
        started = [int(number) for number in (tmp_path / 'ids').read_text().split()]
        assert all(is_running(number) for number in started)
    assert not any(is_running(number) for number in started)


@linux
@pytest.mark.parametrize('ends', ['by itself', 'with the process that asks', 'by many signals'])
def test_what_it_starts_is_ended_after_a_crash(ends, tmp_path):
    """The threads of the process that asks end one by one, and each of them sends a signal."""
    script = (
        'import sys\n'
        f'sys.path[:0] = {[os.path.dirname(__file__)]!r}\n'
        'from mmguard.config.read import ReadConfig\n'
        'from mmguard.properties.builder import Builder\n'
        "tree = dict(custom_imports=dict(imports=['hostile']), default_scope='mmengine')\n"
        "dataset = dict(type='StartsPrograms', program='import time; time.sleep(600)', ids='ids', pipeline=[])\n"
        f'dataset.update(waits={ends != "by itself"}, dies={ends == "by itself"})\n'
        'with Builder(seconds=100) as builder:\n'
        "    print(builder.call(ReadConfig(dict(tree, train_dataloader=dict(dataset=dataset))), 'training data'))\n"
    )
    asking = subprocess.Popen([sys.executable, '-c', script], cwd=tmp_path, stdout=subprocess.DEVNULL)
    started = wait_for(lambda: (tmp_path / 'ids').exists() and [int(n) for n in (tmp_path / 'ids').read_text().split()])
    if ends == 'by many signals':
        (process,) = Path(f'/proc/{asking.pid}/task/{asking.pid}/children').read_text().split()
        with contextlib.suppress(ProcessLookupError):
            for _ in range(1000):
                time.sleep(1e-5)
                os.kill(int(process), signal.SIGTERM)
    if ends == 'with the process that asks':
        asking.terminate()
    asking.wait(100)
    assert wait_for(lambda: not any(map(is_running, started)))


def wait_for(condition, seconds=100):
    ends = time.monotonic() + seconds
    while not condition() and time.monotonic() < ends:
        time.sleep(0.1)
    return condition()


def is_running(number):
    try:
        with open(f'/proc/{number}/stat', encoding='ascii') as file:
            return file.read().rsplit(')', 1)[1].split()[0] not in 'ZX'
    except OSError:
        return False


@linux
def test_what_it_starts_has_no_network(tmp_path, builder):
    if os.system('unshare -n true') != 0:
        pytest.skip('the system does not let us leave the network')
    with socket.create_server(('127.0.0.1', 0)) as server:
        program = f'import socket; socket.create_connection({server.getsockname()})'
        assert subprocess.run([sys.executable, '-c', program], check=False).returncode == 0
        config = config_with('StartsPrograms', program=program, ids=str(tmp_path / 'ids'), waits=True)
        assert builder.call(config, 'training data').failure.kind == 'ConnectionError'


@pytest.mark.parametrize('change', ['empty', 'move', 'remove', 'remove folder'])
def test_files_that_were_there_stay(change, tmp_path, builder):
    results = tmp_path / 'results'
    results.mkdir()
    (results / 'old.json').write_text('{}')
    path = results if change in ('move', 'remove folder') else results / 'old.json'
    outcome = builder.call(config_with('Changes', change=change, path=str(path)), 'training data')
    assert outcome.failure.kind == 'PermissionError'
    assert (results / 'old.json').read_text() == '{}'
    assert os.listdir(tmp_path) == ['results']
    # What the program made is its own.
    assert builder.call(config_with('Changes', change=change), 'training data').works


def test_a_file_without_a_name_changes_nothing(tmp_path, builder):
    assert builder.call(config_with('Changes', change='nameless', path=str(tmp_path / 'any')), 'training data').works
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ('dataset', 'code'),
    [
        ('EndsTheProgram', "sys.exit('that is all')"),
        ('ReadsJson', "json.loads('{')"),
        ('CallsPackage', 'np.zeros(-1)'),
    ],
)
def test_the_line_of_the_user_is_named(dataset, code, builder):
    """The exception may come from the standard library or from an installed package."""
    file, _, line = builder.call(config_with(dataset), 'training data').failure.place.rpartition(':')
    assert os.path.samefile(file, hostile.__file__)
    assert code in Path(file).read_text().splitlines()[int(line) - 1]


@linux
def test_a_process_that_cannot_be_started_is_data():
    resource = pytest.importorskip('resource')
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Worker(forks=True) as worker:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1, limits[1]))
        try:
            outcome = worker.ask(os.getpid, seconds=50)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert outcome.failure.kind == 'OSError'
        assert worker.ask(os.getpid, seconds=50).value


def test_a_part_is_called_once(builder):
    first = builder.call(config_with('Quiet'), 'training data')
    assert builder.call(config_with('Quiet'), 'training data') is first


# ---- edits: what worked before must work after


def verdict_on(builder, tree, *changes):
    before = ReadConfig(copy.deepcopy(tree))
    return builder.compare(before, change_config(before, changes))


def test_a_step_that_the_labels_need(builder):
    tree = tree_of(FCN)
    pipeline = tree['train_dataloader']['dataset']['pipeline']
    without = [step for step in pipeline if step['type'] != 'LoadAnnotations']
    assert verdict_on(builder, tree, ('train_dataloader.dataset.pipeline', without)).state == BROKEN
    assert verdict_on(builder, tree, ('model.decode_head.loss_decode.loss_weight', 0.5)).state == VERIFIED


@pytest.mark.parametrize('split', ['train', 'val', 'test'])
def test_a_data_set_that_an_edit_empties(builder, split):
    tree = config_with('Quiet').written
    tree[f'{split}_dataloader'] = copy.deepcopy(tree['train_dataloader'])
    tree[f'{split}_dataloader']['dataset']['serialize_data'] = False
    assert verdict_on(builder, tree, (f'{split}_dataloader.dataset.indices', [])).state == BROKEN
    tree[f'{split}_dataloader']['dataset']['indices'] = []
    assert verdict_on(builder, tree, (f'{split}_dataloader.dataset.indices', [1, 2])).state == VERIFIED


def test_arrays_in_a_config(builder):
    tree = config_with('Quiet').written
    tree['train_dataloader']['dataset']['metainfo'] = dict(weights=np.ones(3))
    assert verdict_on(builder, tree, ('train_dataloader.dataset.metainfo.weights', [1.0] * 3)).state == VERIFIED


def test_what_cannot_be_built_is_not_verified(builder):
    tree = tree_of(FASTER_RCNN)
    tree['train_dataloader']['dataset']['data_root'] = '/nowhere'
    assert verdict_on(builder, tree, ('train_dataloader.dataset.backend_args', None)).state == NOT_VERIFIED
    old = dict(data=dict(samples_per_gpu=2, train=dict(type='CityscapesDataset')), model=dict(type='EncoderDecoder'))
    assert verdict_on(builder, old, ('model.type', 'CascadeEncoderDecoder')).state == NOT_VERIFIED


def test_what_is_no_part_is_not_verified(builder):
    verdict = verdict_on(builder, tree_of(FCN), ('log_level', 'ERROR'))
    assert verdict.state == NOT_VERIFIED


@pytest.mark.parametrize('changes', [('iou_metrics', ['mIuO']), ('ignore_index', 'x'), ('type', 'NoSuchMetric')])
def test_metrics_are_called(builder, changes):
    key, value = changes
    assert verdict_on(builder, tree_of(FCN), (f'val_evaluator.{key}', value)).state == BROKEN


def test_a_right_edit_of_a_metric_is_verified(builder):
    assert verdict_on(builder, tree_of(FCN), ('val_evaluator.iou_metrics', ['mIoU', 'mDice'])).state == VERIFIED
