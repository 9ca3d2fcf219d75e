"""The file that the labels of a sample come from."""

from __future__ import annotations

from typing import Any, Optional

#: Where a sample says it: the file of the labels, else that of the points or the image.
_KEYS = ('seg_map_path', 'pts_semantic_mask_path', 'lidar_path', 'img_path')


def file_of(sample: Any) -> Optional[str]:
    """The file of a sample, packed or not; ``None`` where it does not say. Of several cameras the first.

    Example:
        >>> file_of({'img_path': ['front.jpg', 'left.jpg']}), file_of({})
        ('front.jpg', None)
    """
    for key in _KEYS:
        found = sample.get(key)
        if isinstance(found, (list, tuple)):
            found = next(iter(found), None)
        if found:
            return str(found)
    return None
