from __future__ import annotations

import errno
import json
import os
import resource
import signal
from pathlib import Path
from typing import Any, List

import pytest

from mmguard.log.json_lines import JsonLines


def read(path: Path) -> List[Any]:
    return [json.loads(line) for line in path.read_text(encoding='utf-8').splitlines()]


def test_nothing_is_made_before_the_first_line(tmp_path: Path) -> None:
    lines = JsonLines(str(tmp_path / 'new' / 'log.jsonl'))
    lines.close()
    assert not (tmp_path / 'new').exists()


def test_each_line_is_on_disk_at_once(tmp_path: Path) -> None:
    path = tmp_path / 'new' / 'log.jsonl'
    lines = JsonLines(str(path))
    for number in range(3):
        assert lines.write({'number': number})
        assert read(path) == [{'number': n} for n in range(number + 1)]


def test_appends_also_after_close(tmp_path: Path) -> None:
    path = tmp_path / 'log.jsonl'
    path.write_text('{"number": 0}\n')
    lines = JsonLines(str(path))
    lines.write({'number': 1})
    lines.close()
    lines.write({'number': 2})
    assert read(path) == [{'number': n} for n in range(3)]


def test_a_half_written_last_line_is_ended_first(tmp_path: Path) -> None:
    path = tmp_path / 'log.jsonl'
    path.write_text('{"number": 0}\n{"num')
    JsonLines(str(path)).write({'number': 1})
    assert path.read_text() == '{"number": 0}\n{"num\n{"number": 1}\n'


def test_file_names_of_any_bytes_can_be_logged(tmp_path: Path) -> None:
    path = tmp_path / 'log.jsonl'
    name = os.fsdecode(b'stra\xdfe.png')  # Latin-1, so no UTF-8
    assert JsonLines(str(path)).write({'source': name, 'other': 'straße.png'})
    (line,) = read(path)
    assert line == {'source': name, 'other': 'straße.png'}
    assert 'straße' in path.read_text(encoding='utf-8')  # readable where it can be


@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='needs /dev/full')
def test_a_full_disk_drops_lines_and_keeps_the_reason() -> None:
    lines = JsonLines('/dev/full')
    assert not lines.write({'number': 0})
    assert isinstance(lines.error, OSError)
    assert lines.error.errno == errno.ENOSPC
    assert not lines.write({'number': 1})
    lines.close()


def test_a_disk_that_fills_up_within_a_line_leaves_the_lines_before(tmp_path: Path) -> None:
    path = tmp_path / 'log.jsonl'
    lines = JsonLines(str(path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40, before[1]))
        written = [lines.write({'number': number}) for number in range(4)]  # 14 bytes each
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert written == [True, True, False, False]
    # Once there is room again, the next line ends the torn one and goes on.
    assert lines.error is not None
    assert lines.write({'number': 9})
    assert lines.error is None
    assert [line for line in path.read_text().splitlines() if line.endswith('}')] == [
        '{"number": 0}',
        '{"number": 1}',
        '{"number": 9}',
    ]


def test_a_folder_that_cannot_be_made_does_not_raise(tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    lines = JsonLines(str(tmp_path / 'file' / 'log.jsonl'))
    assert not lines.write({'number': 0})
    assert lines.error is not None


def test_it_stops_growing_at_its_limit_and_says_so_once(tmp_path: Path) -> None:
    path = tmp_path / 'log.jsonl'
    lines = JsonLines(str(path), max_mb=1000 / 2**20)
    written = [lines.write({'number': number}) for number in range(200)]
    assert path.stat().st_size < 1000 + 100
    *counted, note = read(path)
    assert [line['number'] for line in counted] == list(range(sum(written)))
    assert 0 < sum(written) < 75
    assert note.keys() == {'note'}
    assert lines.is_full
    lines.close()
    # What stands there already counts, too.
    other = JsonLines(str(path), max_mb=1000 / 2**20)
    assert not other.write({'number': 1})
