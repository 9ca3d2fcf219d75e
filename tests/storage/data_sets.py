"""A small data set of each kind with something wrong in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SIDE = 32
_VOC = (
    '<annotation><size><width>{width}</width><height>32</height></size><object><name>{name}</name><bndbox><xmin>2</xmin>'
    '<ymin>2</ymin><xmax>{right}</xmax><ymax>20</ymax></bndbox></object></annotation>'
)


def write_maps(root: Path, files: int = 24) -> None:
    """Label maps of 6 classes beside images: an invalid value, a file cut short, one of 16 bits, one without image."""
    rng = np.random.default_rng(0)
    for number in range(files):
        folder = 'train' if number % 4 else 'val'
        label, image = (root / kind / folder / f'{number:03d}.png' for kind in ('labels', 'images'))
        pixels = rng.integers(0, 6, (SIDE, SIDE)).astype(np.uint8)
        if number == 3:
            pixels[:4] = 9
        _save(pixels.astype(np.uint16) * (300 if number == 5 else 1) if number in (5, 6) else pixels, label)
        if number == 7:
            label.write_bytes(label.read_bytes()[:200])
        if number != 9:
            _save(np.stack([pixels] * 3, -1)[: SIDE // 2 if number == 11 else SIDE], image)


def write_coco(root: Path) -> None:
    """A COCO JSON: boxes as corners, a category id that is not listed, a missing and a turned image."""
    images = [{'id': n, 'file_name': f'{n}.png', 'width': SIDE, 'height': SIDE} for n in range(8)]
    for image in images[:-1]:
        size = (SIDE, SIDE // 2) if image['id'] == 2 else (SIDE, SIDE)
        _save(np.zeros(size, np.uint8), root / 'images' / str(image['file_name']))
    annotations = [
        {'id': n, 'image_id': n % 8, 'category_id': 7 if n == 5 else n % 3, 'bbox': [20, 20, 26, 28], 'area': 48,
         'iscrowd': 0}
        for n in range(24)
    ]  # fmt: skip
    categories = [{'id': n, 'name': name} for n, name in enumerate(('cat', 'dog', 'bird'))]
    record = {'images': images, 'annotations': annotations, 'categories': categories}
    (root / 'train.json').write_text(json.dumps(record))


def write_voc(root: Path) -> None:
    """XML files: a box over the edge, an image that is missing, one of another size, a damaged file."""
    for number in range(8):
        xml = root / 'Annotations' / f'{number}.xml'
        xml.parent.mkdir(parents=True, exist_ok=True)
        text = _VOC.format(width=SIDE, name='cat' if number % 2 else 'dog', right=40 if number == 3 else 30)
        xml.write_text(text[:-30] if number == 4 else text)
        if number != 5:
            size = (SIDE, SIDE * 2) if number == 6 else (SIDE, SIDE)
            _save(np.zeros(size, np.uint8), root / 'JPEGImages' / f'{number}.jpg')


def write_yolo(root: Path) -> None:
    """Label files: a short row, a class that nobody names, one alone; images: cut short, tiny, without label."""
    rng = np.random.default_rng(1)
    for number in range(9):
        image = root / 'images' / 'train' / f'{number}.{"png" if number == 7 else "jpg"}'
        side = 300 if number in (3, 4) else 8 if number == 5 else SIDE  # of 300 more than the first 64 KiB
        _save(rng.integers(0, 256, (side, side, 3)).astype(np.uint8), image, quality=95)
        if number in (4, 6):
            image.write_bytes(image.read_bytes()[:-2])
        label = root / 'labels' / 'train' / f'{number}.txt'
        label.parent.mkdir(parents=True, exist_ok=True)
        if number != 2:
            label.write_text('0 .5 .5 .2 .2\n' + {0: '1 .5 .5\n', 1: '3 .4 .4 .1 .1\n'}.get(number, ''))
    (root / 'labels' / 'train' / 'alone.txt').write_text('1 .5 .5 .2 .2\n')
    (root / 'data.yaml').write_text('train: images/train\nval: train.txt\nnames: [cat, dog]\n')
    (root / 'train.txt').write_text(''.join(f'./images/train/{number}.jpg\n' for number in (0, 1, 8, 9)))


def write_nnunet(root: Path) -> None:
    """A raw data set of flat images: a label that is not listed, an image that is missing, a file cut short."""
    for number in range(6):
        label, image = root / 'labelsTr' / f'c{number}.png', root / 'imagesTr' / f'c{number}_0000.png'
        pixels = np.full((SIDE, SIDE), number % 3, np.uint8)
        pixels[:9] = 7 if number == 1 else 0
        _save(pixels, label)
        if number != 2:
            _save(pixels, image)
        if number == 4:
            label.write_bytes(label.read_bytes()[:60])
    labels = {'background': 0, 'liver': 1, 'tumour': 2}
    record = {'channel_names': {'0': 'CT'}, 'labels': labels, 'numTraining': 6, 'file_ending': '.png'}
    (root / 'dataset.json').write_text(json.dumps(record))


def _save(pixels: np.ndarray, path: Path, **more: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **more)
