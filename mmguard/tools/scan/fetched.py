"""The bytes of label maps and the beginnings of their images, fetched while others are decoded."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Iterable, Iterator, NamedTuple, Optional, Tuple

from mmguard.tools.scan.record import MapItem
from mmguard.tools.scan.settings import MapSettings
from mmguard.tools.storage.files import Content
from mmguard.tools.storage.requests import ahead

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
