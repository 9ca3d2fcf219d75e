"""What could not be read, and where: it is written down, and the scan goes on."""

from __future__ import annotations

from typing import Dict, List

from mmguard.text.words import short

__all__ = ['NAMED', 'Faults', 'short']

#: So many places are named of each kind of fault; the others are counted.
NAMED = 20


class Faults:
    """Collects faults of files.

    Example:
        >>> faults = Faults()
        >>> faults.add('not JSON', 'train.json')
        >>> faults.to_dict()
        {'not JSON': ['train.json']}
    """

    def __init__(self) -> None:
        self._places: Dict[str, List[str]] = {}
        self._more: Dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, what: str, where: str) -> None:
        """Writes down one fault.

        Args:
            what (str): What is wrong, in the same words wherever it is the same.
            where (str): The file, and the place in it.
        """
        places = self._places.setdefault(what, [])
        if len(places) < NAMED:
            places.append(where)
        else:
            self.count(what, 1)

    def count(self, what: str, more: int) -> None:
        """Counts faults whose places are not named."""
        if more:
            self._more[what] = self._more.get(what, 0) + more

    def words(self) -> str:
        """All of it in one line."""
        return '; '.join(f'{what} ({", ".join(places)})' for what, places in self.to_dict().items())

    def to_dict(self) -> Dict[str, List[str]]:
        """What is wrong -> places, the last one telling how many are not named."""
        return {
            what: [*places, f'and {self._more[what]:,} more'] if what in self._more else list(places)
            for what, places in self._places.items()
        }
