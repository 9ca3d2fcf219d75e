"""Host-side gloo channel between ranks: no GPU waits for it, and it is not in torch's list of groups."""

from __future__ import annotations

import atexit
import os
import pickle
import time
from collections import deque
from datetime import timedelta
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

import torch
import torch.distributed as dist

from mmguard.distributed.heartbeat import LINGER, Heartbeat


class Channel:
    """Gloo connections between the ranks, and their heartbeats; see :func:`get_channel`.

    Every rank must create the channel and call its methods in the same order. A rank that fails or leaves closes its
    connections, so that the ranks that wait for it notice immediately.

    The channel is not created by ``dist.new_group``, which names a group by the number of earlier groups. If only some
    ranks create a group, these numbers differ between ranks, and the next group waits for ranks that use another name
    (since torch 2.14; before, only with ``use_local_synchronization``). The channel does not have such a number.

    Raises:
        AbsentRankError: A rank did not join the creation or a call. All later calls raise the same error.
    """

    def __init__(self, timeout: float) -> None:
        self.ranks, self.rank = list(range(dist.get_world_size())), dist.get_rank()
        self._owner = os.getpid()
        self._presence = Heartbeat()
        self._calls = 0
        #: The last tensors, kept because a gloo thread that releases the last reference needs the GIL, while the thread
        #: that ends the group may hold the GIL and wait for gloo.
        self._last: Deque[Any] = deque(maxlen=4)
        self._failure: Optional[Exception] = None
        self._group: Any = None
        self._group = self._try(lambda: self._connect(timeout))

    def is_same(self, digest: int) -> bool:
        """Return True if all ranks gave the same digest."""
        # The largest digest and the (negated) smallest add up to 0 if all are equal. The third number only makes the
        # vector longer: with two numbers, a rank of three notices a killed rank only after the third rank calls.
        vector = torch.tensor([digest, -digest, 0], dtype=torch.int64)
        self._call(lambda group: group.allreduce([vector], dist.ReduceOp.MAX), vector)
        return bool(vector.sum() == 0)

    def gather(self, item: Any) -> List[Any]:
        """Return the item of every rank, in the order of ``ranks``."""
        data = pickle.dumps(item)
        length = torch.tensor(len(data))
        self._call(lambda group: group.allreduce([length], dist.ReduceOp.MAX), length)
        mine = torch.tensor(list(data.ljust(int(length), b' ')), dtype=torch.uint8)
        items = [torch.empty_like(mine) for _ in self.ranks]
        self._call(lambda group: group.allgather([items], [mine]), items, mine)
        return [pickle.loads(one.numpy().tobytes()) for one in items]

    @property
    def closed(self) -> bool:
        return self._failure is not None

    def leave(self, reason: str) -> None:
        """Tell the waiting ranks that this rank has left, and why."""
        if os.getpid() == self._owner and self._failure is None:
            self._failure = RuntimeError(f'this rank has left the channel: {reason}')
            self._presence.leave(reason)
            self.close()

    def close(self) -> None:
        """Close the connections."""
        if os.getpid() != self._owner:  # gloo would wait for threads that were not forked
            return
        self._presence.end()
        if self._group is not None:
            time.sleep(LINGER)  # let gloo's threads, and this rank's own, finish
            self._group = None

    def _connect(self, timeout: float) -> Any:
        store = dist.PrefixStore('gloo', self._presence.store)
        return dist.ProcessGroupGloo(store, self.rank, len(self.ranks), timedelta(seconds=timeout))

    def _call(self, start: Callable[[Any], Any], *tensors: Any) -> None:
        if os.getpid() != self._owner:
            raise RuntimeError('only the process that created the channel can use it, not a fork (a data worker?)')
        if self._failure is not None:
            raise self._failure
        self._calls += 1
        self._last.append(tensors)

        def agree() -> None:  # reports show the name of this function for a rank that waits here
            start(self._group).wait()

        self._try(agree)

    def _try(self, attempt: Callable[[], Any]) -> Any:
        start = time.monotonic()
        try:
            return attempt()
        except RuntimeError as error:  # torch.distributed's exceptions all derive from it
            cause = error.with_traceback(None)  # the frames would keep the group and its connections alive
        waited = time.monotonic() - start
        self._presence.answer(self._calls)
        self.close()
        self._failure = self._presence.build_error(self._calls, waited)
        raise self._failure from cause


#: (process group of all ranks, timeout) -> channel. Cached, because creating one is a collective and opens sockets.
_CHANNELS: Dict[Tuple[Any, float], Channel] = {}


@atexit.register
def _leave() -> None:
    """Close the connections before the interpreter ends: gloo's threads abort a process that ends while they run."""
    for channel in _CHANNELS.values():
        channel.close()


def get_world() -> Optional[Any]:
    """Return the process group of all ranks, which ``init_process_group`` creates, or ``None`` before this call."""
    return dist.group.WORLD if dist.is_available() and dist.is_initialized() else None


def get_channel(timeout: float) -> Optional[Channel]:
    """Return the channel of all ranks, which the first call creates, or ``None`` for a single rank."""
    world = get_world()
    if world is None or dist.get_world_size() == 1:
        return None
    for key, channel in list(_CHANNELS.items()):
        if key[0] is not world or channel.closed:  # the process group was destroyed, or the channel failed
            del _CHANNELS[key]
    key = (world, timeout)
    if key not in _CHANNELS:
        _CHANNELS[key] = Channel(timeout)
    return _CHANNELS[key]
