"""No command changes anything else than its own earlier outputs, or takes an argument that none can take."""

from __future__ import annotations

import argparse
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest
from coco_cases import ann, coco

from mmguard.cli import _build_parser, main
from mmguard.commands.outputs import write_json, write_output
from mmguard.errors import CannotRun

COCO = coco([ann(1, box=(0, 0, 199, 9))], 1, ['x'])
LOG = 'Traceback (most recent call last):\n  File "x.py", line 3, in f\n    a\nIndexError: Target 7 is out of bounds.\n'
RUN = '{"mode": "train", "iter": 1, "skipped_pixels": 3, "remapped_pixels": 0, "total": 10, "samples": []}\n'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    image = pytest.importorskip('PIL.Image')
    (tmp_path / 'm').mkdir()
    for number in range(3):
        image.new('L', (8, 8), number).save(tmp_path / 'm' / f'{number}.png')
    (tmp_path / 'coco.json').write_text(json.dumps(COCO))
    (tmp_path / 'train.log').write_text(LOG)
    (tmp_path / 'label_guard.jsonl').write_text(RUN)
    (tmp_path / 'link').symlink_to('coco.json')
    (tmp_path / 'folder').symlink_to('m')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> Dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob('*')) if path.is_file()}


@pytest.mark.parametrize(
    'words',
    [
        'scan coco.json --json coco.json',
        'scan coco.json --html coco.json',
        'scan coco.json --html m/../coco.json',
        'scan coco.json --json link',
        'scan link --json coco.json',
        'scan m --num-classes 5 --json m/0.png',
        'scan m --num-classes 5 --html folder/1.png',
        'scan folder --num-classes 5 --html m/1.png',
        'scan m --num-classes 5 --json new --html new',
        'explain train.log --json train.log',
        'report label_guard.jsonl --json label_guard.jsonl',
        'report . --json label_guard.jsonl',
        'check coco.json --json coco.json',
        'env --no-import --json train.log',
        'trace coco.json --json coco.json',
        'replay coco.json label_guard.jsonl --json label_guard.jsonl',
    ],
)
def test_what_is_read_and_what_somebody_else_wrote_stays(words: str, place: Path, capsys: Any) -> None:
    before = contents(place)
    assert main(words.split()) == 2
    assert words.split()[-1] in capsys.readouterr().err
    assert contents(place) == before


def test_an_output_that_is_read_stays_too(place: Path) -> None:
    assert main(['scan', 'coco.json', '--json', 'out.json']) == 1
    before = contents(place)
    assert main(['explain', 'out.json', '--json', 'out.json']) == 2
    assert contents(place) == before


def test_outputs_are_written_again_also_through_a_link(place: Path) -> None:
    words = ['scan', 'm', '--num-classes', '5', '--json', 'last', '--html', 'page.html']
    (place / 'out.json').touch()
    (place / 'last').symlink_to('out.json')
    for _ in range(2):
        main(words)
        assert json.loads((place / 'out.json').read_text())['written_by'] == 'mmguard'
        assert (place / 'last').is_symlink()
        assert (place / 'page.html').read_text().startswith('<!DOCTYPE html>')


@pytest.mark.parametrize('option', ['--json', '--html'])
@pytest.mark.parametrize('kind', ['null', 'full', 'pipe', 'link', 'stdout', 'folder', 'dangling'])
@pytest.mark.timeout(60)
def test_a_node_that_is_not_a_regular_file_is_refused_and_stays(option: str, kind: str, place: Path) -> None:
    node = place / 'node'
    if kind in ('null', 'full'):
        try:
            os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 3 if kind == 'null' else 7))
        except PermissionError:
            pytest.skip('makes no devices')
    elif kind == 'folder':
        node.mkdir()
    elif kind in ('pipe', 'link'):
        os.mkfifo(place / 'pipe' if kind == 'link' else node)
    if kind in ('link', 'stdout', 'dangling'):
        node.symlink_to({'link': 'pipe', 'stdout': '/proc/self/fd/1', 'dangling': 'nothing'}[kind])
    before = os.lstat(node)
    words = ['scan', 'm', '--num-classes', '5', option, str(node)]
    if kind == 'stdout':
        with open(place / 'printed', 'wb') as printed:
            code = subprocess.run([sys.executable, '-m', 'mmguard.cli', *words], stdout=printed, check=False).returncode
    else:
        code = main(words)
    assert code == 2
    assert os.path.samestat(before, os.lstat(node))
    assert not (place / 'nothing').exists()


