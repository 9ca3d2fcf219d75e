"""How often a line is said."""

from __future__ import annotations

import time


class Pace:
    """Lets the first lines through, then one per period; tells how many it held back.

    Args:
        first (int): Lines that always pass.
        seconds (float): Least time between later lines, seconds.
    """

    def __init__(self, first: int = 20, seconds: float = 10.0) -> None:
        self._left = first
        self._seconds = seconds
        self._last = float('-inf')
        self.held_back = 0

    def lets_pass(self) -> bool:
        now = time.monotonic()
        if self._left > 0 or now - self._last >= self._seconds:
            self._left -= 1
            self._last = now
            return True
        self.held_back += 1
        return False

    def take_held_back(self) -> int:
        held_back, self.held_back = self.held_back, 0
        return held_back
