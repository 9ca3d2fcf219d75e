"""Ranks as plain processes around shared memory: no torch in the way."""

from __future__ import annotations

import mmap
import os
import random
import signal
import time
from typing import Any, Callable, List, Optional, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmguard.distributed import AbsentRankError
from mmguard.distributed.board import PAGE, PAYLOAD, PAYLOAD_BITS, WORDS, Board
from mmguard.distributed.peers import Peer, is_gone, this_process

pytestmark = pytest.mark.skipif(this_process() is None, reason='there is no /proc here')


def memory_for(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size * PAGE)


def board_after(sent: int, memory: mmap.mmap, place: int, size: int) -> Board:
    """A board that has made so many exchanges."""
    board = Board(memory, place, range(size))
    board._sent = sent
    return board


def in_child(call: Callable[[], Any]) -> int:
    """Runs it in a forked process, which ends with 0 if it returns and with 1 if it raises."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        call()
        status = 0
    finally:
        os._exit(status)


def ends(pids: Sequence[int]) -> List[int]:
    return [os.waitpid(pid, 0)[1] for pid in pids]


def peer_of(pid: int) -> Peer:
    with open(f'/proc/{pid}/stat') as file:
        return Peer(pid, file.read().rpartition(')')[2].split()[19], os.readlink('/proc/self/ns/pid'))


def payload_of(place: int, number: int) -> int:
    return random.Random(1000 * place + number).choice([0, 1, PAYLOAD, random.Random(number).randrange(PAYLOAD)])


@settings(max_examples=15, deadline=None)
@given(
    size=st.integers(2, 8),
    seed=st.integers(0, 2**32),
    skew=st.sampled_from([0.0, 0.0003, 0.003]),
    sent=st.sampled_from([0, 1, 65500, 65534, 65535, 65536, 131071]),
    count=st.integers(1, 80),
)
def test_everyone_reads_what_everyone_said(size: int, seed: int, skew: float, sent: int, count: int) -> None:
    """Ranks that are early, late or quick by turns, and numbers of exchanges that overflow their 16 bits."""
    memory = memory_for(size)
    words = memoryview(memory).cast('Q')
    for earlier in {sent - 1, sent} - {-1, 0}:  # what stands there then
        for place in range(size):
            words[place * WORDS + earlier % 2] = (earlier & 0xFFFF) << PAYLOAD_BITS | PAYLOAD

    def take_part(place: int) -> None:
        board = board_after(sent, memory, place, size)
        chance = random.Random(seed + place)
        for number in range(count):
            if chance.random() < 0.3:
                time.sleep(skew * chance.random())
            said = board.exchange(payload_of(place, number), timeout=60)
            assert said == [payload_of(other, number) for other in range(size)]

    assert ends([in_child(lambda place=place: take_part(place)) for place in range(size)]) == [0] * size


def test_what_was_said_two_exchanges_ago_is_not_taken_for_new() -> None:
    """Both words of rank 1 are full when it stays away."""
    memory = memory_for(2)

    def take_part() -> None:
        board = Board(memory, 1, [0, 1])
        assert [board.exchange(7, 10), board.exchange(8, 10)] == [[5, 7], [6, 8]]

    pid = in_child(take_part)
    board = Board(memory, 0, [0, 1])
    assert [board.exchange(5, 10), board.exchange(6, 10)] == [[5, 7], [6, 8]]
    assert ends([pid]) == [0]
    with pytest.raises(AbsentRankError):
        board.exchange(5, 0.05)


# ---- ranks that do not come


def killed_after_one_exchange(memory: mmap.mmap, place: int, size: int, how: int = signal.SIGKILL) -> int:
    def take_part() -> None:
        Board(memory, place, range(size)).exchange(0, 10)
        if how:
            os.kill(os.getpid(), how)
        time.sleep(30)

    return in_child(take_part)


def test_a_killed_rank_is_named_at_once_and_from_then_on() -> None:
    """Its parent has not waited for it, so it is a zombie."""
    memory = memory_for(3)
    stays = in_child(lambda: [Board(memory, 1, range(3)).exchange(0, 10), time.sleep(3)])
    dies = killed_after_one_exchange(memory, 2, 3)
    board = Board(memory, 0, [4, 5, 6], [peer_of(os.getpid()), peer_of(stays), peer_of(dies)])
    assert board.exchange(0, 10) == [0, 0, 0]
    start = time.monotonic()
    with pytest.raises(AbsentRankError, match=rf'rank 6 is gone, its process {dies} ended') as caught:
        board.exchange(0, timeout=60)
    assert time.monotonic() - start < 2
    assert caught.value.ranks == [6], 'rank 5 did not come either, but lives'
    with pytest.raises(AbsentRankError, match='rank 6 is gone'):
        board.exchange(0, timeout=60)
    os.kill(stays, signal.SIGKILL)
    ends([stays, dies])


def test_a_rank_that_lives_is_named_after_the_timeout() -> None:
    memory = memory_for(3)
    stuck = killed_after_one_exchange(memory, 1, 3, how=0)
    comes = in_child(lambda: [Board(memory, 2, range(3)).exchange(0, 10) for _ in range(1)] and time.sleep(30))
    peers = [peer_of(pid) for pid in (os.getpid(), stuck, comes)]
    board = Board(memory, 0, range(3), peers)
    board.exchange(0, 10)
    start = time.monotonic()
    with pytest.raises(
        AbsentRankError, match=rf'rank 1 did not come: its process {stuck} lives, but is stuck'
    ) as caught:
        board.exchange(0, timeout=0.5)
    assert 0.5 <= time.monotonic() - start < 1.5
    assert caught.value.ranks == [1, 2]
    for pid in (stuck, comes):
        os.kill(pid, signal.SIGKILL)
    ends([stuck, comes])


def test_without_a_look_at_processes_only_the_timeout_tells() -> None:
    memory = memory_for(2)
    dies = killed_after_one_exchange(memory, 1, 2)
    board = Board(memory, 0, range(2), peers=None)
    board.exchange(0, 10)
    with pytest.raises(AbsentRankError, match=r'waited 0\.4 s for the others: rank 1 did not come: it ended, or'):
        board.exchange(0, timeout=0.4)
    ends([dies])


def test_a_rank_that_came_and_then_ended_is_not_missed() -> None:
    memory = memory_for(2)
    pid = in_child(lambda: Board(memory, 1, range(2)).exchange(3, 10))
    peer = peer_of(pid)
    board = Board(memory, 0, range(2), [peer_of(os.getpid()), peer])
    assert board.exchange(2, 10) == [2, 3]
    assert ends([pid]) == [0]
    assert is_gone(peer)


def test_a_rank_that_comes_between_two_looks_and_ends_is_not_missed() -> None:
    memory = memory_for(3)
    words = memoryview(memory).cast('Q')
    mine = this_process()
    assert mine is not None

    class Late(list):
        """Rank 1 has written its word when one looks whether it lives; it does not."""

        def __getitem__(self, place: Any) -> Peer:
            words[place * WORDS + 1] = 1 << PAYLOAD_BITS | 9
            return mine._replace(started='0') if place == 1 else mine

    board = Board(memory, 0, range(3), Late([mine] * 3))
    assert board.exchange(2, 10) == [2, 9, 9]


def test_a_rank_that_says_why_it_leaves_is_quoted() -> None:
    memory = memory_for(2)

    def take_part() -> None:
        board = Board(memory, 1, range(2))
        board.exchange(0, 10)
        board.leave('IndexError: Target 24 is out of bounds. ' + 'ä' * PAGE)
        time.sleep(30)

    pid = in_child(take_part)
    board = Board(memory, 0, range(2), [peer_of(os.getpid()), peer_of(pid)])
    board.exchange(0, 10)
    told = r'rank 1 ended training: IndexError: Target 24 is out of bounds\. ä'
    start = time.monotonic()
    with pytest.raises(AbsentRankError, match=told) as caught:
        board.exchange(0, timeout=60)
    assert time.monotonic() - start < 2
    assert caught.value.ranks == [1]
    os.kill(pid, signal.SIGKILL)
    ends([pid])


def test_a_process_that_was_forked_takes_no_part() -> None:
    """A worker that does would spoil the count of its rank."""
    memory = memory_for(1)
    board = Board(memory, 0, [0])

    def worker() -> None:
        with pytest.raises(RuntimeError, match='not in one that was forked'):
            board.exchange(1, 1)
        board.leave('a worker ends')

    assert ends([in_child(worker)]) == [0]
    assert bytes(memory) == bytes(PAGE)
    assert board.exchange(1, 1) == [1]


# ---- processes


def test_a_process_number_that_was_given_again_is_another_process() -> None:
    mine: Optional[Peer] = this_process()
    assert mine is not None
    assert not is_gone(mine)
    assert is_gone(mine._replace(started=str(int(mine.started) - 1)))
    pid = in_child(lambda: None)
    peer = peer_of(pid)
    while not is_gone(peer):  # a zombie, until it is waited for
        time.sleep(0.01)
    ends([pid])
    assert is_gone(peer), 'there is no such process any more'
