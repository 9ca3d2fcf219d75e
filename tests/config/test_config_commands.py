"""Every command that takes a config: what is wrong with it is named, with code 1 or 2 and never a traceback."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import List

import pytest

from mmguard.cli import main
from mmguard.text import REPORT_ADVICE

pytest.importorskip('mmseg')

HEAD = "model=dict(type='EncoderDecoder',decode_head=dict(type='FCNHead',num_classes=3{}))\n"
DET = (
    "model=dict(type='FasterRCNN',roi_head=dict(type='StandardRoIHead',bbox_head=dict(type='Shared2FCBBoxHead',"
    "num_classes=3)),train_cfg=dict(rcnn=dict(assigner=dict(type='MaxIoUAssigner',ignore_iof_thr={}))))\n"
)
TENSOR = ",loss_decode=dict(type='CrossEntropyLoss',class_weight=__import__('torch').zeros(3))"
#: Name -> config, the place that is named, and what stands there.
WRONG = {
    'loader': ("default_scope='mmseg'\n" + HEAD.format('') + 'train_dataloader=5\n', 'train_dataloader = 5'),
    'hooks': ("default_scope='mmseg'\n" + HEAD.format('') + 'custom_hooks=1e308\n', 'custom_hooks = 1e+308'),
    'classes': ("default_scope='mmseg'\n" + HEAD.replace('3', "'19'").format(''), "decode_head.num_classes = '19'"),
    'type': ("default_scope='mmdet'\n" + DET.replace('{}', '-1') + "train_dataloader=dict(dataset=dict(type=''))\n",
             "train_dataloader.dataset.type = ''"),
    'threshold': ("default_scope='mmdet'\n" + DET, 'rcnn.assigner.ignore_iof_thr = {}'),
    'classes of a set': (
        "default_scope='mmdet'\n" + DET.replace('{}', '-1')
        + "train_dataloader=dict(dataset=dict(type='CocoDataset',metainfo=dict(classes=frozenset(['cat']))))\n",
        "metainfo.classes = frozenset({'cat'})",
    ),
}  # fmt: skip
COMMANDS = {
    'check': ['check', 'config.py'],
    'scan': ['scan', 'config.py', '--processes', '1'],
    'apply': ['apply', 'config.py', '-o', 'out.py'],
    'trace': ['trace', 'config.py'],
    'replay': ['replay', 'config.py', 'label_guard_flight.jsonl'],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    record = '{"format": 2, "capacity": 9}\n{"iter": 1, "samples": [{"path": "a.png"}]}\n'
    (tmp_path / 'label_guard_flight.jsonl').write_text(record)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words: List[str], capsys: pytest.CaptureFixture) -> str:
    code = main(words)
    shown = capsys.readouterr()
    text = shown.out + shown.err
    assert code in (1, 2), text
    assert 'Traceback' not in text
    assert REPORT_ADVICE not in text
    assert not [char for char in text if unicodedata.category(char) in ('Cc', 'Cf') and char != '\n']
    return text


@pytest.mark.parametrize('command', COMMANDS)
@pytest.mark.parametrize('name', WRONG)
def test_the_key_is_named(name: str, command: str, folder: Path, capsys: pytest.CaptureFixture) -> None:
    text, said = WRONG[name]
    (folder / 'config.py').write_text(text)
    assert said in run(COMMANDS[command], capsys)
    assert not (folder / 'out.py').exists()


def test_a_tensor_is_named(folder: Path, capsys: pytest.CaptureFixture) -> None:
    (folder / 'config.py').write_text("default_scope='mmseg'\n" + HEAD.format(TENSOR))
    said = run(COMMANDS['apply'], capsys)
    assert all(named in said for named in ('config.py', 'Tensor'))


@pytest.mark.parametrize('command', COMMANDS)
@pytest.mark.parametrize(
    'text',
    [
        "import sys\nmodel = dict(type='A')\nsys.exit(0)\n",
        "custom_imports = dict(imports=['exits'])\nmodel = dict(type='A')\n",
        "model = dict(type='A')\nraise ValueError('\\x1b[31mred\\x1b]0;title\\x07 \\u202e\\nline \\ud800')\n",
        "model = dict(type='A')\nclass Odd(Exception):\n    def __str__(self): raise Odd\nraise Odd()\n",
        "_base_ = './config.py'\n",
    ],
    ids=['exits', 'imports what exits', 'escapes', 'error without words', 'circle'],
)
def test_a_config_that_cannot_be_loaded(text: str, command: str, folder: Path, capsys: pytest.CaptureFixture) -> None:
    (folder / 'config.py').write_text(text)
    (folder / 'exits.py').write_text('import sys\nsys.exit(0)\n')
    said = run(COMMANDS[command], capsys)
    (line,) = said.splitlines()
    assert line.startswith(f'mmguard {command}: ')
    assert 'config.py' in line or 'exits' in line
    assert not (folder / 'out.py').exists()


def test_names_with_escapes_are_shown_with_every_character(folder: Path, capsys: pytest.CaptureFixture) -> None:
    (folder / 'config.py').write_text(
        "default_scope='mmseg'\n" + HEAD.format(",**{'loss_decode': 5}") + "custom_hooks='\\x1b[31m\\u202e\\ud800'\n"
    )
    run(COMMANDS['check'], capsys)
    run([*COMMANDS['check'], '--json', '-'], capsys)
