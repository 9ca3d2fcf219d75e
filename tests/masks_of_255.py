"""A data set of one object on a ground, whose masks hold 0 and 255."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import numpy as np
from PIL import Image


def binary_masks(root: Path, split: str = '', size: int = 32, suffix: str = '.png') -> Dict[str, Any]:
    """Writes four images of size x size with their masks, and returns the config of the data set."""
    images, masks = (f'{folder}/{split}'.rstrip('/') for folder in ('images', 'masks'))
    for folder in (images, masks):
        (root / folder).mkdir(parents=True)
    for number in range(4):
        mask = np.zeros((size, size), np.uint8)
        mask[8 : 5 * size // 8, 8 + number : 3 * size // 4] = 255
        Image.fromarray(mask).save(root / masks / f'{number}{suffix}')
        Image.new('RGB', (size, size)).save(root / images / f'{number}.jpg')
    return dict(
        type='BaseSegDataset',
        data_root=str(root),
        data_prefix=dict(img_path=images, seg_map_path=masks),
        seg_map_suffix=suffix,
        metainfo=dict(classes=('ground', 'house')),
        pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')],
    )
