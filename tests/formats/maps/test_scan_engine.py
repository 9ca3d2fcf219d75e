"""One engine, however it is run: the same totals, nothing read twice, nothing missing, in tasks of a good length."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path
from typing import Any, Iterator, List

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from label_files import BLOCKS, write
from PIL import Image

from mmguard.formats.faults import Examples
from mmguard.formats.format import split_into_chunks
from mmguard.formats.maps.sources import FolderSource, MapTask, scan_maps
from mmguard.formats.maps.summary import MapItem, MapRecord, MapSummary
from mmguard.formats.options import MapSettings
from mmguard.scanning.executors import LocalProcesses


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


def scanned(folder: str, labels: MapSettings = LABELS, **how: Any) -> Any:
    return scan_maps(FolderSource(folder, labels).items(), labels, **how)


def totals(summary: MapSummary) -> Any:
    return summary.to_facts(), summary.list_worst_files()


def expected(folder: str) -> dict:
    """Counted with numpy alone."""
    totals: dict = {}
    for path in Path(folder).rglob('???.png'):
        for value, count in zip(*np.unique(np.asarray(Image.open(path)), return_counts=True)):
            totals[int(value)] = totals.get(int(value), 0) + int(count)
    return totals


def test_totals_are_those_of_the_files(folder: str) -> None:
    done = scanned(folder)
    assert done.trained == expected(folder)
    assert done.files == 70
    assert done.offending_files == 8
    assert done.unreadable['damaged'].count == 3
    worst = done.list_worst_files(folder)
    assert [file['invalid'] for file in worst] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert worst[0]['file'] == os.path.join('3', '063.png')
    assert worst[0]['stored'] == {'123': 8}


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 9))
def test_chunks_may_be_merged_in_any_order(folder: str, order: random.Random, size: int) -> None:
    items = list(FolderSource(folder, LABELS).items())
    whole = totals(MapTask(LABELS).scan(items))
    order.shuffle(items)
    merged = MapSummary(LABELS)
    for chunk in split_into_chunks(items, size):
        merged.merge(MapTask(LABELS).scan(chunk))
    assert totals(merged) == whole


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
    import mmguard.formats.maps.sources as engine

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
    import mmguard.formats.maps.sources as engine

    read_map = engine.read_map

    def deadly(item: MapItem, *rest: Any) -> MapRecord:
        if item.path.endswith('033.png'):
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does where memory ends
        return read_map(item, *rest)

    monkeypatch.setattr(engine, 'read_map', deadly)
    done = scanned(folder, mapper=LocalProcesses(2))
    assert done.files == 70
    assert [Path(path).name for path in done.unreadable['crashes the decoder'].first] == ['033.png']
    assert sum(done.trained.values()) == 66 * BLOCKS.size
