"""Sums over ranks that nobody waits for."""

from __future__ import annotations

from typing import Callable, List, Optional, Tuple

import torch

from mmguard.distributed.control import Control


class RankSums:
    """Adds up numbers over all ranks, in the background: those of one call come back at the next.

    By then every rank has come past the gradients of the iteration between, and so past the first call. On a single
    process nothing is held back.
    """

    def __init__(self) -> None:
        self._control = Control()
        self._begun: Optional[Tuple[torch.Tensor, Callable[[], None]]] = None

    def exchange(self, numbers: List[int]) -> Optional[List[int]]:
        """Takes the numbers of this rank, and returns the sums of the call before; ``None`` at the first."""
        if self._control.size == 1:
            return numbers
        before = self.finish()
        vector = torch.tensor(numbers, dtype=torch.int64)
        self._begun = vector, self._control.begin_sum(vector)
        return before

    def now(self, numbers: List[int]) -> List[int]:
        """The sums of these numbers, with a wait for the slowest rank."""
        return self.exchange(numbers) or self.finish() or []

    def finish(self) -> Optional[List[int]]:
        """The sums of the last call, with a wait for the slowest rank; ``None`` where they were returned already."""
        begun, self._begun = self._begun, None
        if begun is None:
            return None
        vector, wait = begun
        wait()
        return vector.tolist()
