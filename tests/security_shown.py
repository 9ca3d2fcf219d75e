"""Checks of the rows of SECURITY.md on what is shown of data, and by which settings."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from security_rows import line, png, scan, write, write_yolo

from mmguard.cli import main
from mmguard.commands import selection

SECRET = 'https://me:TopSecret@example.com/a.zip?{}=TopSecret&v=1'


@line('settings of pyproject.toml')
def check_settings(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    if sys.version_info < (3, 11):
        pytest.skip('tomllib came with Python 3.11')
    assert (f'{selection._LARGEST >> 20} MiB' in row, f'{selection._MOST_DOTS} dots' in row) == (True, True)
    write(folder, maps__a_png=png(), pyproject_toml='[tool.mmguard]\nignore = ["MG"]\n')
    assert scan('maps', '--num-classes', 2, '--json', 'found.json') == 0
    assert 'pyproject.toml' in capsys.readouterr().err
    assert json.loads((folder / 'found.json').read_text())['datasets'][0]['hidden']
    for form in ('text', 'github', 'sarif', 'junit'):
        assert scan('maps', '--num-classes', 2, '--format', form) == 0
        assert 'hidden' in capsys.readouterr().out.replace('suppressions', 'hidden')
    os.rename('pyproject.toml', 'maps/pyproject.toml')
    os.chdir('maps')
    assert scan('.', '--num-classes', 2) == 1
    os.rename('pyproject.toml', '../pyproject.toml')
    assert scan('.', '--num-classes', 2) == 1
    (folder / '.git').mkdir()
    assert scan('.', '--num-classes', 2) == 0


@line('names and texts of data')
def check_lines(row: str, folder: Path, mark: Path, capsys: Any, monkeypatch: Any = None) -> None:
    write(folder, maps__a_png=png())
    for name in ('::error::evil', 'a\n::error::evil ##[error]'):
        os.rename(folder / 'maps', folder / name)
        os.environ['GITHUB_ACTIONS'] = 'true'
        try:
            assert scan(name, '--num-classes', 2, '--format', 'github') == 1
        finally:
            del os.environ['GITHUB_ACTIONS']
        os.rename(folder / name, folder / 'maps')
        shown = capsys.readouterr()
        assert all(text.startswith('::error file=') for text in shown.out.splitlines())
        assert not re.search(r'(?m)^\s*::|##\[', shown.err)


@line('credentials in URLs')
def check_credentials(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    names = re.findall('key|token|secret|password', row)
    assert len(names) == 5  # user and password, too
    for name in names:
        url = SECRET.format(name)
        write_yolo(folder / 'set').joinpath('data.yaml').write_text(f'train: images\nval: images\nnc: {url}\n')
        assert scan('set', '--json', 'found.json', '--html', 'page.html') == 1
        write(folder, train_log=f'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: {url}\n')
        main(['explain', 'train.log'])
        shown = [*capsys.readouterr(), (folder / 'found.json').read_text(), (folder / 'page.html').read_text()]
        assert 'TopSecret' not in ''.join(shown)
        assert '***' in shown[0]


@line('pages (`--html`)')
def check_pages(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    write(folder, maps__a_png=png())
    before = os.environ.get('HOME', '')
    os.environ['HOME'] = str(folder)
    try:
        assert scan(folder / 'maps', '--num-classes', 2, '--html', 'page.html') == 1
    finally:
        os.environ['HOME'] = before
    page = (folder / 'page.html').read_text()
    assert ('~/maps' in page, str(folder) in page) == (True, False)


@line('a data.yaml with tags or aliases that spread')
def check_data_yaml(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    doubled = 'a0: &a0 [1]\n' + ''.join(f'a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n' for n in range(1, 30))
    for text in ('x: !!python/name:os.system\n', doubled):
        write_yolo(folder / 'set', text)
        assert scan('set') == 1
        assert 'data.yaml' in capsys.readouterr().out
