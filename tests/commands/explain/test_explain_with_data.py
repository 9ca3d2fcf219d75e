"""A config, labels or a flight record with an error: what they confirm comes first, what they refute goes down."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import List, NamedTuple, Set, Tuple

import coco_cases
import pytest
from coco_cases import ann, write
from explained_data import CALL, CONFIG, coco, explained, finding, labels
from explained_logs import explain_log, format_traceback
from put_file import put
from this_stack import IS_ONEDL

from mmguard.cli import main
from mmguard.commands.explain.explanation import OutsideFacts
from mmguard.commands.explain.render import as_text
from mmguard.findings.edits import Edit
from mmguard.findings.finding import Finding

pytest.importorskip('mmseg')

pytest.importorskip('msgspec')

NOT_REGISTERED = format_traceback(
    "KeyError: 'GuardedMyLoss is not in the mmseg::model registry.'",
    ('tools/train.py', 'runner = Runner.from_cfg(cfg)'),
    ('mmengine/registry/build_functions.py', 'raise KeyError('),
)
SITE = '/opt/lib/python3.9/site-packages'
IMPORTED = """11/25 10:00:00 - mmengine - INFO - Config:
custom_imports = dict(
    allow_failed_imports=False, imports=[
        'mmguard',
    ])
"""


def test_what_the_labels_confirm_comes_first(tmp_path: Path, log: str, capsys: pytest.CaptureFixture) -> None:
    folder = labels(tmp_path / 'labels', 1, 2, 3)
    alone = explained(capsys, log)
    assert 'MG115' not in alone['causes'][0]['codes']
    record = explained(capsys, log, '--data', folder, '--num-classes', '3')
    first = record['causes'][0]
    assert first['standing'] == 'confirmed'
    assert first['findings'] == ['MG115']
    record = explained(capsys, log, '--data', folder, '--num-classes', '3', '--reduce-zero-label')
    assert [finding for cause in record['causes'] for finding in cause['findings']] == []


@pytest.mark.parametrize(
    'error', ['IndexError: Target 9 is out of bounds.', 'CUDA error: device-side assert triggered']
)
@pytest.mark.parametrize('options', [[], ['--num-classes', '3'], ['--num-classes', '3', '--ignore-index', '9']])
def test_the_next_command_scans_the_labels_that_were_given(
    error: str, options: List[str], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    log, folder = tmp_path / 'train.log', labels(tmp_path / 'with blank', 0, 1, 9)
    log.write_text(format_traceback(error, CALL))
    assert main(['explain', str(log), '--data', folder, *options]) == 1
    (command,) = re.findall(r'^next: (.*)$', capsys.readouterr().out, re.M)
    assert shlex.split(command) == ['mmguard', 'scan', folder, *options]


def test_what_is_found_is_shown_with_an_unknown_error(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    log, config = tmp_path / 'train.log', tmp_path / 'config.py'
    log.write_text(format_traceback('FlubberError: no flubber', CALL))
    config.write_text(CONFIG.replace('1.0, 2.0, 3.0', '1.0, 2.0'))
    for options, code in (
        (['--data', labels(tmp_path / 'maps', 0, 1, 3), '--num-classes', '3'], 'MG102'),
        (['--config', str(config)], 'MG207'),
    ):
        assert main(['explain', str(log), *options]) == 1
        shown = capsys.readouterr().out
        assert code in shown
        assert ('1.png' in shown) == (code == 'MG102')


def test_what_the_labels_refute_is_not_named(tmp_path: Path, log: str, capsys: pytest.CaptureFixture) -> None:
    record = explained(capsys, log, '--data', labels(tmp_path / 'labels', 0, 1, 2), '--num-classes', '4')
    keys = [cause['key'] for cause in record['causes']]
    assert 'slip' in record['refuted']
    assert not set(keys) & set(record['refuted'])
    assert {cause['standing'] for cause in record['causes']} == {'possible'}
    # The files are right: what is left is the code that reads them, and what only a config shows.
    assert keys[0] == 'reading'


@pytest.mark.parametrize('values', [(0, 1, 2), (0, 3), (1, 2, 3)])
def test_labels_without_a_number_of_classes_refute_nothing(
    values: Tuple[int, ...], tmp_path: Path, log: str, capsys: pytest.CaptureFixture
) -> None:
    folder = labels(tmp_path / 'labels', *values)
    alone, record = explained(capsys, log), explained(capsys, log, '--data', folder)
    assert record['refuted'] == alone['refuted']


BOXES_AS_SIZES = (
    'AssertionError: All bounding boxes should have positive height and width. Found invalid box [5.0, 9.0, 2.0, 4.0]'
)
EMPTY_BATCH = 'RuntimeError: stack expects a non-empty TensorList'


@pytest.mark.parametrize(
    ('error', 'key', 'read', 'is_refuted'),
    [
        ('IndexError: Target 9 is out of bounds.', 'value-raw', {'files'}, True),
        ('IndexError: Target 9 is out of bounds.', 'value-raw', {'config'}, False),
        ('IndexError: Target 9 is out of bounds.', 'reading', {'files', 'config'}, False),
        ('RuntimeError: CUDA error: device-side assert triggered', 'num-classes', {'files'}, True),
        ('RuntimeError: CUDA error: device-side assert triggered', 'num-classes', {'config'}, False),
        ('RuntimeError: CUDA error: device-side assert triggered', 'class-weight-void', {'files'}, False),
        ('RuntimeError: CUDA error: device-side assert triggered', 'class-weight-void', {'config'}, True),
        (BOXES_AS_SIZES, 'box-format', {'files', 'config'}, False),
        (EMPTY_BATCH, 'empty-batch', {'files', 'config'}, False),
    ],
)
def test_a_cause_is_struck_out_by_what_it_is_about(error: str, key: str, read: Set[str], is_refuted: bool) -> None:
    found = explain_log(format_traceback(error, CALL), OutsideFacts(read=frozenset(read)))
    assert (key in [one.key for one in found.refuted]) == is_refuted
    assert (key in [one.cause.key for one in found.causes]) != is_refuted


def test_a_cause_of_which_a_mere_remark_is_found_stays() -> None:
    log = format_traceback('IndexError: Target 9 is out of bounds.', CALL)
    outside = OutsideFacts(codes=frozenset({'MG121'}), read=frozenset({'files'}))
    assert 'palette-colors' in [one.cause.key for one in explain_log(log, outside).causes]


@pytest.mark.parametrize('frame', ['mmcv/runner/epoch_based_runner.py', 'mmengine/runner/loops.py'])
def test_a_config_decides_nothing_about_an_older_program(frame: str) -> None:
    log = format_traceback('RuntimeError: CUDA error: device-side assert triggered', (f'{SITE}/{frame}', 'x()'))
    found = explain_log(log, OutsideFacts(read=frozenset({'config'})))
    assert ('class-weight-void' in [one.key for one in found.refuted]) == frame.startswith('mmengine')


class ErrorBesides(NamedTuple):
    """A log, findings of a scan, and the codes that are shown in their order."""

    log: str
    findings: Tuple[Tuple[str, str], ...]
    shown: List[str]


BUS = format_traceback('RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.', CALL)
KILLED = 'epoch 3\nslurmstepd: error: Detected 1 oom_kill event in StepId=7.0\n'
BOXES = format_traceback('AssertionError', ('/home/me/box_ops.py', 'assert (boxes2[:, 2:] >= boxes2[:, :2]).all()'))
NLL = 'NLLLoss2d.cu:104: nll_loss2d_forward_kernel: block: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.\n'
BESIDES = {
    'a line of the log is nearer than an error that is not among its causes': ErrorBesides(
        BUS, (('MG103', 'error'),), ['MG465', 'MG103']
    ),
    'an error of labels does not end a process': ErrorBesides(KILLED, (('MG103', 'error'),), ['MG458', 'MG103']),
    'an error goes before a warning that confirms a cause': ErrorBesides(
        BOXES, (('MG149', 'error'), ('MG172', 'warning')), ['MG445', 'MG149', 'MG172']
    ),
    'the kernel of the loss looks up no class weight': ErrorBesides(NLL, (('MG214', 'error'),), ['MG402', 'MG214']),
    'an index of 9 is not the ignored label': ErrorBesides(
        format_traceback('IndexError: Target 9 is out of bounds.', CALL), (('MG214', 'error'),), ['MG413', 'MG214']
    ),
    'an error of shapes is not about class weights': ErrorBesides(
        format_traceback('RuntimeError: only batches of spatial targets supported (3D tensors)', CALL),
        (('MG207', 'error'),),
        ['MG425', 'MG207'],
    ),
    'a score near 0 is due to what is found': ErrorBesides(
        '\n'.join(f'epoch {n}: mAP 0.000' for n in range(9)), (('MG140', 'error'),), ['MG351', 'MG140']
    ),
    'an error that confirms a cause goes before any other': ErrorBesides(
        BOXES, (('MG172', 'error'), ('MG149', 'error')), ['MG445', 'MG172', 'MG149']
    ),
}


EMPTY = 'ValueError: need at least one array to concatenate'


@pytest.mark.parametrize('name', BESIDES)
def test_the_most_severe_finding_comes_first(name: str) -> None:
    log, findings, shown = BESIDES[name]
    found = explain_log(log, OutsideFacts(tuple(finding(*one) for one in findings), read=frozenset({'files'})))
    text = as_text(found, verbose=False)
    assert re.findall(r'^(?:found: |also found: )?(MG\d+) ', text, re.M) == shown


@pytest.mark.parametrize(
    ('error', 'code', 'severity', 'edits', 'shown'),
    [
        (
            'IndexError: tensors used as indices must be long, int, byte or bool tensors',
            'MG146',
            'warning',
            (),
            'cause',
        ),
        (EMPTY, 'MG174', 'warning', (), 'cause'),
        (EMPTY, 'MG174', 'info', (Edit('Keep the small ones.'),), 'edit'),
        ('IndexError: Target 3 is out of bounds.', 'MG102', 'error', (), 'advice'),
    ],
)
def test_a_remark_without_an_edit_leaves_the_advice_to_the_cause(
    error: str, code: str, severity: str, edits: Tuple[Edit, ...], shown: str
) -> None:
    remark = Finding(code, 'A title.', 'evidence', 'An advice of its own.', 'proven', severity, edits=edits)
    found = explain_log(format_traceback(error, CALL), OutsideFacts((remark,), read=frozenset({'files'})))
    first = found.causes[0]
    assert (first.standing, first.findings) == ('confirmed', (remark,))
    text = ' '.join(as_text(found, verbose=False).split())
    texts = {'cause': ' '.join(first.cause.text.split()), 'edit': 'Keep the small ones.', 'advice': remark.advice}
    assert [name for name, one in texts.items() if one in text] == [shown]


@pytest.mark.skipif(IS_ONEDL, reason="onedl's mmseg looks up no class weight of an ignored label")
def test_what_the_config_confirms_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip('mmseg')
    log, config = tmp_path / 'train.log', tmp_path / 'config.py'
    log.write_text(format_traceback('RuntimeError: CUDA error: device-side assert triggered', CALL))
    config.write_text(CONFIG)
    assert 'MG214' not in explained(capsys, str(log))['causes'][0]['codes']
    first = explained(capsys, str(log), '--config', str(config))['causes'][0]
    assert first['standing'] == 'confirmed'
    assert 'MG214' in first['findings']


@pytest.mark.parametrize('option', ['--data', '--config'])
def test_what_cannot_be_read_leaves_the_explanation(
    option: str, tmp_path: Path, log: str, capsys: pytest.CaptureFixture
) -> None:
    beside = tmp_path / 'beside'
    if option == '--config':
        pytest.importorskip('mmengine')
        beside.write_text('model = dict(\n')
    assert main(['explain', log, option, str(beside)]) == 1
    out = capsys.readouterr().out
    assert 'note: ' in out
    assert 'MG413' in out


def test_a_finding_of_two_causes_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    log = put(tmp_path / 'train.log', 'Epoch [1][100/1200]  lr: 0.00080, loss_cls: nan, loss_bbox: nan, loss: nan\n')
    boxes = [ann(n, n, box=(5 + 90 * (n == 3), 5, 20, 20)) for n in range(12)]
    file = write(tmp_path, coco_cases.coco(boxes, 12, ['cat'], size=(64, 64)))
    assert main(['explain', str(log), '--data', file, '--verbose']) == 1
    out = capsys.readouterr().out
    assert out.count('found: MG109 ') == 1
    assert 'do: ' in out


@pytest.mark.parametrize('before', [IMPORTED, 'mmengine - INFO - guard: iter 3: 5 px skipped\n'])
def test_an_import_that_the_log_shows_is_not_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture, before: str
) -> None:
    path = put(tmp_path / 'train.log', NOT_REGISTERED)
    assert explained(capsys, str(path))['causes'][0]['key'] == 'not-imported'
    path.write_text(before + NOT_REGISTERED)
    record = explained(capsys, str(path))
    assert record['refuted'] == ['not-imported']
    first = record['causes'][0]
    assert (first['key'], first['standing']) == ('misspelt', 'supported')
    assert first['evidence']['line'] == before.count('\n', 0, max(before.find(' imports'), 0)) + 1


OUT_OF_RANGE = 'IndexError: index {} is out of bounds for dimension 0 with size {}'


IN_MY_CODE = '/home/me/utils.py'
RENUMBERED = [
    f'/opt/lib/python3.8/site-packages/{name}/losses.py' for name in ('mmdet/models', 'detectron2/x', 'yolox/x')
]


@pytest.mark.parametrize(
    ('ids', 'file', 'error', 'is_confirmed'),
    [
        ((1, 2, 3), IN_MY_CODE, OUT_OF_RANGE.format(3, 3), True),
        ((2, 5, 9, 14), IN_MY_CODE, OUT_OF_RANGE.format(14, 4), True),
        (
            (10, 20),
            IN_MY_CODE,
            'RuntimeError: index 20 is out of range for dimension 0 (out of range at a.c:277)',
            True,
        ),
        ((0, 1, 2), IN_MY_CODE, OUT_OF_RANGE.format(3, 3), False),
        # These renumber the categories; and what no label causes decides nothing.
        *[((1, 2, 3), file, OUT_OF_RANGE.format(3, 3), False) for file in RENUMBERED],
        ((1, 2, 3), IN_MY_CODE, 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB', False),
    ],
)
def test_an_index_out_of_range_confirms_that_ids_are_labels(
    ids: tuple, file: str, error: str, is_confirmed: bool, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    log, data = tmp_path / 'train.log', coco(tmp_path / 'train.json', *ids)
    log.write_text(format_traceback(error, (file, 'y[labels]')))
    record = explained(capsys, str(log), '--data', data, '--num-classes', str(len(ids)))
    confirmed = {cause['key']: cause['findings'] for cause in record['causes'] if cause['standing'] == 'confirmed'}
    assert record['more'] == []
    assert (confirmed != {}) is is_confirmed
    assert not is_confirmed or confirmed['ids-as-labels'] == confirmed[record['causes'][0]['key']] == ['MG138']


OF_A_FLIGHT = """Traceback (most recent call last):
  File "/home/me/train.py", line 12, in main
    loss = F.cross_entropy(x, y)
