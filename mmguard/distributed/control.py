"""What ranks tell each other between forward and backward: host to host, no GPU waits, no gradient is mixed in."""

from __future__ import annotations

import atexit
import contextlib
from datetime import timedelta
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

from mmguard.distributed.absent import absent_ranks
from mmguard.distributed.board import Board
from mmguard.distributed.shared_memory import shared_board

#: Bits of a digest, so that it and a flag fit into the payload of a board.
DIGEST_BITS = 47


class Channel(NamedTuple):
    """What a set of ranks talks over.

    Attributes:
        group (ProcessGroup): Of gloo, their own.
        board (Board, optional): Shared memory, where they are on one machine.
    """

    group: Any
    board: Optional[Board]


#: (process group of all, ranks, timeout) -> channel. Made once: making one is a collective, and it holds sockets.
_CHANNELS: Dict[Tuple[Any, Any, float], Channel] = {}


@atexit.register
def _leave() -> None:
    """Ends the groups before the interpreter does: gloo's threads abort a process that goes while they run."""
    while _CHANNELS:
        _, channel = _CHANNELS.popitem()
        with contextlib.suppress(Exception):  # the process group may be gone already, with or without an error
            dist.destroy_process_group(channel.group)


def world() -> Optional[Any]:
    """The process group of all ranks; another one after each ``init_process_group``, ``None`` without."""
    return dist.group.WORLD if dist.is_available() and dist.is_initialized() else None


def world_size(group: Optional[Any] = None) -> int:
    """Ranks in the group; 1 where nothing is distributed."""
    return 1 if world() is None else dist.get_world_size(group)


class Control:
    """Exchanges of a few bytes. Every rank must make it and call it in the same order, as with any collective.

    Ranks of one machine compare over shared memory (:class:`~mmguard.distributed.board.Board`, some microseconds),
    those of several over a gloo group of their own.

    Args:
        group (ProcessGroup, optional): The ranks that take part. ``None``: all.
        timeout (float): Seconds after which a rank that has not come is named.

    Raises:
        ValueError: A group of some ranks with torch < 2.1.

    Attributes:
        ranks (list[int]): Their numbers among all ranks.
        rank (int): This one's.
    """

    def __init__(self, group: Optional[Any] = None, timeout: float = 1800.0) -> None:
        self.timeout = timeout
        self.size = world_size(group)
        self.rank = dist.get_rank() if self.size > 1 else 0
        self.ranks = [0] if self.size == 1 else _ranks_of(group)
        self._calls = 0
        self._channel = self._opened(group) if self.size > 1 else None

    def _opened(self, group: Optional[Any]) -> Channel:
        everyone = world()
        for key in [key for key in _CHANNELS if key[0] is not everyone]:
            del _CHANNELS[key]  # of a process group that was destroyed since
        key = (everyone, everyone if group is None else group, self.timeout)
        if key not in _CHANNELS:
            try:
                own = _new_group(None if group is None else self.ranks, self.timeout)
            except RuntimeError as error:  # of torch.distributed's own kinds, all of them derived from it
                raise absent_ranks(self.rank, self.ranks, self.timeout, 0, error) from error
            # For gathered(): while the board is made, there is none.
            self._channel = Channel(own, None)
            _CHANNELS[key] = Channel(own, shared_board(self.gathered, self.ranks, self.ranks.index(self.rank)))
        return _CHANNELS[key]

    def compared(self, digest: int, flag: bool) -> Tuple[bool, bool]:
        """Whether all ranks gave the same digest, and whether any raised its flag.

        Args:
            digest (int): In ``[0, 2**47)``.
            flag (bool): This rank's.

        Raises:
            AbsentRankError: A rank did not come.
        """
        assert self._channel is not None
        if self._channel.board is not None:
            said = self._channel.board.exchange(digest << 1 | int(flag), self.timeout)
            return len({number >> 1 for number in said}) == 1, any(number & 1 for number in said)
        # The largest digest and (negated) the smallest are the same where all are.
        vector = torch.tensor([digest, -digest, int(flag)], dtype=torch.int64)
        self._collective(dist.all_reduce, vector, op=dist.ReduceOp.MAX)
        largest, smallest, any_flag = vector.tolist()
        return largest == -smallest, bool(any_flag)

    def gathered(self, item: Any) -> List[Any]:
        """What every rank says, in the order of ``ranks``; over gloo.

        Raises:
            AbsentRankError: A rank did not come.
        """
        if self.size == 1:
            return [item]
        items: List[Any] = [None] * self.size
        self._collective(dist.all_gather_object, items, item)
        return items

    def leave(self, why: str) -> None:
        """Says that this rank comes to nothing more; who waits for it on this machine is told at once."""
        if self._channel is not None and self._channel.board is not None:
            self._channel.board.leave(why)

    def _collective(self, call: Any, *arguments: Any, **options: Any) -> None:
        assert self._channel is not None
        self._calls += 1
        try:
            call(*arguments, group=self._channel.group, **options)
        except RuntimeError as error:
            raise absent_ranks(self.rank, self.ranks, self.timeout, self._calls, error) from error


def _ranks_of(group: Optional[Any]) -> List[int]:
    return list(range(dist.get_world_size())) if group is None else dist.get_process_group_ranks(group)


def _new_group(ranks: Optional[Sequence[int]], timeout: float) -> Any:
    options: Dict[str, Any] = dict(backend='gloo', timeout=timedelta(seconds=timeout))
    if ranks is None:
        return dist.new_group(**options)
    try:
        return dist.new_group(list(ranks), use_local_synchronization=True, **options)
    except TypeError as error:  # torch < 2.1 knows only groups that all ranks make
        if len(ranks) < dist.get_world_size():
            # The ranks outside of the group are not here: waiting for them would end in a timeout.
            raise ValueError(
                f'ranks {", ".join(map(str, ranks))} of {dist.get_world_size()} cannot make a group of their own with '
                f'torch {torch.__version__}: that needs torch 2.1, or group=None on every rank'
            ) from error
        return dist.new_group(list(ranks), **options)
