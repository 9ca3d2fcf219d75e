"""The usual layouts: which folder holds the labels, which the images."""

from __future__ import annotations

import os
from typing import Optional, Tuple

_LABELS = (
    'ann_dir', 'labels', 'label', 'masks', 'mask', 'gtFine', 'SegmentationClass', 'annotations', 'segmentation',
    'seg_maps', 'gt', 'trainannot', 'labelsTr',
)  # fmt: skip
_IMAGES = ('img_dir', 'images', 'image', 'imgs', 'img', 'leftImg8bit', 'JPEGImages', 'train', 'imagesTr')


def label_and_image_folders(root: str) -> Optional[Tuple[str, str]]:
    """The folders of labels and of images in a data set's root; ``None`` where their names do not tell."""
    for label in _LABELS:
        for image in _IMAGES:
            pair = os.path.join(root, label), os.path.join(root, image)
            if all(map(os.path.isdir, pair)) and not os.path.samefile(*pair):
                return pair
    return None
