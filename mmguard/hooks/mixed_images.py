"""Transforms that make one image of several: the sample is named by the first, and a label may be of any."""

from __future__ import annotations

from typing import Any, Optional

from mmguard.hooks.discovery import pipelines_of

#: Of mmdet, mmyolo and mmseg.
MIXING = (
    'CachedMixUp',
    'CachedMosaic',
    'CopyPaste',
    'MixUp',
    'Mosaic',
    'Mosaic9',
    'RandomMosaic',
    'YOLOXMixUp',
    'YOLOv5MixUp',
)


def mixed_images(dataset: Any) -> Optional[str]:
    """What to tell a user who will look for the labels in the files that the log names; ``None`` where they are there.

    Args:
        dataset: Of the loop, wrappers included.
    """
    steps = (type(step).__name__ for pipeline in pipelines_of(dataset) for step in pipeline)
    found = sorted({name for name in steps if name in MIXING})
    if not found:
        return None
    return (
        f'the pipeline mixes images ({", ".join(found)}): counts are exact, but a file that is named is the first of '
        f'those mixed, and an invalid label may stand in another. `mmguard scan CONFIG` names the files that hold them'
    )
