"""A journal that is damaged, however it is, costs a scan that is resumed no more than reading a file again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mmguard.cli import main
from mmguard.formats.nnunet.record import CaseRecord
from mmguard.text import REPORT_ADVICE


def scan(folder: Path, out: str, *more: str) -> Any:
    words = ['scan', str(folder / 'maps'), '--num-classes', '4', '--processes', '1', '--json', str(folder / out)]
    assert main([*words, '--journal', str(folder / 'journal.jsonl'), *more]) == 1
    return [one['findings'] for one in json.loads((folder / out).read_text())['datasets']]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / 'maps').mkdir()
    for name in ('a', 'b', 'c'):
        Image.fromarray(np.arange(1024, dtype=np.uint8).reshape(32, 32) % 5).save(tmp_path / f'maps/{name}.png')
    return tmp_path


def about(folder: Path, name: str, **more: Any) -> bytes:
    """A line about a file as it is, with other content."""
    status = os.stat(folder / 'maps' / name)
    known = {'path': str(folder / 'maps' / name), 'stamp': [status.st_size, status.st_mtime_ns], 'form': 'gray8'}
    return json.dumps({**known, 'shape': [32, 32], 'raw': {'0': 1024}, **more}).encode() + b'\n'


DAMAGED = {
    'garbage': lambda folder, text: text + bytes(range(256)) * 20 + b'\n',
    'no objects': lambda folder, text: text + b'[]\nnull\n"x"\n1\n{}\n{"path": 5}\n{"path": "\\ud800"}\n',
    'deep': lambda folder, text: text + b'{"path": "/etc/passwd", "x": ' + b'[' * 100_000 + b'\n',
    'deep in one': lambda folder, text: text + about(folder, 'a.png')[:-2] + b', "x": ' + b'[' * 100_000 + b'\n',
    'huge': lambda folder, text: text + b'{"path": "' + b'a' * (1 << 26),
    'digits': lambda folder, text: text + about(folder, 'a.png')[:-2] + b', "raw": {"0": ' + b'9' * 10_000 + b'}}\n',
    'types': lambda folder, text: text + b''.join(
        about(folder, 'a.png', **{key: value})
        for key in ('raw', 'loaded', 'shape', 'form', 'changes', 'between', 'image', 'stamp', 'lossy')
        for value in (5, 'x', [], {}, {'x': 'y'}, [[]], -1)
        if (key, value) not in (('raw', {}), ('lossy', 5))
    ),
}  # fmt: skip


@pytest.mark.parametrize('name', DAMAGED)
def test_the_scan_goes_on_and_says_the_same(name: str, folder: Path, capsys: pytest.CaptureFixture) -> None:
    expected = scan(folder, 'first.json')
    journal = folder / 'journal.jsonl'
    journal.write_bytes(DAMAGED[name](folder, journal.read_bytes()))
    found = scan(folder, 'again.json', '--resume')
    assert REPORT_ADVICE not in capsys.readouterr().err
    if name != 'types':  # some of these are records, of somebody who edits journals
        assert found == expected
    assert scan(folder, 'third.json', '--resume')


DEEP = '[' * 100_000


@pytest.mark.parametrize('line', [DEEP, '{"images": ' + DEEP, '{"images": [' + '9' * 10_000 + ']}', '{}', '5'])
def test_a_line_about_a_case_that_is_damaged_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match='record'):
        CaseRecord.from_line(line)
