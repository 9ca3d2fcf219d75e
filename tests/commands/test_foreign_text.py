"""Texts of data in the output: on one line, without credentials, and never a command of GitHub."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, List

import pytest
from put_file import put
from security_rows import COCO, png, write, write_yolo

from mmguard.cli import main
from mmguard.commands.page.html import build_page
from mmguard.commands.selection import FORMATS
from mmguard.text import hide_credentials, hide_home, shorten, visible

pytest.importorskip('PIL')
pytest.importorskip('msgspec')
pytest.importorskip('jinja2')
pytest.importorskip('yaml')
pytest.importorskip('mmengine')

EVIL = 'a\n::error::evil ##[error]evil'
LOG = f'Traceback (most recent call last):\n  File "a.py", line 1\nIndexError: Target 7 {EVIL}\nValueError: {EVIL}\n'
XML = f'<annotation><filename>{EVIL}</filename><object><name>{EVIL}</name></object></annotation>'
SECRET = 'https://me:TopSecret@example.com/a.zip?api_key=TopSecret&v=1'


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    images = [{'id': 1, 'file_name': EVIL, 'width': 8, 'height': 8}]
    names = [{'id': 1, 'name': EVIL}, {'id': 2, 'name': EVIL}]
    objects = [{'id': 1, 'image_id': 1, 'category_id': 1, 'bbox': [0, 0, 40, 0], 'area': 1, 'iscrowd': 0}]
    write(tmp_path, train_json={**COCO, 'images': images, 'categories': names, 'annotations': objects})
    write(tmp_path, train_log=LOG, voc__Annotations__a_xml=XML)
    write_yolo(tmp_path / 'yolo', label='7 .5 .5 .1 .1\n').joinpath('data.yaml').write_text(
        f'train: images\nval: {json.dumps(EVIL)}\nnc: {json.dumps(EVIL)}\nnames: [{json.dumps(EVIL)}]\n'
    )
    write(tmp_path, config_py=f'model = dict(type={EVIL!r})\ncustom_imports = dict(imports=[{EVIL!r}])\n')
    for name in ('maps', EVIL):
        put(tmp_path / name / f'{EVIL}.png', png())
        (tmp_path / name / f'{EVIL} damaged.png').write_bytes(b'')
    put(tmp_path / '::error::maps' / '::error::evil.png', png())
    return tmp_path


COMMANDS: List[List[str]] = [
    *(['scan', 'maps', '--num-classes', '2', '--format', form] for form in FORMATS),
    *(['scan', 'train.json', '--images', '.', '--format', form] for form in ('text', 'github', 'junit')),
    ['scan', EVIL, '--num-classes', '2'],
    *(['scan', '::error::maps', '--num-classes', '2', '--format', form] for form in ('text', 'github')),
    ['scan', f'{EVIL} missing'],
    ['scan', 'voc'],
    ['scan', 'yolo'],
    ['fix', 'maps', '--num-classes', '2', '-o', 'out'],
    ['fix', 'train.json', '-o', 'out2'],
    ['check', 'config.py', '--no-verify'],
    ['check', f'{EVIL}.py'],
    ['explain', 'train.log'],
    ['explain', 'train.log', '--verbose', '--data', 'maps', '--num-classes', '2'],
    ['explain', EVIL],
    ['report', EVIL],
]  # fmt: skip


@pytest.mark.parametrize('runs_on', ['', 'true'])
@pytest.mark.parametrize('command', COMMANDS, ids=' '.join)
def test_no_line_begins_with_a_command(
    command: List[str], runs_on: str, data: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setenv('GITHUB_ACTIONS', runs_on)
    assert main(command) in (0, 1, 2)
    shown = capfd.readouterr()
    own = [line for line in shown.out.split('\n') if line.startswith(('::error ', '::warning ', '::notice '))]
    assert bool(own) is ('github' in command)
    lines = [line for line in f'{shown.out}\n{shown.err}'.split('\n') if line not in own]
    if runs_on:  # a runner takes the old form anywhere
        assert [line for line in lines if line.strip().startswith('::')] == []
        assert '##[' not in f'{shown.out}{shown.err}'
    elif command[0] != 'explain':  # which quotes the lines of a log
        assert [line for line in lines if line.startswith(EVIL.split('\n')[1])] == []


def test_github_text_goes_to_standard_error(capsys: pytest.CaptureFixture) -> None:
    for command in ('scan', 'check', 'dry-run'):
        with pytest.raises(SystemExit):
            main([command, '--help'])
        assert 'standard error' in ' '.join(capsys.readouterr().out.split())


@pytest.mark.parametrize('command', [['scan', 'yolo'], ['scan', 'yolo', '--format', 'sarif'], ['explain', 'train.log']])
def test_credentials_in_urls_are_not_repeated(
    command: List[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    write_yolo(tmp_path / 'yolo', label='7 .5 .5 .1 .1\n').joinpath('data.yaml').write_text(
        f'train: images\nval: images\ntest: {SECRET}\nnc: {SECRET}\nnames: [{SECRET}]\ndownload: {SECRET}\n'
    )
    write(tmp_path, train_log=LOG.replace(EVIL, SECRET))
    files = {option: f'out.{option}' for option in (('json', 'html') if 'yolo' in command else ('json',))}
    assert main([*command, *(word for name, file in files.items() for word in (f'--{name}', file))]) == 1
    shown = ''.join([*capsys.readouterr(), *(Path(file).read_text() for file in files.values())])
    assert '***@example.com' in shown
    assert 'TopSecret' not in shown


def test_a_url_that_is_cut_shows_no_part_of_its_credentials() -> None:
    url = f'https://me:{"x" * 200}@example.com'
    assert 'xx' not in shorten(url) + visible(url, 40) + shorten({'a': [url]})
    for kept in ('https://example.com/a@b?v=1', 'me@example.com', '?key=1', 'mmseg::a@b'):
        assert hide_credentials(kept) == kept


@pytest.mark.parametrize(
    ('path', 'shown'),
    [
        ('/home/ann/data/a.png', '~/data/a.png'),
        ('/Users/ann/data', '~/data'),
        ('C:\\Users\\ann\\data', '~\\data'),
        ('HOME/data', '~/data'),
        ('HOMEdata', 'HOMEdata'),
        ('/data/home/ann', '/data/home/ann'),
    ],
)
def test_pages_do_not_name_home_folders(path: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HOME', str(tmp_path))
    path, shown = (text.replace('HOME', str(tmp_path)) for text in (path, shown))
    assert hide_home(f'in {path}: 3') == f'in {shown}: 3'
    assert f'<title>mmguard: Labels of {shown}<' in build_page(f'Labels of {path}', [])
    monkeypatch.setenv('HOME', '/')
    assert hide_home('/data//a https://b') == '/data//a https://b'


@pytest.mark.parametrize(
    'text',
    [
        'x: !!python/object/apply:os.getcwd []\n',
        'a: &a [1]\n' + ''.join(f'b{n}: &b{n} [*{"a" if n == 0 else f"b{n - 1}"}, *a]\n' for n in range(3))
        + 'c: &c [*b2, *b2, *b2, *b2, *b2, *b2, *b2, *b2, *b2]\n' + 'd: ' + '[' * 101 + ']' * 101 + '\n',
        'a0: &a0 [1]\n' + ''.join(f'a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n' for n in range(1, 30)),
    ],
    ids=['tag', 'deep', 'aliases'],
)  # fmt: skip
@pytest.mark.parametrize('name', ['data.yaml', 'data.yml'])
def test_a_data_yaml_that_is_more_than_data_is_a_finding(text: str, name: str, tmp_path: Path) -> None:
    write_yolo(tmp_path / 'set')
    os.unlink(tmp_path / 'set/data.yaml')
    (tmp_path / 'set' / name).write_text(f'{text}train: images\nval: images\nnames: [a]\n')
    record = tmp_path / 'found.json'
    for target in ('set', 'set/labels'):
        assert main(['scan', str(tmp_path / target), '--json', str(record)]) == 1
        (found,) = json.loads(record.read_text())['datasets']
        assert any(name in str(finding['evidence']) + str(finding['files']) for finding in found['findings'])
    assert main(['scan', str(tmp_path / 'set' / name)]) == 2
