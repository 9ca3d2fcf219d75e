"""Who gets shared memory, and who goes on without. Ranks are threads here: what they say to each other is real."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path
from typing import Any, Callable, List, Optional

import pytest

from mmguard.distributed import shared_memory
from mmguard.distributed.board import Board
from mmguard.distributed.peers import this_process
from mmguard.distributed.shared_memory import Offer, shared_board

pytestmark = pytest.mark.skipif(not os.path.isdir(shared_memory.FOLDER), reason='there is no /dev/shm here')


class Gather:
    """What all_gather_object does, between threads; ``change`` stands for what a rank is told differently."""

    def __init__(self, size: int, change: Callable[[int, Any], Any] = lambda place, item: item) -> None:
        self.items: List[Any] = [None] * size
        self.barrier = threading.Barrier(size, timeout=20)
        self.change = change

    def __call__(self, place: int, item: Any) -> List[Any]:
        self.items[place] = item
        self.barrier.wait()
        items = [self.change(place, other) for other in self.items]
        self.barrier.wait()
        return items


def boards(size: int, change: Callable[[int, Any], Any] = lambda place, item: item) -> List[Optional[Board]]:
    gather = Gather(size, change)
    with ThreadPoolExecutor(size) as pool:
        made = pool.map(lambda place: shared_board(lambda item: gather(place, item), range(size), place), range(size))
        return list(made)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shared_memory, 'FOLDER', str(tmp_path))
    monkeypatch.delenv('MMGUARD_NO_BOARD', raising=False)
    return tmp_path


def test_they_share_and_leave_no_file(folder: Path) -> None:
    made = boards(3)
    assert glob(str(folder / '*')) == []
    with ThreadPoolExecutor(3) as pool:
        for number in range(5):
            say = [pool.submit(board.exchange, 10 * place + number, 10) for place, board in enumerate(made) if board]
            assert [answer.result() for answer in say] == [[number, 10 + number, 20 + number]] * 3


def test_the_real_folder_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, 'FOLDER', '/dev/shm')
    assert None not in boards(2)
    assert not glob('/dev/shm/mmguard-*')


def another_machine(place: int, item: Any) -> Any:
    return item._replace(machine='another') if isinstance(item, Offer) and not item.path else item


def another_folder(place: int, item: Any) -> Any:
    """A container with a /dev/shm of its own."""
    return item._replace(path='/dev/shm/not-here') if isinstance(item, Offer) and item.path and place == 1 else item


def another_file(place: int, item: Any) -> Any:
    """The same, with a file of this name and size that is another's."""
    if not (isinstance(item, Offer) and item.path and place == 1):
        return item
    other = Path(item.path + '-other')
    other.write_bytes(bytes(os.path.getsize(item.path)))
    return item._replace(path=str(other))


@pytest.mark.parametrize('change', [another_machine, another_folder, another_file])
def test_none_has_it_where_one_cannot(change: Callable[[int, Any], Any], folder: Path) -> None:
    assert boards(3, change) == [None] * 3
    assert glob(str(folder / 'mmguard-*')) in ([], glob(str(folder / '*-other')))


def test_none_has_it_where_one_refuses(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv('MMGUARD_NO_BOARD', '1')
    assert boards(2) == [None] * 2
    monkeypatch.setenv('MMGUARD_NO_BOARD', '0')
    assert None not in boards(2)


@pytest.mark.parametrize('problem', ['no folder', 'full'])
def test_none_has_it_where_there_is_no_room(problem: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    if problem == 'full':

        def no_room(descriptor: int, offset: int, size: int) -> None:
            raise OSError(28, 'No space left on device')

        monkeypatch.setattr(os, 'posix_fallocate', no_room)
    else:
        monkeypatch.setattr(shared_memory, 'FOLDER', str(folder / 'missing'))
    assert boards(2) == [None] * 2
    assert glob(str(folder / '*')) == []


def test_a_file_is_gone_even_if_the_ranks_lose_each_other(folder: Path) -> None:
    def lost(item: Any) -> List[Any]:
        raise RuntimeError('connection reset')

    with pytest.raises(RuntimeError, match='connection reset'):
        shared_board(lost, [0, 1], 0)
    assert glob(str(folder / '*')) == []


def test_processes_of_another_container_are_not_looked_at() -> None:
    mine = this_process()
    assert mine is not None
    assert shared_memory._visible([mine, mine]) == [mine, mine]
    assert shared_memory._visible([mine, None]) is None
    assert shared_memory._visible([mine, mine._replace(namespace='pid:[1]')]) is None
    assert shared_memory._visible([mine, mine._replace(started='0')]) is None
