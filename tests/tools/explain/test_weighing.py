"""A config and labels beside an error: what they confirm comes first, what they refute goes down."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mmguard.cli import main

pytest.importorskip('PIL')
from PIL import Image

TRACEBACK = """Traceback (most recent call last):
  File "/home/me/train.py", line 12, in main
    loss = F.cross_entropy(x, y)
IndexError: Target 1 is out of bounds.
"""


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / 'train.log'
    path.write_text(TRACEBACK.replace('Target 1', 'Target 3'))
    return str(path)


def labels(folder: Path, *values: int) -> str:
    folder.mkdir()
    for number in range(30):
        label = np.resize(np.array(values, np.uint8), (16, 16))
        Image.fromarray(label).save(folder / f'{number:03d}.png')
    return str(folder)


def explained(capsys: pytest.CaptureFixture, *words: str) -> dict:
    assert main(['explain', *words, '--json', '-']) == 1
    record: dict = json.loads(capsys.readouterr().out)
    return record


def test_what_the_labels_confirm_comes_first(tmp_path: Path, log: str, capsys: pytest.CaptureFixture) -> None:
    folder = labels(tmp_path / 'labels', 1, 2, 3)
    alone = explained(capsys, log)
    assert 'MG115' not in alone['causes'][0]['codes']
    record = explained(capsys, log, '--data', folder, '--num-classes', '3')
    first = record['causes'][0]
    assert first['standing'] == 'confirmed'
    assert first['findings'] == ['MG115']


def test_what_the_labels_refute_is_not_named(tmp_path: Path, log: str, capsys: pytest.CaptureFixture) -> None:
    record = explained(capsys, log, '--data', labels(tmp_path / 'labels', 0, 1, 2), '--num-classes', '4')
    keys = [cause['key'] for cause in record['causes']]
    assert 'slip' in record['refuted']
    assert not set(keys) & set(record['refuted'])
    assert {cause['standing'] for cause in record['causes']} == {'possible'}
    # The files are right: what is left is the code that reads them, and what only a config shows.
    assert 'reading' in keys


def test_the_text_says_what_was_found_and_what_to_do(tmp_path: Path, log: str, capsys: pytest.CaptureFixture) -> None:
    command = ['explain', log, '--data', labels(tmp_path / 'labels', 1, 2, 3), '--num-classes', '3']
    assert main(command) == 1
    out = ' '.join(capsys.readouterr().out.split())
    assert 'found: MG115 ' in out
    assert 'do: ' in out


def test_data_that_are_not_there_leave_the_explanation(tmp_path: Path, log: str, capsys: pytest.CaptureFixture) -> None:
    assert main(['explain', log, '--data', str(tmp_path / 'nowhere')]) == 1
    out = capsys.readouterr().out
    assert 'note: the labels of' in out
    assert 'MG413' in out


def test_a_finding_of_two_causes_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip('msgspec')
    log = tmp_path / 'train.log'
    log.write_text('Epoch [1][100/1200]  lr: 0.00080, loss_cls: nan, loss_bbox: nan, loss: nan\n')
    box = dict(category_id=1, area=25, iscrowd=0)
    data = dict(
        images=[dict(id=n, file_name=f'{n}.jpg', height=64, width=64) for n in range(12)],
        categories=[dict(id=1, name='cat')],
        annotations=[dict(box, id=n, image_id=n, bbox=[5 + 90 * (n == 3), 5, 20, 20]) for n in range(12)],
    )
    file = tmp_path / 'train.json'
    file.write_text(json.dumps(data))
    assert main(['explain', str(log), '--data', str(file), '--verbose']) == 1
    out = capsys.readouterr().out
    assert out.count('found: MG109 ') == 1


NOT_REGISTERED = """Traceback (most recent call last):
  File "tools/train.py", line 104, in main
    runner = Runner.from_cfg(cfg)
  File "mmengine/registry/build_functions.py", line 100, in build_from_cfg
    raise KeyError(
KeyError: 'GuardedMyLoss is not in the mmseg::model registry.'
"""
IMPORTED = """11/25 10:00:00 - mmengine - INFO - Config:
custom_imports = dict(
    allow_failed_imports=False, imports=[
        'mmguard',
    ])
"""


@pytest.mark.parametrize('before', [IMPORTED, 'mmengine - INFO - guard: iter 3: 5 px skipped\n'])
def test_an_import_that_the_log_shows_is_not_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture, before: str
) -> None:
    path = tmp_path / 'train.log'
    path.write_text(NOT_REGISTERED)
    assert explained(capsys, str(path))['causes'][0]['key'] == 'not-imported'
    path.write_text(before + NOT_REGISTERED)
    record = explained(capsys, str(path))
    assert record['refuted'] == ['not-imported']
    first = record['causes'][0]
    assert (first['key'], first['standing']) == ('misspelt', 'supported')
    assert first['evidence']['line'] == before.count('\n', 0, max(before.find(' imports'), 0)) + 1
