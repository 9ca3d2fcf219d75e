"""The files of a run are found, whichever of them is named."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, List

import pytest

from mmguard.log.run_files import NotALog, RunFiles, find_run

LOG = '{"mode": "train", "iter": 1}\n'
RECORD = '{"format": 1, "runs": []}'
FLIGHT = '{"format": 2, "rank": 0, "capacity": 20}\n{"iter": 1, "samples": []}\n'


def make(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace('__', '.')).write_text(text)


def names(paths: List[Path]) -> List[str]:
    return [path.name for path in paths]


def reported(run: RunFiles) -> Any:
    return names(run.logs), names(run.records), names(run.crashes)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """What two ranks left, and what is none of theirs."""
    folder = tmp_path / 'run'
    make(folder, label_guard__jsonl=LOG, label_guard__rank1__jsonl=LOG, label_guard__rank12__jsonl=LOG)
    make(folder, label_guard__rankx__jsonl=LOG, other__rank1__jsonl=LOG)
    make(folder, label_guard__json=RECORD, label_guard__rank1__json=RECORD)
    make(folder, label_guard_flight__jsonl=FLIGHT, label_guard_flight__rank1__jsonl=FLIGHT)
    return folder


LOGS = ['label_guard.jsonl', 'label_guard.rank1.jsonl', 'label_guard.rank12.jsonl']
RECORDS = ['label_guard.json', 'label_guard.rank1.json']
FLIGHTS = ['label_guard_flight.jsonl', 'label_guard_flight.rank1.jsonl']


@pytest.mark.parametrize('named', ['label_guard.jsonl', 'label_guard.json', 'label_guard.rank1.json'])
def test_a_log_or_a_record_means_the_whole_run(run: Path, named: str) -> None:
    found = find_run(run / named)
    assert reported(found) == (LOGS, RECORDS, FLIGHTS)
    assert not found.crash_alone


@pytest.mark.parametrize('named', FLIGHTS)
def test_a_flight_record_means_those_of_all_ranks_alone(run: Path, named: str) -> None:
    found = find_run(run / named)
    assert reported(found) == ([], RECORDS, FLIGHTS)
    assert found.crash_alone


@pytest.mark.parametrize('text', [FLIGHT, FLIGHT.splitlines()[0], '{"format": 1,\n "batches": []}'])
def test_a_flight_record_of_any_name_is_known_by_what_it_says(tmp_path: Path, text: str) -> None:
    make(tmp_path, sent_by_mail__json=text)
    assert names(find_run(tmp_path / 'sent_by_mail.json').crashes) == ['sent_by_mail.json']


def test_of_several_runs_the_newest_is_read(tmp_path: Path) -> None:
    for age, name in enumerate(('20260102_000000', '20260101_000000')):
        make(tmp_path / name, label_guard__rank1__jsonl=LOG)
        os.utime(tmp_path / name / 'label_guard.rank1.jsonl', (1000 - age, 1000 - age))
    run = find_run(tmp_path)
    assert run.folder.name == '20260102_000000'
    assert [path.name for path in run.others] == ['20260101_000000']


@pytest.mark.parametrize('files', [dict(label_guard__json=RECORD), dict(label_guard_flight__jsonl=FLIGHT)])
def test_one_file_makes_a_run(tmp_path: Path, files: Any) -> None:
    make(tmp_path / 'a' / 'b', **files, label_guard__jsonl__old=LOG, label_guard__json__old=RECORD)
    assert sum(map(len, reported(find_run(tmp_path)))) == 1


def test_nothing_is_reported(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / 'x.jsonl'):
        with pytest.raises(NotALog, match=re.escape(str(path))):
            find_run(path)


@pytest.mark.parametrize('content', ['', '[1]', '[' * 100_000, '{"a": ', json.dumps(dict(mode='val', iter=1))])
def test_whatever_else_is_taken_for_a_log(tmp_path: Path, content: str) -> None:
    path = tmp_path / 'x.json'
    path.write_text(content)
    assert find_run(path).logs == [path]
