"""Ranks of one machine show each other a number, in memory that they share."""

from __future__ import annotations

import os
import time
from typing import List, NoReturn, Optional, Sequence

from mmguard.distributed.absent import AbsentRankError
from mmguard.distributed.peers import Peer, is_gone

PAGE = 4096
WORDS = PAGE // 8
PAYLOAD_BITS = 48
PAYLOAD = (1 << PAYLOAD_BITS) - 1
#: Place of the word that says how long a rank's last words are, and of these, within its page.
LEFT, LAST_WORDS = 8, 128

#: Seconds of waiting without sleep: a process that sleeps comes back 0.06 ms late at best.
SPIN = 0.0002
#: A sleep is this part of what was waited already, so that it adds no more than that to any wait ...
SLEEP_PART = 0.02
#: ... and no longer than this, in seconds.
LONGEST_SLEEP = 0.005
#: Seconds between two looks at whether the others still live.
LOOK = 0.1


class Board:
    """One page per rank, in which it alone writes and all others read.

    A number goes out as one aligned word of 8 bytes that also holds the number of the exchange (16 bits): a reader sees
    all of it or nothing of it, so that no order between two memory accesses matters (ARM keeps none).

    A rank has two words and uses them in turn. It writes exchange n + 2 over exchange n only when all have written
    n + 1, which they do when they have read all of n; so two are enough, and what stands there before exchange n is
    n - 2, never n again when the 16 bits overflow.

    Args:
        memory (buffer): Shared by all ranks, zeros at first, one page for each.
        place (int): This rank's page.
        ranks (Sequence[int]): The number of each rank, for messages.
        peers (Sequence[Peer], optional): Their processes; ``None`` where one cannot be looked at.
    """

    def __init__(
        self, memory: object, place: int, ranks: Sequence[int], peers: Optional[Sequence[Peer]] = None
    ) -> None:
        self._bytes = memoryview(memory)  # type: ignore[arg-type]
        self._words = self._bytes.cast('Q')
        self._place, self._ranks, self._peers = place, list(ranks), peers
        self._sent = 0
        self._owner = os.getpid()
        self._failure: Optional[AbsentRankError] = None

    def exchange(self, payload: int, timeout: float) -> List[int]:
        """Every rank's number, in the order of the pages; every rank must call it.

        Args:
            payload (int): This rank's, in ``[0, 2**48)``.
            timeout (float): Seconds.

        Raises:
            AbsentRankError: A rank ended, left (:meth:`leave`) or did not come within ``timeout``; and from then on.
            RuntimeError: Called in a process that was forked from the rank's own.
        """
        if os.getpid() != self._owner:
            raise RuntimeError('ranks agree in their own process, not in one that was forked from it (a data worker?)')
        if self._failure is not None:
            raise self._failure
        self._sent += 1
        number, words = self._sent & 0xFFFF, self._words
        first = self._sent & 1
        words[self._place * WORDS + first] = number << PAYLOAD_BITS | payload
        self._wait(number, first, timeout)
        return [words[place * WORDS + first] & PAYLOAD for place in range(len(self._ranks))]

    def leave(self, why: str) -> None:
        """Says that this rank comes to no further exchange, and why; whoever waits for it is told at once."""
        if os.getpid() != self._owner:
            return
        text = why.encode(errors='replace')[: PAGE - LAST_WORDS]
        start = self._place * PAGE + LAST_WORDS
        self._bytes[start : start + len(text)] = text  # read long after it is written, if at all
        self._words[self._place * WORDS + LEFT] = len(text) + 1

    def _wait(self, number: int, first: int, timeout: float) -> None:
        words = self._words
        missing = list(range(len(self._ranks)))
        start, next_look = time.monotonic(), LOOK
        lost: List[int] = []
        while True:
            missing = [place for place in missing if words[place * WORDS + first] >> PAYLOAD_BITS != number]
            if not missing:
                return
            waited = time.monotonic() - start
            lost = [place for place in lost if place in missing]  # it came, then it ended
            if lost or waited > timeout:
                self._fail(missing, lost, waited)
            if waited > next_look:
                next_look = waited + LOOK
                lost = [place for place in missing if self._left(place) or self._is_gone(place)]
            elif waited < SPIN:
                os.sched_yield()
            else:
                time.sleep(min(SLEEP_PART * waited, LONGEST_SLEEP))

    def _left(self, place: int) -> int:
        return self._words[place * WORDS + LEFT]

    def _is_gone(self, place: int) -> bool:
        return self._peers is not None and is_gone(self._peers[place])

    def _fail(self, missing: List[int], lost: List[int], waited: float) -> NoReturn:
        absent = lost or missing
        told = '; '.join(self._story(place) for place in absent)
        self._failure = AbsentRankError(
            f'rank {self._ranks[self._place]} waited {waited:.1f} s for the others: {told}',
            [self._ranks[place] for place in absent],
        )
        raise self._failure

    def _story(self, place: int) -> str:
        who = f'rank {self._ranks[place]}'
        process = '' if self._peers is None else f'its process {self._peers[place].pid}'
        length = self._left(place)
        if length:
            start = place * PAGE + LAST_WORDS
            why = bytes(self._bytes[start : start + length - 1]).decode(errors='replace')
            return f'{who} ended training: {why}'
        if self._is_gone(place):
            return f'{who} is gone, {process} ended (killed for lack of memory? look at its log and at dmesg)'
        where = 'stuck in data loading, or in a collective that the others do not call'
        if self._peers is None:
            return f'{who} did not come: it ended, or is {where}'
        return f'{who} did not come: {process} lives, but is {where} (`py-spy dump --pid` shows where)'
