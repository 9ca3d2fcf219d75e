"""Folders of runs as disks and kills leave them: what can be read is shown, the rest is named."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from put_file import put

from mmguard.cli import main
from mmguard.log.run_log import name_for_rank

pytest.importorskip('rich')

NAME = 'label_guard.jsonl'
FILLED = b'{"mode": "train", "iter": 3, "filled": [{"rank": 1, "losses": ["loss_mask"], "samples": []}]}\n'


def line(place: int = 1, source: str = 'a.png') -> bytes:
    sample = {'source': source, 'skipped': 5, 'remapped': 0, 'values': {'24': 5}}
    record = {'mode': 'train', 'iter': place, 'skipped_pixels': 5, 'total': 100, 'samples': [sample]}
    return json.dumps(record).encode() + b'\n'


def report(folder: Path, capsys: Any) -> Any:
    code = main(['report', str(folder)])
    said = capsys.readouterr()
    return code, ' '.join((said.out + said.err).split())


@pytest.mark.parametrize(
    ('text', 'code', 'said'),
    [
        (b'', 2, ''),
        (b'\n' * 100_000, 2, ''),
        (bytes(range(256)) * 400, 2, NAME),
        (line() + line(2)[:50], 1, NAME),
        (line() + line(2)[:50] + b'\n' + line(3), 1, f'{NAME}:2 '),
        (FILLED, 0, 'MG306'),
        (FILLED + line()[:50] + b'\n', 2, f'{NAME}:2 '),
        (FILLED + line()[:50], 2, NAME),
        (line() + b'\0' * 4096 + line(2), 1, f'{NAME}:2 '),
        ((line() + line(2)) * 2, 1, ' 20 of 400 '),
        (line(source='\x1b[31m\n' + 'x' * 10_000 + '\u202e.png'), 1, '\\u202e.png'),
    ],
)
def test_a_damaged_log(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, text: bytes, code: int, said: str
) -> None:
    monkeypatch.setenv('COLUMNS', '20000')  # no path is broken
    (tmp_path / NAME).write_bytes(text)
    found, shown = report(tmp_path, capsys)
    assert (found, said in shown) == (code, True), shown[-2000:]
    assert '\x1b' not in shown


def test_a_log_that_cannot_be_read_hides_no_other_rank(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / name_for_rank(NAME, 1)).write_bytes(line())
    code, shown = report(tmp_path, capsys)
    assert (code, ' 5 of 100 ' in shown) == (1, True)


@pytest.mark.timeout(60)
def test_many_files_take_no_time(tmp_path: Path, capsys: Any) -> None:
    put(tmp_path / 'newest' / NAME, line())
    for number in range(1_000):
        put(tmp_path / f'{number:04d}' / NAME, line(number))
        (tmp_path / 'newest' / name_for_rank(NAME, number + 1)).write_bytes(line(number)[:-5])
    os.utime(tmp_path / 'newest' / NAME, (2 * time.time(),) * 2)
    code, shown = report(tmp_path, capsys)
    assert (code, shown.count(' 990 ')) == (1, 1)
    assert len(shown) < 10_000


TOTALS = {'pixels': {'total': 9}, 'instances': {'total': 0}}
CLEAN_RUN = json.dumps({'format': 1, 'runs': [{'modes': {'train': {'ended': True, 'totals': TOTALS}}}]}).encode()


@pytest.mark.parametrize('name', ['label_guard.rank1.json', 'label_guard_flight.jsonl'])
def test_where_a_record_is_damaged_nothing_is_called_clean(
    name: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('COLUMNS', '200')
    (tmp_path / 'label_guard.json').write_bytes(CLEAN_RUN)
    assert report(tmp_path, capsys)[0] == 0
    (tmp_path / name).write_bytes(CLEAN_RUN[:-9])
    code, shown = report(tmp_path, capsys)
    assert (code, name in shown) == (2, True), shown
