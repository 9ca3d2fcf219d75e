"""One engine, however it is run: the same totals, nothing read twice, nothing missing, in tasks of a good length."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator, List

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from label_files import BLOCKS, write
from PIL import Image, ImageFile

from mmguard.formats.faults import Examples
from mmguard.formats.format import split_into_chunks
from mmguard.formats.maps.folder import FolderSource
from mmguard.formats.maps.record import Journal, MapItem, MapRecord
from mmguard.formats.maps.source import MapTask, scan_maps
from mmguard.formats.maps.summary import MapSummary
from mmguard.formats.options import MapSettings
from mmguard.scanning.processes import LocalProcesses


@given(st.lists(st.integers(), max_size=999), st.integers(1, 5), st.integers(0, 9))
def test_chunks_hold_every_element_once_and_in_order(elements: list, size: int, most: int) -> None:
    chunks = list(split_into_chunks(elements, size, most))
    assert [element for chunk in chunks for element in chunk] == elements
    assert all(size <= len(chunk) <= max(size, most) for chunk in chunks[:-1])
    assert all(len(chunk) <= max(size, len(elements) // 64) for chunk in chunks), 'at the end none is waited for long'
    assert all(chunks)


LABELS = MapSettings(num_classes=5)


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """67 label maps, every ninth with an invalid value, three damaged."""
    root = tmp_path_factory.mktemp('labels')
    for number in range(67):
        label = np.roll(BLOCKS, number)
        if number % 9 == 0:
            label[0, : number // 9 + 1] = 60 + number
        write(root / f'{number % 4}' / f'{number:03d}.png', label)
    for number in range(3):
        (root / f'damaged{number}.png').write_bytes(b'\x89PNG\r\n\x1a\n')
    return str(root)


@pytest.fixture
def decodes(monkeypatch: pytest.MonkeyPatch) -> List[str]:
    """The files whose pixels this process decodes."""
    seen: List[str] = []
    load = ImageFile.ImageFile.load

    def counted(self: Any) -> Any:
        if self.tile:  # asked for again, the pixels are there
            seen.append(self.filename or self.fp.name)
        return load(self)

    monkeypatch.setattr(ImageFile.ImageFile, 'load', counted)
    return seen


def scanned(folder: str, labels: MapSettings = LABELS, **how: Any) -> Any:
    return scan_maps(FolderSource(folder, labels).items(), labels, **how)


def expected(folder: str) -> dict:
    """Counted with numpy alone."""
    totals: dict = {}
    for path in Path(folder).rglob('???.png'):
        for value, count in zip(*np.unique(np.asarray(Image.open(path)), return_counts=True)):
            totals[int(value)] = totals.get(int(value), 0) + int(count)
    return totals


def test_totals_are_those_of_the_files(folder: str) -> None:
    done = scanned(folder)
    assert done.summary.trained == expected(folder)
    assert (done.summary.files, done.decoded, done.reused) == (70, 70, 0)
    assert done.summary.offending_files == 8
    assert done.summary.unreadable['damaged'].count == 3
    worst = done.summary.list_worst_files(folder)
    assert [file['invalid'] for file in worst] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert worst[0]['file'] == os.path.join('3', '063.png')
    assert worst[0]['stored'] == {'123': 8}


def test_processes_give_the_same_totals(folder: str) -> None:
    assert scanned(folder, mapper=LocalProcesses(3)).summary.totals() == scanned(folder).summary.totals()


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 9))
def test_chunks_may_be_merged_in_any_order(folder: str, order: random.Random, size: int) -> None:
    items = list(FolderSource(folder, LABELS).items())
    whole = MapTask(LABELS).scan(items).summary.totals()
    order.shuffle(items)
    merged = MapSummary(LABELS)
    for chunk in split_into_chunks(items, size):
        merged.merge(MapTask(LABELS).scan(chunk).summary)
    assert merged.totals() == whole


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)))
def test_examples_are_the_same_few_in_any_order(left: List[int], right: List[int]) -> None:
    def of(numbers: List[int]) -> Examples:
        examples = Examples(3)
        for number in numbers:
            examples.add(number)
        return examples

    there, back = of(left), of(right)
    there.merge(of(right))
    back.merge(of(left))
    assert there == back == of(left + right)
    assert there.first == sorted(left + right)[:3]


def test_a_second_scan_of_an_unchanged_set_decodes_nothing(folder: str, tmp_path: Path, decodes: List[str]) -> None:
    path = str(tmp_path / 'journal.jsonl')
    with Journal(path, resume=False) as journal:
        first = scanned(folder, journal=journal)
    assert len(decodes) == 67, 'the damaged ones have nothing to decode'
    decodes.clear()
    with Journal(path, resume=True) as journal:
        again = scanned(folder, journal=journal)
    assert decodes == []
    assert (again.decoded, again.reused) == (0, 70)
    assert again.summary.totals() == first.summary.totals()
    with Journal(path, resume=False) as journal:
        scanned(folder, journal=journal)
    assert len(decodes) == 67, 'without resume everything is read'


def test_only_what_changed_is_read_again(tmp_path: Path, decodes: List[str]) -> None:
    files = [write(tmp_path / 'labels' / f'{number}.png', BLOCKS) for number in range(5)]
    path, labels = str(tmp_path / 'j.jsonl'), str(tmp_path / 'labels')
    with Journal(path, resume=False) as journal:
        scanned(labels, journal=journal)
    write(files[3], np.full_like(BLOCKS, 7))
    decodes.clear()
    with Journal(path, resume=True) as journal:
        done = scanned(labels, journal=journal)
    assert decodes == [files[3]]
    assert done.summary.trained[7] == BLOCKS.size
    decodes.clear()
    with Journal(path, resume=True) as journal:
        assert scanned(labels, journal=journal).summary.totals() == done.summary.totals()
    assert decodes == [], 'the last line about a file counts'
    # A value that has become invalid was not looked at before: whether it lies at edges is not known.
    with Journal(path, resume=True) as journal:
        stricter = scanned(labels, MapSettings(num_classes=4), journal=journal)
    assert len(decodes) == 4
    assert stricter.summary.offending_files == 5


def test_a_torn_journal_is_read_as_far_as_it_goes(folder: str, tmp_path: Path) -> None:
    path = tmp_path / 'journal.jsonl'
    with Journal(str(path), resume=False) as journal:
        first = scanned(folder, journal=journal)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b''.join(lines[:30]) + b'not json\n[1]\n{"path": 5}\n' + lines[30][:40])
    with Journal(str(path), resume=True) as journal:
        again = scanned(folder, journal=journal)
    assert (again.reused, again.decoded) == (30, 40)
    assert again.summary.totals() == first.summary.totals()
    with Journal(str(path), resume=True) as journal:
        assert scanned(folder, journal=journal).reused == 70


@pytest.mark.parametrize(
    'changed',
    [
        {'raw': {'1': 'x'}},
        {'raw': {'1': -5}},
        {'raw': 7},
        {'loaded': {'300': 5}},
        {'raw': {'300': 5}},
        {'changes': 'wrapped'},
        {'colors': {'1,2,3': None}},
        {'stamp': [1]},
        {'shape': ['a', 'b']},
        {'form': {}},
        {'other': 1},
    ],
)
def test_a_line_of_the_journal_that_fits_no_record_is_not_believed(tmp_path: Path, changed: Any) -> None:
    path, file = tmp_path / 'journal.jsonl', write(tmp_path / 'a.png', BLOCKS)
    with Journal(str(path), resume=False) as journal:
        first = scanned(file, journal=journal)
    words = json.loads(path.read_text())
    path.write_text(json.dumps({**words, **changed}) + '\n')
    with Journal(str(path), resume=True) as journal:
        again = scanned(file, journal=journal)
    assert (again.decoded, again.summary.totals()) == (1, first.summary.totals())


def test_items_are_taken_as_they_are_needed(folder: str) -> None:
    taken = []

    def endless() -> Iterator[MapItem]:
        for item in list(FolderSource(folder, LABELS).items()) * 1000:
            taken.append(item)
            yield item

    class Enough(Exception):
        pass

    def stop(files: int) -> None:
        if len(taken) > 200:
            raise Enough

    with pytest.raises(Enough):
        scan_maps(endless(), LABELS, LocalProcesses(2), on_files=stop)
    assert len(taken) < 400, 'of 70,000'


def test_processes_that_nobody_waits_for_are_ended(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import mmguard.formats.maps.source as engine

    read_map = engine.read_map
    items = list(FolderSource(folder, LABELS).items())
    first_task = items[:2]

    def slow(item: MapItem, *rest: Any) -> MapRecord:
        if item.path not in [one.path for one in first_task]:
            time.sleep(600)
        return read_map(item, *rest)

    class Enough(Exception):
        pass

    def stop(files: int) -> None:
        raise Enough

    monkeypatch.setattr(engine, 'read_map', slow)
    before = set(multiprocessing.active_children())  # pools of other tests in this process
    with pytest.raises(Enough):
        scan_maps(iter(items), LABELS, LocalProcesses(2), on_files=stop)
    assert set(multiprocessing.active_children()) <= before


def test_a_file_that_kills_its_process_is_reported(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import mmguard.formats.maps.source as engine

    read_map = engine.read_map

    def deadly(item: MapItem, *rest: Any) -> MapRecord:
        if item.path.endswith('033.png'):
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does where memory ends
        return read_map(item, *rest)

    monkeypatch.setattr(engine, 'read_map', deadly)
    done = scanned(folder, mapper=LocalProcesses(2))
    assert done.summary.files == 70
    assert [Path(path).name for path in done.summary.unreadable['crashes the decoder'].first] == ['033.png']
    assert sum(done.summary.trained.values()) == 66 * BLOCKS.size


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_done(tmp_path: Path) -> None:
    labels = tmp_path / 'labels'
    # Large files, so that a few of them leave the time to be interrupted in.
    big = write(labels / 'first.png', np.tile(BLOCKS, (128, 128)))
    for number in range(50):
        os.link(big, labels / f'{number:04d}.png')
    journal = tmp_path / 'journal.jsonl'
    command = [sys.executable, '-m', 'mmguard.cli', 'scan', str(labels), '--num-classes', '5', '--processes', '2']
    command += ['--journal', str(journal)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (journal.exists() and journal.stat().st_size):
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all of them
    _out, error = running.communicate(timeout=60)
    assert running.returncode == 130
    assert b'--resume' in error
    assert b'Traceback' not in error
    kept = len(journal.read_bytes().splitlines())
    assert 1 <= kept < 51
    done = subprocess.run([*command, '--resume', '--json', '-'], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f'"reused": {kept}'.encode() in done.stdout
