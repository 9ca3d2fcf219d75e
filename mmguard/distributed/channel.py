"""What ranks tell each other between forward and backward: host to host, no GPU waits, no gradient is mixed in."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import time
from collections import deque
from datetime import timedelta
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

import torch
import torch.distributed as dist

from mmguard.distributed.absent import LINGER, Presence


class Channel:
    """A gloo group of their own for some ranks, and what these say of themselves; see :func:`channel_of`.

    Every rank must make it and call it in the same order, as any collective. A rank that fails or leaves closes its
    connections, so that those that wait for it notice at once.

    Args:
        ranks (list[int]): Their numbers among all ranks.
        timeout (float): Seconds after which a rank that has not come is named.

    Raises:
        AbsentRankError: A rank did not come, to this or to any call; from then on every call raises the same error.
        ValueError: A group of some ranks with torch < 2.1.

    Attributes:
        rank (int): This one's number.
    """

    def __init__(self, ranks: List[int], timeout: float) -> None:
        self.ranks, self.rank = ranks, dist.get_rank()
        self._owner = os.getpid()
        self._presence = Presence(ranks)
        self._calls = 0
        #: Tensors are kept for a while: a thread of gloo's that lets go of one last needs the GIL, and whoever ends the
        #: group may hold that while it waits for the thread.
        self._last: Deque[Any] = deque(maxlen=4)
        self._failure: Optional[Exception] = None
        self._group: Any = None
        self._group = self._tried(lambda: _new_group(ranks, timeout))

    def compared(self, digest: int, flag: bool) -> Tuple[bool, bool]:
        """Whether all ranks gave the same digest, and whether any raised its flag.

        Args:
            digest (int): In ``[0, 2**63)``.
            flag (bool): This rank's.
        """
        # The largest digest and (negated) the smallest are the same where all are.
        vector = torch.tensor([digest, -digest, int(flag)], dtype=torch.int64)
        self._call(dist.all_reduce, vector, op=dist.ReduceOp.MAX)
        largest, smallest, any_flag = vector.tolist()
        return largest == -smallest, bool(any_flag)

    def gathered(self, item: Any) -> List[Any]:
        """What every rank says, in the order of ``ranks``."""
        data = pickle.dumps(item)
        length = torch.tensor(len(data))
        self._call(dist.all_reduce, length, op=dist.ReduceOp.MAX)
        mine = torch.tensor(list(data.ljust(int(length), b' ')), dtype=torch.uint8)
        items = [torch.empty_like(mine) for _ in self.ranks]
        self._call(dist.all_gather, items, mine)
        return [pickle.loads(one.numpy().tobytes()) for one in items]

    @property
    def closed(self) -> bool:
        return self._failure is not None

    def leave(self, why: str) -> None:
        """Says that this rank comes to nothing more, and why; whoever waits for it notices at once."""
        if os.getpid() == self._owner and self._failure is None:
            self._failure = RuntimeError(f'this rank left the others: {why}')
            self._presence.leave(why)
            self.close()

    def close(self) -> None:
        """Ends the group."""
        group, self._group = self._group, None
        self._presence.end()
        if group is not None and os.getpid() == self._owner:
            time.sleep(LINGER)  # gloo's threads, and this rank's own, come to their end
            with contextlib.suppress(Exception):  # the process group may be gone already, with or without an error
                dist.destroy_process_group(group)

    def _call(self, collective: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        if os.getpid() != self._owner:
            raise RuntimeError('ranks agree in their own process, not in one that was forked from it (a data worker?)')
        if self._failure is not None:
            raise self._failure
        self._calls += 1
        self._last.append(arguments)
        self._tried(lambda: collective(*arguments, group=self._group, **options))

    def _tried(self, attempt: Callable[[], Any]) -> Any:
        start = time.monotonic()
        try:
            return attempt()
        except RuntimeError as error:  # of torch.distributed's own kinds, all of them derived from it
            cause = error.with_traceback(None)  # whose frames hold the group: its connections would stay open
        waited = time.monotonic() - start
        self._presence.answer(self._calls)
        self.close()
        self._failure = self._presence.missing_at(self._calls, waited)
        raise self._failure from cause


#: (process group of all, ranks, timeout) -> channel. Made once: making one is a collective, and it holds sockets.
_CHANNELS: Dict[Tuple[Any, Any, float], Channel] = {}


@atexit.register
def _leave() -> None:
    """Ends the groups before the interpreter does: gloo's threads abort a process that goes while they run."""
    while _CHANNELS:
        _CHANNELS.popitem()[1].close()


def world() -> Optional[Any]:
    """The process group of all ranks; another one after each ``init_process_group``, ``None`` without."""
    return dist.group.WORLD if dist.is_available() and dist.is_initialized() else None


def channel_of(group: Optional[Any], timeout: float) -> Optional[Channel]:
    """The channel of a group's ranks (``None``: of all), made at the first call; ``None`` where there is one rank."""
    everyone = world()
    if everyone is None or dist.get_world_size(group) == 1:
        return None
    for key, channel in list(_CHANNELS.items()):
        if key[0] is not everyone or channel.closed:  # of a process group that was destroyed since, or of a failure
            del _CHANNELS[key]
    key = (everyone, everyone if group is None else group, timeout)
    if key not in _CHANNELS:
        ranks = range(dist.get_world_size()) if group is None else dist.get_process_group_ranks(group)
        _CHANNELS[key] = Channel(list(ranks), timeout)
    return _CHANNELS[key]


def _new_group(ranks: List[int], timeout: float) -> Any:
    options: Dict[str, Any] = dict(backend='gloo', timeout=timedelta(seconds=timeout))
    if len(ranks) == dist.get_world_size():
        return dist.new_group(**options)
    try:
        return dist.new_group(ranks, use_local_synchronization=True, **options)
    except TypeError as error:  # torch < 2.1 knows only groups that all ranks make: those outside are not here
        raise ValueError(
            f'ranks {", ".join(map(str, ranks))} of {dist.get_world_size()} cannot make a group of their own with '
            f'torch {torch.__version__}: that needs torch 2.1, or group=None on every rank'
        ) from error
