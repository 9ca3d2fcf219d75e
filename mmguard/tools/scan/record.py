"""One file of a label map: what is fetched of it, and what is known about it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from mmguard.files.typed_json import decoded
from mmguard.tools.scan.settings import MapSettings
from mmguard.tools.storage.ahead import ahead
from mmguard.tools.storage.entries import Stamp
from mmguard.tools.storage.files import Content

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
    """One label map, as it is stored and as the framework's loader would return it."""

    path: str  #: The file.
    stamp: Optional[Stamp] = None  #: Its size and time of change; ``None`` where there is no such file.
    image: Optional[str] = None  #: The image that it labels.
    image_stamp: Optional[Stamp] = None  #: Of the image.
    backend: str = 'pillow'  #: The decoder that ``loaded`` holds for.
    form: str = ''  #: Form of the file, see :class:`~mmguard.findings.facts.MapFacts`.
    shape: Optional[Shape] = None  #: (height, width).
    image_form: str = ''  #: Form of the image.
    image_shape: Optional[Shape] = None  #: (height, width) of the image as it is shown, turned if its EXIF tag says so.
    image_lossy: bool = False  #: The image was compressed with loss.
    #: Value as stored -> pixels, the most frequent ones; of colour files only if they hold gray values.
    raw: Dict[int, int] = field(default_factory=dict)
    #: Value as loaded (uint8, before any shift or map) -> elements; ``None``: as ``raw``.
    loaded: Optional[Dict[int, int]] = None
    #: What the loader changes: ``'wrapped'``, ``'colours'``, ``'scaled'``, ``'truncated'``.
    changes: List[str] = field(default_factory=list)
    #: Of float files, values that are no integers -> pixels; the lowest few.
    fractions: Dict[str, int] = field(default_factory=dict)
    #: ``'r,g,b'`` -> pixels, of colour files with at most 256 colours.
    colours: Dict[str, int] = field(default_factory=dict)
    lossy: bool = False  #: Compressed with loss.
    is_black: bool = False  #: All values that it holds have the same colour in its palette, black.
    #: Value as loaded -> pixels of it that have a lower and a higher neighbour; of the values that were invalid when
    #: the file was read.
    between: Dict[int, int] = field(default_factory=dict)
    fault: str = ''  #: What is wrong with the file, in two or three words; empty if it was read.
    detail: str = ''  #: The same in the words of the decoder.
    image_fault: str = ''  #: What is wrong with the image.

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


#: So much of an image mostly holds its size and its EXIF tags.
HEAD = 1 << 16


class Fetched(NamedTuple):
    """What was fetched of an item; ``None`` for what lies on a disk, or is not asked for."""

    label: Optional[Content] = None
    image: Optional[Content] = None


def fetched(items: Iterable[MapItem], settings: MapSettings) -> Iterator[Tuple[MapItem, Fetched]]:
    """Each item with what was fetched of it: that of the next ones is on the way."""
    ours = list(items)
    if any(is_far(item, settings) for item in ours):
        yield from zip(ours, ahead(partial(fetch, item, settings) for item in ours))
    else:
        for item in ours:
            yield item, _NOTHING


def fetch(item: MapItem, settings: MapSettings) -> Fetched:
    """As :func:`fetched`, of one item."""
    files = settings.files
    label = files.content(item.path, item.stamp) if files.is_far(item.path) else None
    if item.image is None or not files.is_far(item.image):
        return Fetched(label)
    return Fetched(label, files.content(item.image, item.image_stamp, HEAD))


def stamped(items: Iterable[MapItem], settings: MapSettings) -> Iterator[MapItem]:
    """Items with their present stamps. Of far files those are asked for ahead, unless a listing has said them."""
    source = iter(items)
    first = next(source, None)
    if first is None:
        return
    all_items = chain([first], source)
    if is_far(first, settings):
        yield from ahead(partial(_stamped, item, settings) for item in all_items)
    else:
        for item in all_items:
            yield _stamped(item, settings)


def _stamped(item: MapItem, settings: MapSettings) -> MapItem:
    image = item.image_stamp
    if image is None and item.image is not None:
        image = settings.files.stamp_of(item.image)
    return item._replace(stamp=item.stamp or settings.files.stamp_of(item.path), image_stamp=image)


def is_far(item: MapItem, settings: MapSettings) -> bool:
    """Whether something of it is fetched."""
    return settings.files.is_far(item.path) or (item.image is not None and settings.files.is_far(item.image))


_NOTHING = Fetched()