def test_every_output_of_every_command_is_known() -> None:
    (commands,) = [action for action in _build_parser()._actions if isinstance(action, argparse._SubParsersAction)]
    written = {'json', 'html', 'out'}
    found: List[str] = []
    for name in commands.choices:
        actions = commands.choices[name]._actions
        options = {action.dest for action in actions if action.metavar in ('FILE', 'OUT', 'DIR')}
        found += sorted(f'{name} {option}' for option in options - written)
    assert sorted(found) == ['apply images', 'scan images']  # which are read


def test_a_dash_is_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_json(str(tmp_path / 'new' / 'out.json'), {'é': '\udce9'})
    written = (tmp_path / 'new' / 'out.json').read_text()
    assert json.loads(written) == {'written_by': 'mmguard', 'é': '\udce9'}
    write_json('-', {'é': '\udce9'})
    assert capsys.readouterr().out == written


@pytest.mark.parametrize('folder', ['.', '..', '/'])
def test_a_folder_is_no_place_for_a_file(folder: str) -> None:
    with pytest.raises(CannotRun, match=re.escape(folder)):
        write_json(folder, {})
    with pytest.raises(OSError):
        write_output(folder, b'')


def test_apply_never_writes_over_its_config_or_a_base(tmp_path: Path) -> None:
    pytest.importorskip('mmengine')
    base, config = tmp_path / 'base.py', tmp_path / 'config.py'
    base.write_text("model = dict(type='A')\n")
    config.write_text("_base_ = './base.py'\n")
    before = contents(tmp_path)
    for read in (base, config):
        assert main(['apply', str(config), '-o', str(read), '--force']) == 2
        (tmp_path / 'out.py').symlink_to(read.name)
        assert main(['apply', str(config), '-o', str(tmp_path / 'out.py'), '--force']) == 2
        os.unlink(tmp_path / 'out.py')
    assert contents(tmp_path) == before


HUGE = '9' * 30


@pytest.mark.parametrize(
    ('words', 'limit'),
    [
        (['scan', '.', '--num-classes', HUGE], '2,147,483,647'),
        (['scan', '.', '--num-classes', '-1'], ' 1'),
        (['scan', '.', '--ignore-index', HUGE], '9,223,372,036,854,775,807'),
        (['fix', '.', '--out', 'new', '--ignore-index', f'-{HUGE}'], '9,223,372,036,854,775,807'),
        (['scan', '.', '--processes', '100000000'], '1,024'),
        (['scan', '.', '--label-map', f'1:{HUGE}'], '9,223,372,036,854,775,807'),
        (['scan', '.', '--label-map', '{"1": Infinity}'], ''),
        (['scan', '.', '--label-map', '{"a":' + '[' * 100_000], ''),
        *[(['fix', '.', '--out', 'new', '--colors', table], '') for table in ('{(0, 0): 1}', 'nowhere.json', '[1, 2]')],
        (['fix', '.', '--out', 'new', '--colors', '(' * 5000], '{(R, G, B): label, ...}'),
        *[(['fix', '.', '--out', 'new', '--scale', factor], 'scale') for factor in ('0', '-1', 'inf', 'nan', 'half')],
    ],
)
def test_what_no_command_takes(words: List[str], limit: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit, match='2'):
        main(words)
    error = capsys.readouterr().err.splitlines()[-1]
    assert words[-2] in error
    assert limit in error
    assert len(error) < 300
