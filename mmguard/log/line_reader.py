"""Files of JSON lines, read: those that can be understood, and what is said of the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, BinaryIO, Iterator, List, Optional, Type, TypeVar

from mmguard.files.typed_json import NotJson, decoded, parsed
from mmguard.text.words import counted, first_of

T = TypeVar('T')

#: A line of more bytes is none of a hook's.
_LONGEST = 1 << 25
#: Records that are named one by one; of a damaged disk there are many.
_NAMED = 10


@dataclass
class Unread:
    """What of the files could not be understood, and is left out.

    Args:
        records (int): How many lines, or parts of a file that is one object.
        first (list[str]): ``file:line is left out: why`` of the first ones.
        cut_off (list[str]): Files whose last line ends in the middle: the training was killed, or still runs.
    """

    records: int = 0
    first: List[str] = field(default_factory=list)
    cut_off: List[str] = field(default_factory=list)

    def add(self, place: str, why: object) -> None:
        """Leaves a record out."""
        self.records += 1
        if self.records <= _NAMED:
            self.first.append(f'{place} is left out: {why}')

    def decoded(self, kind: Type[T], value: Any, place: str) -> Optional[T]:
        """The record of a type; ``None`` where it is left out."""
        try:
            return decoded(kind, value)
        except ValueError as error:
            self.add(place, error)
            return None

    def words(self) -> List[str]:
        """For the user, a line each."""
        more = self.records - len(self.first)
        return [
            *first_of([f'{path}: its last line ends in the middle and is left out' for path in self.cut_off]),
            *self.first,
            *([f'... and {counted(more, "more record is", "more records are")} left out'] if more else []),
        ]


def read_lines(file: BinaryIO, path: str, kind: Type[T], unread: Unread) -> Iterator[T]:
    """The lines of a file as records of a type; what does not fit is noted in ``unread``."""
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST), b''), start=1):
        # A file that reached its limit ends with a note.
        if line.isspace() or line.startswith(b'{"note"'):
            continue
        try:
            yield decoded(kind, parsed(line))
        except ValueError as error:
            if isinstance(error, NotJson) and not line.endswith(b'\n') and len(line) < _LONGEST:
                unread.cut_off.append(path)
            else:
                unread.add(f'{path}:{number}', error)
