"""A few of many, the same few in whatever order they come."""

from __future__ import annotations

from bisect import insort
from typing import Any, List


class Examples:
    """Counts what is added and keeps the first ``keep`` in sorted order.

    Adding and merging are associative and commutative, so chunks can be merged in any order.
    """

    def __init__(self, keep: int = 20) -> None:
        self.keep = keep
        self.count = 0
        self.first: List[Any] = []

    def add(self, item: Any) -> None:
        self.count += 1
        self._keep(item)

    def merge(self, other: Examples) -> None:
        self.count += other.count
        for item in other.first:
            self._keep(item)

    def _keep(self, item: Any) -> None:
        if len(self.first) < self.keep or item < self.first[-1]:
            insort(self.first, item)
            del self.first[self.keep :]

    def __bool__(self) -> bool:
        return self.count > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Examples) and (self.count, self.first) == (other.count, other.first)

    def __repr__(self) -> str:
        return f'Examples(count={self.count}, first={self.first})'
