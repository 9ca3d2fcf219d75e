"""Tasks are as long as they should be, whatever the files are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mmguard.tools.scan.engine import MOST, WORK, TaskSize, in_chunks


@given(st.floats(1e-6, 10), st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_a_task_takes_about_its_time(per_file: float, tasks: list) -> None:
    size = TaskSize()
    for files in tasks:
        size.learn(files, files * per_file, files * per_file)
    assert 1 <= size() <= MOST
    # Half a file more or less is what rounding costs.
    if 1 < size() < MOST:
        assert abs(size() * per_file - WORK) <= per_file / 2 + 1e-9
    elif size() == 1:
        assert per_file >= WORK / 1.5 - 1e-9
    else:
        assert per_file <= WORK / (MOST - 0.5) + 1e-9


def test_waiting_for_a_busy_machine_is_no_work_but_has_an_end() -> None:
    alone, crowded, slow_disk = TaskSize(), TaskSize(), TaskSize()
    alone.learn(10, work=0.1, clock=0.1)
    crowded.learn(10, work=0.1, clock=0.5)
    slow_disk.learn(10, work=0.01, clock=1.0)
    assert (alone(), crowded(), slow_disk()) == (4, 4, 2)


@given(st.lists(st.integers()), st.lists(st.integers(1, 5), min_size=1))
def test_chunks_hold_every_element_once_and_in_order(elements: list, sizes: list) -> None:
    asked = []

    def size() -> int:
        asked.append(sizes[len(asked) % len(sizes)])
        return asked[-1]

    chunks = list(in_chunks(elements, size))
    assert [element for chunk in chunks for element in chunk] == elements
    assert [len(chunk) for chunk in chunks][:-1] == asked[: max(0, len(chunks) - 1)]
    assert all(chunks)
