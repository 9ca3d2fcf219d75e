"""A group for messages between hosts: no GPU waits for them, and none of them mixes with a gradient."""

from __future__ import annotations

import atexit
import contextlib
from datetime import timedelta
from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.distributed as dist

from mmguard.distributed.absent import absent_ranks

_GROUPS: Dict[Tuple[Any, float], Any] = {}


@atexit.register
def _leave() -> None:
    """Ends the groups before the interpreter does: gloo's threads abort a process that goes while they run."""
    while _GROUPS:
        _, group = _GROUPS.popitem()
        with contextlib.suppress(Exception):  # the process group may be gone already, with or without an error
            dist.destroy_process_group(group)


def world_size(group: Optional[Any] = None) -> int:
    """Ranks in the group; 1 where nothing is distributed."""
    return dist.get_world_size(group) if dist.is_available() and dist.is_initialized() else 1


class Control:
    """Collectives of a few bytes on a gloo group of their own.

    Every rank must make it and call it in the same order, as with any collective.

    Args:
        group (ProcessGroup, optional): The ranks that take part. ``None``: all.
        timeout (float): Seconds after which a rank that has not come is named.
    """

    def __init__(self, group: Optional[Any] = None, timeout: float = 1800.0) -> None:
        self.timeout = timeout
        self.size = world_size(group)
        self.rank = dist.get_rank(group) if self.size > 1 else 0
        self._group = self._made(group, timeout) if self.size > 1 else None

    @staticmethod
    def _made(group: Optional[Any], timeout: float) -> Any:
        # A group is made once: making one is a collective, and every one holds sockets.
        key = (group if group is not None else dist.group.WORLD, timeout)
        if key not in _GROUPS:
            ranks = None if group is None else dist.get_process_group_ranks(group)
            _GROUPS[key] = dist.new_group(ranks, backend='gloo', timeout=timedelta(seconds=timeout))
        return _GROUPS[key]

    def largest(self, numbers: List[int]) -> List[int]:
        """The largest of all ranks, place by place."""
        if self.size == 1:
            return numbers
        vector = torch.tensor(numbers, dtype=torch.int64)
        try:
            dist.all_reduce(vector, op=dist.ReduceOp.MAX, group=self._group)
        except RuntimeError as error:
            raise absent_ranks(self.rank, self.size, self.timeout, error) from error
        return vector.tolist()

    def gathered(self, item: Any) -> List[Any]:
        """What every rank says, in the order of the ranks."""
        if self.size == 1:
            return [item]
        items: List[Any] = [None] * self.size
        try:
            dist.all_gather_object(items, item, group=self._group)
        except RuntimeError as error:
            raise absent_ranks(self.rank, self.size, self.timeout, error) from error
        return items
