"""Says which rank did not come, where a collective only says that something went wrong."""

from __future__ import annotations

import time
from typing import List, Optional, Sequence

import torch.distributed as dist

#: Seconds that ranks are given to answer the roll call: they all wait in the same collective, or are gone.
PATIENCE = 5.0


class AbsentRankError(RuntimeError):
    """A rank did not come to a collective.

    Args:
        message (str): Which, and what to look at.
        ranks (list[int]): The ranks that did not answer.
    """

    def __init__(self, message: str, ranks: List[int]) -> None:
        super().__init__(message)
        self.ranks = ranks


def absent_ranks(rank: int, ranks: Sequence[int], timeout: float, call: int, cause: Exception) -> AbsentRankError:
    """The error of a collective that failed, after a roll call over the ranks' common store.

    Args:
        rank (int): This rank.
        ranks (Sequence[int]): All that take part, this one among them.
        timeout (float): Seconds that the collective may take.
        call (int): Number of the collective: who answered an earlier roll call may be gone since.
        cause (Exception): What it raised.
    """
    place = f'mmguard/here/{"-".join(map(str, ranks)) if len(ranks) < dist.get_world_size() else "all"}/{call}'
    absent = _roll_call(place, rank, ranks, min(PATIENCE, timeout))
    if absent is None:
        who = 'the rank that started the process group (rank 0) is gone, and with it the list of the others'
        absent = [0]
    elif absent:
        who = f'rank{"s" if len(absent) > 1 else ""} {", ".join(map(str, absent))} did not come'
    else:
        who = 'every rank still answers, but they are not at the same place: one of them runs other collectives'
    return AbsentRankError(
        f'rank {rank} waited for the others, at most {timeout:g} s: {who}. A rank that was killed (out of memory? look '
        f'at its log and at dmesg), that raised an error of its own, or that is stuck in data loading. ({cause})',
        absent,
    )


def _roll_call(place: str, rank: int, ranks: Sequence[int], patience: float) -> Optional[List[int]]:
    """The ranks that do not answer; ``None`` where the store itself is gone."""
    try:
        store = dist.distributed_c10d._get_default_store()
        store.add(f'{place}/{rank}', 1)
        others = [other for other in ranks if other != rank]
        end = time.monotonic() + patience
        while True:
            # Not `check`, which the store of torch 1.13 does not have.
            absent = [other for other in others if not store.add(f'{place}/{other}', 0)]
            if not absent or time.monotonic() > end:
                return absent
            time.sleep(0.05)
    except Exception:  # torch raises several kinds when the other side of a socket is gone
        return None
