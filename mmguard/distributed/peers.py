"""Whether another process of this machine still lives."""

from __future__ import annotations

import os
from typing import NamedTuple, Optional, Tuple


class Peer(NamedTuple):
    """A process, told from a later one that got the same number.

    Attributes:
        pid (int): Its number.
        started (str): When it started, in ticks since boot.
        namespace (str): Where its number counts: containers count their own processes.
    """

    pid: int
    started: str
    namespace: str


def this_process() -> Optional[Peer]:
    """This process; ``None`` where there is no ``/proc`` to read about it (only Linux has one)."""
    pid = os.getpid()
    try:
        return Peer(pid, _state_and_start(pid)[1], os.readlink('/proc/self/ns/pid'))
    except (OSError, IndexError):
        return None


def is_gone(peer: Peer) -> bool:
    """Whether a process ended; a zombie, which waits for its parent alone, did. ``False`` where it cannot be said."""
    try:
        state, started = _state_and_start(peer.pid)
    except (FileNotFoundError, ProcessLookupError):
        return True
    except (OSError, IndexError):
        return False
    return state in 'ZX' or started != peer.started


def _state_and_start(pid: int) -> Tuple[str, str]:
    with open(f'/proc/{pid}/stat', 'rb') as file:
        # The name in parentheses may itself hold blanks and parentheses. Field 3 is the state, field 22 the start.
        fields = file.read().rpartition(b')')[2].split()
    return fields[0].decode(), fields[19].decode()
