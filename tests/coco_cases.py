"""Small COCO records to damage, and what mmdet itself makes of a file."""

from __future__ import annotations

import contextlib
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Union

import numpy as np
from put_file import put

NAMES = ['cat', 'dog', 'bird']


def coco(
    annotations: Sequence[Dict[str, Any]] = (),
    images: int = 3,
    names: Union[Sequence[str], Mapping[int, str]] = NAMES,
    first_id: int = 1,
    size: Sequence[int] = (100, 80),
    ending: str = 'jpg',
    first_image: int = 0,
) -> Dict[str, Any]:
    """``images`` images of one size (width, height); ``names``: with their ids, or counted from ``first_id``."""
    said = dict(zip(('width', 'height'), size))
    numbers = range(first_image, first_image + images)
    named = names.items() if isinstance(names, Mapping) else enumerate(names, first_id)
    return dict(
        images=[dict(id=number, file_name=f'{number}.{ending}', **said) for number in numbers],
        annotations=list(annotations),
        categories=[dict(id=number, name=name) for number, name in named],
    )


def ann(number: int, image: int = 0, category: int = 1, box: Sequence[float] = (10, 10, 20, 20), **more: Any) -> Dict:
    record = dict(
        id=number, image_id=image, category_id=category, bbox=list(box), area=max(box[2] * box[3], 0), iscrowd=0
    )
    return {**record, **more}


def write(folder: Path, record: Any, name: str = 'train.json') -> str:
    return str(put(folder / name, json.dumps(record)))


def trained_by_mmdet(path: str, class_names: Sequence[str]) -> List[List[int]]:
    from mmdet.datasets import CocoDataset

    with contextlib.redirect_stdout(io.StringIO()):
        dataset = CocoDataset(
            ann_file=path,
            data_prefix=dict(img=''),
            metainfo=dict(classes=tuple(class_names)),
            pipeline=[],
            serialize_data=False,
        )
    return [
        [instance['bbox_label'] for instance in image['instances'] if not instance['ignore_flag']]
        for image in dataset.data_list
    ]


def histogram(labels: Sequence[Sequence[int]]) -> Dict[int, int]:
    return dict(sorted(Counter(label for image in labels for label in image).items()))


def random_coco(seed: int, annotations: int = 200, images: int = 20, classes: int = 6) -> Dict[str, Any]:
    """With every fault of boxes, crowds, ignored ones, unlisted and unnamed categories, images that are not there."""
    random = np.random.default_rng(seed)
    record = coco(images=images, names=[f'c{number}' for number in range(classes)], first_id=int(random.integers(0, 5)))
    for number in range(annotations):
        box = random.choice([-30.0, -1, 0, 0.5, 1, 5, 20, 80, 99.5, 100, 130], 4)
        box[2:] = random.choice([-4.0, 0, 0.25, 1, 3.5, 40, 200], 2)
        record['annotations'].append(
            ann(
                number,
                int(random.integers(0, images)),
                int(random.choice([category['id'] for category in record['categories']])),
                box.tolist(),
                iscrowd=int(random.random() < 0.1),
                **({'ignore': 1} if random.random() < 0.05 else {}),
                **({'area': 0} if random.random() < 0.05 else {}),
            )
        )
    return record
