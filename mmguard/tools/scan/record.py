"""What is known about one file of a label map."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from mmguard.files.typed_json import decoded
from mmguard.tools.storage.entries import Stamp

Shape = Tuple[int, int]

#: Of what a line of a journal holds: one that somebody edited, or a disk damaged, is not believed.
_TYPES: Dict[str, Any] = {
    **dict.fromkeys(('raw', 'loaded', 'between'), Dict[int, int]),
    **dict.fromkeys(('fractions', 'colours'), Dict[str, int]),
    **dict.fromkeys(('path', 'image', 'backend', 'form', 'image_form', 'fault', 'detail', 'image_fault'), str),
    'changes': List[str],
}
_PAIRS = {'stamp', 'image_stamp', 'shape', 'image_shape'}


class MapItem(NamedTuple):
    """A label map to read, and its image, where that is known; of far ones their stamps, where a listing says them."""

    path: str
    image: Optional[str] = None
    stamp: Optional[Stamp] = None
    image_stamp: Optional[Stamp] = None


@dataclass
class MapRecord:
    """One label map, as it is stored and as the framework's loader would return it.

    Args:
        path (str): The file.
        stamp (tuple): Its size and time of change; ``None`` where there is no such file.
        image (str, optional): The image that it labels.
        image_stamp (tuple, optional): Of the image.
        backend (str): The decoder that ``loaded`` holds for.
        form (str): Form of the file, see :class:`~mmguard.findings.facts.MapFacts`.
        shape (tuple, optional): (height, width).
        image_form (str): Form of the image.
        image_shape (tuple, optional): (height, width) of the image as it is shown, turned if its EXIF tag says so.
        image_lossy (bool): The image was compressed with loss.
        raw (dict[int, int]): Value as stored -> pixels, the most frequent ones; of colour files only if they hold gray
            values.
        loaded (dict[int, int], optional): Value as loaded (uint8, before any shift or map) -> elements; ``None``: as
            ``raw``.
        changes (list[str]): What the loader changes: ``'wrapped'``, ``'colours'``, ``'scaled'``, ``'truncated'``.
        is_black (bool): All values that it holds have the same colour in its palette, black.
        fractions (dict[str, int]): Of float files, values that are no integers -> pixels; the lowest few.
        colours (dict[str, int]): ``'r,g,b'`` -> pixels, of colour files with at most 256 colours.
        lossy (bool): Compressed with loss.
        between (dict[int, int]): Value as loaded -> pixels of it that have a lower and a higher neighbour; of the
            values that were invalid when the file was read.
        fault (str): What is wrong with the file, in two or three words; empty if it was read.
        detail (str): The same in the words of the decoder.
        image_fault (str): What is wrong with the image.
    """

    path: str
    stamp: Optional[Stamp] = None
    image: Optional[str] = None
    image_stamp: Optional[Stamp] = None
    backend: str = 'pillow'
    form: str = ''
    shape: Optional[Shape] = None
    image_form: str = ''
    image_shape: Optional[Shape] = None
    image_lossy: bool = False
    raw: Dict[int, int] = field(default_factory=dict)
    loaded: Optional[Dict[int, int]] = None
    changes: List[str] = field(default_factory=list)
    fractions: Dict[str, int] = field(default_factory=dict)
    colours: Dict[str, int] = field(default_factory=dict)
    lossy: bool = False
    is_black: bool = False
    between: Dict[int, int] = field(default_factory=dict)
    fault: str = ''
    detail: str = ''
    image_fault: str = ''

    @property
    def as_loaded(self) -> Dict[int, int]:
        """Value as loaded -> elements."""
        return self.raw if self.loaded is None else self.loaded

    def decoded(self, stored: int) -> int:
        """What the loader makes of a value of ``raw``, 0 to 255."""
        if 'scaled' in self.changes and self.loaded is not None:
            return dict(zip(sorted(self.raw), sorted(self.loaded)))[stored]
        return stored % 256

    def to_line(self) -> str:
        """One line of JSON, what is empty left out. File names that are no valid text survive it."""
        return json.dumps({key: value for key, value in vars(self).items() if value or key == 'path'})

    @classmethod
    def from_line(cls, line: str) -> MapRecord:
        """Reads ``to_line`` back.

        Raises:
            ValueError: Not such a line.
        """
        try:
            words: Dict[str, Any] = json.loads(line)
            for key in set(_TYPES).intersection(words):
                words[key] = decoded(_TYPES[key], words[key])
            for key in _PAIRS.intersection(words):
                words[key] = _pair_of(words[key])
            record = cls(**words)
        except (TypeError, AttributeError, ValueError, RecursionError) as error:
            raise ValueError(f'not a record of a label map: {line[:80]!r}') from error
        if not all(0 <= value < 256 for value in record.as_loaded):
            raise ValueError(f'a value as loaded is above 255: {line[:80]!r}')
        return record


def _pair_of(value: Any) -> Tuple[int, int]:
    if not isinstance(value, list) or [type(number) for number in value] != [int, int]:
        raise ValueError(f'{value!r:.80} is no pair of integers')
    return value[0], value[1]
