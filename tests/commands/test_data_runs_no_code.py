"""Without --run-code, a config in YAML or JSON never runs code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
from PIL import Image

from mmguard.cli import main

pytest.importorskip('mmengine')

HEAD = {'type': 'FCNHead', 'num_classes': 3}
CONFIG = {'default_scope': 'mmseg', 'model': {'type': 'EncoderDecoder', 'decode_head': HEAD}}


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file that any code of the folder writes; the folder is the working directory."""
    mark = tmp_path / 'ran'
    text = f"open({str(mark)!r}, 'w').close()\nmodel = dict(type='EncoderDecoder')\nclass Thing: ...\n"
    for name in ('evil_base', 'evil_module', 'evil_scope/__init__', 'evil_scope/registry'):
        (tmp_path / f'{name}.py').parent.mkdir(exist_ok=True)
        (tmp_path / f'{name}.py').write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'path', [*sys.path])
    yield mark
    for name in [name for name in sys.modules if name.startswith('evil_')]:
        del sys.modules[name]


HIDDEN = '{"a": "{{ ", "_base_": "evil_base.py", "b": " }}", "default_scope": "mmseg", "model": {"type": "A"}}'


def as_text(more: Dict[str, Any]) -> str:
    return json.dumps({**CONFIG, **more})


@pytest.mark.parametrize('name', ['config.yaml', 'config.yml', 'config.json'])
@pytest.mark.parametrize(
    'text',
    [
        as_text({'_base_': 'evil_base.py'}),
        as_text({'_base_': ['./evil_base.py']}),
        as_text({'_base_': '{{ fileDirname }}/evil_base.py'}),
        as_text({'_base_': 'mmseg::_base_/models/pspnet_r50-d8.py'}),
        HIDDEN,
        as_text({'model': {'type': 'evil_module.Thing'}}),
        as_text({'model': {'type': 'EncoderDecoder', 'decode_head': [{'type': 'evil_scope.Thing'}]}}),
        as_text({'x': {'type': 'evil_module.Thing'}}),
        as_text({'model': {'type': 'mmengine.load'}}),
        as_text({'default_scope': 'evil_scope'}),
        as_text({'model': {'type': 'EncoderDecoder', '_scope_': 'evil_scope'}}),
    ],
)
def test_a_config_of_data_runs_no_base_and_imports_no_type(text: str, name: str, tmp_path: Path, ran: Path) -> None:
    (tmp_path / name).write_text(text)
    assert [main(['check', name]), main(['scan', name])] == [2, 2]
    assert not ran.exists()


@pytest.mark.parametrize('name', ['config.yaml', 'config.json'])
@pytest.mark.parametrize('base', ['evil_scope.registry::y.yaml', 'evil_module::y.json', 'mmevil::y.yml', '::y.yaml'])
def test_only_a_known_framework_is_looked_for(
    base: str, name: str, tmp_path: Path, ran: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))  # as if it were installed
    (tmp_path / name).write_text(as_text({'_base_': base}))
    assert [main([command, target]) for command in ('check', 'scan') for target in (name, base)] == [2, 2, 2, 2]
    assert not ran.exists()


@pytest.mark.parametrize('name', ['config.yaml', 'config.json'])
@pytest.mark.parametrize('text', ['{{$MMGUARD_SECRET:x}}', "{{'$MMGUARD_SECRET:x'}}", '{{ $MMGUARD_SECRET :x }}'])
def test_data_show_no_environment_variable(
    text: str, name: str, ran: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv('MMGUARD_SECRET', 'TopSecret')
    for more in (
        {'model': {'type': text}},
        {'_base_': [f'{text}.yaml']},
        {'model': {'type': 'A', 'class_weight': text}},
    ):
        Path(name).write_text(as_text(more))
        assert main(['check', name]) == 2
    assert 'TopSecret' not in ''.join(capsys.readouterr())
    assert main(['check', name, '--run-code']) in (0, 1)


@pytest.mark.parametrize(
    'command',
    [
        ['check', 'config.yaml'],
        ['scan', 'config.yaml'],
        ['trace', 'config.yaml'],
        ['replay', 'config.yaml', 'label_guard_flight.jsonl'],
        ['apply', 'config.yaml', '-o', 'out.py'],
    ],
    ids=lambda command: command[0],
)
def test_what_data_names_is_imported_with_run_code_only(command: List[str], tmp_path: Path, ran: Path) -> None:
    (tmp_path / 'config.yaml').write_text(as_text({'custom_imports': {'imports': ['evil_module']}}))
    record = '{"format": 2, "capacity": 9}\n{"iter": 1, "samples": [{"path": "a.png"}]}\n'
    (tmp_path / 'label_guard_flight.jsonl').write_text(record)
    assert main(command) == (0 if command[0] == 'check' else 2)
    assert not ran.exists()
    assert not (tmp_path / 'out.py').exists()
    main([*command, '--run-code'])
    assert ran.exists()


def test_a_loader_that_unpickles_label_files_is_built_with_run_code_only(tmp_path: Path, ran: Path) -> None:
    """A label map may be a picture and a pickle: the size of a .bmp is the length of bytes that a pickle skips."""
    pytest.importorskip('mmseg')
    Image.new('RGB', (8, 8)).save(tmp_path / 'a.jpg')
    Image.new('L', (8, 8)).save(tmp_path / 'a.bmp')
    picture = bytearray((tmp_path / 'a.bmp').read_bytes())
    picture[2:6] = (len(picture) // 256 + 1).to_bytes(4, 'little')
    skipped = int.from_bytes(picture[1:5], 'little')
    picture += bytes(5 + skipped - len(picture))
    call = f'cbuiltins\nopen\n(V{ran}\nVw\ntR.'
    (tmp_path / 'a.bmp').write_bytes(picture + b'0' + call.encode())
    data = {'type': 'BaseSegDataset', 'img_suffix': '.jpg', 'seg_map_suffix': '.bmp', 'metainfo': {'classes': ['a']}}
    data['pipeline'] = [{'type': 'LoadBiomedicalAnnotation', 'decode_backend': 'pickle'}]
    data['data_prefix'] = {'img_path': str(tmp_path), 'seg_map_path': str(tmp_path)}
    (tmp_path / 'config.yaml').write_text(as_text({'train_dataloader': {'dataset': data}}))
    assert main(['scan', 'config.yaml']) == 2
    assert not ran.exists()
    main(['scan', 'config.yaml', '--run-code'])
    assert ran.exists()


def test_fix_runs_no_config_whose_edits_nobody_asked_for(tmp_path: Path, ran: Path) -> None:
    assert main(['fix', 'evil_base.py', '-o', 'out', '--num-classes', '3']) == 2
    assert not ran.exists()
