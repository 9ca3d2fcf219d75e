"""How often a line is said."""

from __future__ import annotations

import time

from mmguard.text.words import counted


class Pace:
    """Lets the first lines through, then one per period, which says how many iterations had one since.

    Args:
        first (int): Lines that always pass.
        seconds (float): Least time between later lines, seconds.
    """

    def __init__(self, first: int = 20, seconds: float = 10.0) -> None:
        self._left = first
        self._seconds = seconds
        self._last = float('-inf')
        self._held_back = 0

    def lets_pass(self) -> bool:
        now = time.monotonic()
        if self._left > 0 or now - self._last >= self._seconds:
            self._left -= 1
            self._last = now
            return True
        self._held_back += 1
        return False

    def since_last(self) -> str:
        """What a line that passes ends with: `` (and 3 such iterations since the last line)``, or nothing."""
        held_back, self._held_back = self._held_back, 0
        return f' (and {counted(held_back, "such iteration")} since the last line)' if held_back else ''
