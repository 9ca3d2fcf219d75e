"""Checks of the rows of SECURITY.md on what is shown of data, and by which settings."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from security_rows import line, png, scan, write, write_yolo

from mmguard.cli import main
from mmguard.commands import selection

SECRET = 'https://me:TopSecret@example.com/a.zip?{}=TopSecret&v=1'


@line('settings of pyproject.toml')
def check_settings(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert (f'{selection._LARGEST >> 20} MiB' in row, f'{selection._MOST_DOTS} dots' in row) == (True, True)


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