IndexError: Target 255 is out of bounds.
"""


def flight(folder: Path, rank: int, error: str) -> None:
    end = dict(
        reason='exception',
        time='2026-01-01T12:00:00',
        iter=3,
        exception=dict(type=error, message='Target 255 is out of bounds.', traceback=OF_A_FLIGHT),
    )
    name = 'label_guard_flight.jsonl' if rank == 0 else f'label_guard_flight.rank{rank}.jsonl'
    (folder / name).write_text(
        ''.join(f'{json.dumps(line)}\n' for line in (dict(format=2, rank=rank, capacity=9), end))
    )


def test_the_end_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    flight(tmp_path, 1, 'IndexError')
    texts = []
    for options in ([], ['--verbose']):
        assert main(['explain', str(tmp_path), *options]) == 1
        texts.append(capsys.readouterr().out)
        assert 'MG413' in texts[-1]
        assert 'rank 1' in texts[-1]
        assert texts[-1].index('look: ') < texts[-1].index('cause: ')
    assert texts[0].count('cause: ') < texts[1].count('cause: ')


@pytest.mark.skipif(IS_ONEDL, reason='needs mmdet')
def test_a_data_set_without_an_annotation_file_is_no_coco_file_that_cannot_be_read(
    tmp_path: Path, log: str, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / 'flowers' / 'rose').mkdir(parents=True)
    folders, model = dict(type='Flowers', data_prefix=str(tmp_path / 'flowers')), dict(type='ImageClassifier')
    config = put(tmp_path / 'old.py', f'model = {model}\ndata = dict(samples_per_gpu=2, train={folders})\n')
    record = explained(capsys, log, '--config', str(config))
    assert 'MG132' not in [*record['more'], *(code for cause in record['causes'] for code in cause['findings'])]
    assert main(['explain', log, '--config', str(config)]) == 1
    assert 'Flowers' in capsys.readouterr().out  # it says why nothing was read
