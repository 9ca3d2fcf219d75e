from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest

pytest.importorskip('mmengine')

from mmguard import FlightRecorderHook
from mmguard.log.flight_record import FORMAT, KILLED, Flight, FlightRecord, read_flight


def batch(number: int, name: str = 'a.png') -> Dict[str, Any]:
    return dict(iter=number, samples=[dict(path=f'/data/{name}')])


def iterations(flight: Flight) -> List[Optional[int]]:
    return [batch.iter for batch in flight.batches]


def test_round_trip_with_what_json_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / 'new' / 'flight.jsonl'
    record = FlightRecord(str(path), capacity=3, rank=2)
    record.write(**batch(7, 'caf\udce9\n\u2028.png'))
    record.write(reason='exception', exception={'type': 'E', 'message': '\udcff', 'traceback': ''})
    record.close()
    found = read_flight(str(path))
    (only,) = found.batches
    assert only.samples[0].path == '/data/caf\udce9\n\u2028.png'
    assert (found.rank, found.iter, found.reason) == (2, 7, 'exception')
    assert found.exception.message == '\udcff'
    assert found.time[:2] == '20'
    assert found.unread.list_messages() == []
    assert [file.name for file in path.parent.iterdir()] == ['flight.jsonl']


def test_the_file_is_bounded_and_holds_the_last_batches_at_each_moment(tmp_path: Path) -> None:
    path = tmp_path / 'flight.jsonl'
    record = FlightRecord(str(path), capacity=4)
    largest = 0
    for number in range(1, 501):
        record.write(**batch(number))
        assert iterations(read_flight(str(path))) == list(range(max(1, number - 3), number + 1))
        largest = max(largest, path.stat().st_size)
    assert largest < 4 * 12 * 150
    record.write(reason='exception')
    assert iterations(read_flight(str(path))) == [497, 498, 499, 500]
    record.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_second_one_replaces_the_first(tmp_path: Path) -> None:
    path = str(tmp_path / 'flight.jsonl')
    for number in (3, 4):
        record = FlightRecord(path, capacity=2)
        record.write(**batch(number))
        record.close()
    assert iterations(read_flight(path)) == [4]


def test_what_could_not_be_written_is_written_with_the_next_line(tmp_path: Path) -> None:
    (tmp_path / 'folder').write_text('')
    record = FlightRecord(str(tmp_path / 'folder' / 'flight.jsonl'), capacity=3)
    assert isinstance(record.error, OSError)
    record.write(**batch(1))
    assert isinstance(record.error, OSError)
    os.unlink(tmp_path / 'folder')
    record.write(**batch(2))
    assert record.error is None
    record.close()
    assert iterations(read_flight(record.path)) == [1, 2]


def test_a_line_that_was_cut_off_costs_that_line_alone(tmp_path: Path) -> None:
    """By a disk that is full, or a machine without power."""
    path = tmp_path / 'flight.jsonl'
    record = FlightRecord(str(path), capacity=9)
    for number in (1, 2):
        record.write(**batch(number))
    record.close()
    whole = path.read_bytes()
    head, *lines = whole.splitlines(keepends=True)
    for length in range(len(head), len(whole)):
        path.write_bytes(whole[:length])
        lines_left = whole[: length + 1].count(b'\n') - 1  # one lacks no more than its end
        found = read_flight(str(path))
        assert (len(found.batches), found.reason) == (lines_left, KILLED)
    path.write_bytes(head + lines[0][:9] + b'\n' + lines[1])
    assert iterations(read_flight(str(path))) == [2]


@pytest.mark.parametrize(
    ('text', 'named'),
    [
        *((text, 'flight.jsonl') for text in ('', '{"capacity": ', '[]', '[' * 100_000, '{}')),
        ('{"mode": "train", "iter": 1}\n{"mode": "train", "samples": []}\n', 'flight.jsonl'),
        (json.dumps({'format': FORMAT + 1, 'capacity': 1}), str(FORMAT + 1)),
    ],
)
def test_what_is_no_record_is_refused(text: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / 'flight.jsonl'
    path.write_text(text)
    with pytest.raises(ValueError, match=named) as caught:
        read_flight(str(path))
    assert str(caught.value).startswith(f'{path}: ')


@pytest.mark.parametrize(('value', 'error'), [(0, ValueError), (1.5, TypeError)])
def test_a_wrong_capacity_is_named(value: float, error: type) -> None:
    with pytest.raises(error, match='capacity'):
        FlightRecorderHook(capacity=value)
