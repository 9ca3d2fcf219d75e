"""A few images of a COCO file, each in a file of its own, for loading by a framework's data set."""

from __future__ import annotations

import json
from typing import List, NamedTuple

import numpy as np

from mmguard.formats.coco.file import CocoFile
from mmguard.formats.listings import spread


class Sample(NamedTuple):
    """The annotations of one image."""

    image: str  #: Name of the image.
    text: str  #: Content of an annotation file with only this image: JSON, or the image list of VOC.


def samples_of_coco(coco: CocoFile) -> List[Sample]:
    """Return a few images with their annotations, without polygons and masks."""
    columns, images, original = coco.annotations, coco.images, coco.ids.original
    categories = [dict(id=original(code), name=name) for code, name in coco.categories]
    samples = []
    for place in spread(np.flatnonzero(np.isin(images.id, columns.image_id)).tolist()):
        image = dict(id=original(images.id[place]), file_name=images.name[place])
        image.update(height=images.height[place], width=images.width[place])
        annotations = [
            dict(
                id=original(int(columns.id[row])),
                image_id=image['id'],
                category_id=original(int(columns.category_id[row])),
                bbox=columns.box[row].tolist(),
                area=float(columns.area[row]),
                iscrowd=int(columns.crowd[row]),
                ignore=int(columns.ignore[row]),
            )
            for row in np.flatnonzero(columns.image_id == images.id[place]).tolist()
        ]
        record = dict(images=[image], annotations=annotations, categories=categories)
        samples.append(Sample(images.name[place], json.dumps(record)))
    return samples
