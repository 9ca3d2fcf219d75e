"""Makes the memory that the ranks of one machine share, if they are on one and can."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from mmguard.distributed.board import PAGE, Board
from mmguard.distributed.peers import Peer, is_gone, this_process

#: Memory with a file name; nothing else will do, a file on a disk or a network least of all.
FOLDER = '/dev/shm'
TOKEN_BYTES = 16

Gathered = Callable[[Any], List[Any]]


class Offer(NamedTuple):
    """What a rank tells the others before they share memory.

    Attributes:
        machine (str, optional): The same for two processes of one running kernel. ``None``: it wants none of this.
        peer (Peer, optional): Itself.
        path (str, optional): The file, from the first rank.
        token (bytes): What stands in it.
    """

    machine: Optional[str]
    peer: Optional[Peer]
    path: Optional[str]
    token: bytes


def shared_board(gathered: Gathered, ranks: Sequence[int], place: int) -> Optional[Board]:
    """A board for these ranks; every rank must call it, and all get one or none does.

    Args:
        gathered (Callable): Gives what every rank handed to it, in their order. Called twice on every rank.
        ranks (Sequence[int]): Their numbers.
        place (int): Index of this rank among them.

    Returns:
        Board, optional: ``None`` where the ranks run on several machines, or cannot share memory (containers with a
        ``/dev/shm`` each), or where ``MMGUARD_NO_BOARD`` is set for one of them.
    """
    token = os.urandom(TOKEN_BYTES) if place == 0 else b''
    pages = len(ranks) + 1  # the token has one of its own
    machine = _machine()
    path = _made(pages * PAGE, token) if place == 0 and machine else None
    try:
        offers = gathered(Offer(machine, this_process(), path, token))
        memory = None
        first = offers[0]
        if first.path and all(offer.machine == first.machine for offer in offers):
            memory = _mapped(first.path, pages * PAGE, first.token)
        agreed = all(gathered(memory is not None))
    finally:
        if path is not None:
            _removed(path)  # all that wanted it have it; what is left goes with the processes
    return Board(memory, place, ranks, _visible([offer.peer for offer in offers])) if agreed else None


def _machine() -> Optional[str]:
    if os.environ.get('MMGUARD_NO_BOARD', '0') not in ('', '0') or not hasattr(os, 'posix_fallocate'):
        return None
    try:
        with open('/proc/sys/kernel/random/boot_id', encoding='ascii') as file:
            return file.read().strip() or None
    except OSError:
        return None


def _made(size: int, token: bytes) -> Optional[str]:
    """A file of zeros with a token at the start of its last page; ``None`` where there is no room for it."""
    path = None
    try:
        descriptor, path = tempfile.mkstemp(prefix='mmguard-', dir=FOLDER)
        try:
            # A page that is only promised kills the process (SIGBUS) that touches it when the memory is full.
            os.posix_fallocate(descriptor, 0, size)
            os.pwrite(descriptor, token, size - PAGE)
        finally:
            os.close(descriptor)
    except OSError:
        if path is not None:
            _removed(path)
        return None
    return path


def _mapped(path: str, size: int, token: bytes) -> Optional[mmap.mmap]:
    """The file in memory; ``None`` where it is not there, or is another of the same name."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            if os.fstat(descriptor).st_size != size:
                return None
            memory = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return None
    return memory if memory[size - PAGE : size - PAGE + TOKEN_BYTES] == token else None


def _removed(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _visible(peers: Sequence[Optional[Peer]]) -> Optional[List[Peer]]:
    """The processes of the ranks, if this one sees them all under their numbers."""
    mine = this_process()
    seen = [peer for peer in peers if peer and mine and peer.namespace == mine.namespace and not is_gone(peer)]
    return seen if len(seen) == len(peers) else None
