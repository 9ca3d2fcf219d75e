"""The usual layouts: which folder holds the labels, which the images."""

from __future__ import annotations

import os
from typing import Optional, Tuple

from mmguard.tools.storage.files import FILES

_LABELS = (
    'ann_dir', 'labels', 'label', 'masks', 'mask', 'gtFine', 'SegmentationClass', 'annotations', 'segmentation',
    'seg_maps', 'gt', 'trainannot', 'labelsTr',
)  # fmt: skip
_IMAGES = ('img_dir', 'images', 'image', 'imgs', 'img', 'leftImg8bit', 'JPEGImages', 'train', 'imagesTr')


def label_and_image_folders(root: str) -> Optional[Tuple[str, str]]:
    """The folders of labels and of images in a data set's root; ``None`` where their names do not tell."""
    if FILES.is_far(root):
        there = {entry.name for entry in FILES.entries(root) if entry.is_folder}
        pairs = ((label, image) for label in _LABELS for image in _IMAGES if {label, image} <= there)
        found = next((pair for pair in pairs if pair[0] != pair[1]), None)
        return None if found is None else (f'{root}/{found[0]}', f'{root}/{found[1]}')
    for label in _LABELS:
        for image in _IMAGES:
            pair = os.path.join(root, label), os.path.join(root, image)
            if all(map(os.path.isdir, pair)) and not os.path.samefile(*pair):
                return pair
    return None
