"""Says which rank did not come, where a collective only says that something went wrong."""

from __future__ import annotations

import time
from typing import List, Optional

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


def absent_ranks(rank: int, size: int, timeout: float, cause: Exception) -> AbsentRankError:
    """The error of a collective that failed, after a roll call over the ranks' common store.

    Args:
        rank (int): This rank.
        size (int): Number of ranks.
        timeout (float): Seconds that the collective may take.
        cause (Exception): What it raised.
    """
    absent = _roll_call(rank, size, min(PATIENCE, timeout))
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


def _roll_call(rank: int, size: int, patience: float) -> Optional[List[int]]:
    """The ranks that do not answer; ``None`` where the store itself is gone."""
    try:
        store = dist.distributed_c10d._get_default_store()
        store.set(f'mmguard/here/{rank}', 'yes')
        others = [other for other in range(size) if other != rank]
        end = time.monotonic() + patience
        while True:
            absent = [other for other in others if not store.check([f'mmguard/here/{other}'])]
            if not absent or time.monotonic() > end:
                return absent
            time.sleep(0.05)
    except Exception:  # torch raises several kinds when the other side of a socket is gone
        return None
