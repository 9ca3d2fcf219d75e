from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from mmguard import FlightRecorderHook
from mmguard.log.flight_record import FORMAT, read_record, write_record


def test_round_trip_with_what_json_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / 'new' / 'crash.json'
    losses = {'loss': float('nan'), 'a': float('inf'), 'b': float('-inf'), 'c': 0.5}
    record = {
        'format': FORMAT,
        'batches': [{'losses': losses, 'samples': [{'source': 'a\udcff.png', 'path': Path('x')}]}],
    }
    assert write_record(str(path), record) is None
    (batch,) = read_record(str(path))['batches']
    assert math.isnan(float(batch['losses']['loss']))
    assert [float(batch['losses'][name]) for name in 'abc'] == [float('inf'), float('-inf'), 0.5]
    assert batch['samples'][0]['path'] == 'x'
    assert [file.name for file in path.parent.iterdir()] == ['crash.json']


def test_what_cannot_be_written_is_returned_not_raised(tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    assert isinstance(write_record(str(tmp_path / 'file' / 'crash.json'), {}), OSError)


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('', 'not a crash record'),
        ('{"batches": [', 'not a crash record'),
        ('[]', 'it has no "batches"'),
        ('{}', 'it has no "batches"'),
        (json.dumps({'format': 99, 'batches': []}), 'format 99, this mmguard reads'),
    ],
)
def test_what_is_no_record_is_told(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / 'crash.json'
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_record(str(path))


@pytest.mark.parametrize(
    ('arguments', 'error', 'message'),
    [
        (dict(capacity=0), ValueError, 'capacity must be at least 1, got 0'),
        (dict(capacity=1.5), TypeError, 'capacity must be an int'),
        (dict(timeout=0), ValueError, 'timeout must be more than 0 seconds, got 0'),
    ],
)
def test_wrong_arguments_of_the_recorder_are_named(arguments: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        FlightRecorderHook(**arguments)


def test_an_error_whose_text_cannot_be_made_is_recorded_all_the_same(tmp_path: Path) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError('no text')

    hook = FlightRecorderHook()
    hook._path = str(tmp_path / 'crash.json')
    try:
        raise Mute
    except Mute as error:
        hook._write('exception', error)
    told = read_record(hook._path)['exception']
    assert told['type'] == 'Mute'
    assert told['message'] == "(its text cannot be made: RuntimeError('no text'))"
    assert 'raise Mute' in told['traceback']


def test_nothing_that_fails_in_writing_is_raised(tmp_path: Path) -> None:
    class Closed:
        @property
        def logger(self) -> Any:
            raise ValueError('I/O operation on closed file')

    hook = FlightRecorderHook()
    hook._path, hook._runner = str(tmp_path / 'crash.json'), Closed()
    hook._write('exception', ValueError('x'))
    assert read_record(hook._path)['exception']['message'] == 'x'
