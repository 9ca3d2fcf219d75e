"""A small sound data set of each format, what can be planted in it, and what is to be said of it.

The fuzzer damages the same files (``tests/fuzz``).
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import coco_cases
import numpy as np
from coco_cases import ann
from pictures import encode, picture
from put_file import put

from mmguard.formats.options import ScanOptions

NAMES = ('cat', 'dog', 'bird')
BLOCKS = np.repeat(np.repeat(np.arange(9, dtype=np.uint8).reshape(3, 3) % 3, 4, 0), 5, 1)
Contents = Dict[str, bytes]


@dataclass
class Planted:
    """A fault: a file, its change, the words that name place and value, and options of ``fix`` that correct it."""

    file: str
    change: Callable[[bytes], bytes]
    names: Tuple[str, ...]
    fix: Optional[Dict[str, Any]] = None


@dataclass
class FormatCase:
    """A format: its sound files, the target among them, its faults by name, and the packages that it needs."""

    name: str
    contents: Callable[[], Contents]
    main: str  #: The file that is damaged.
    planted: Dict[str, Planted]
    target: str = '.'
    options: ScanOptions = field(default_factory=ScanOptions)
    needs: Tuple[str, ...] = ('PIL',)

    def write(self, folder: Path) -> Path:
        for name, content in self.contents().items():
            put(folder / name, content)
        return folder / self.target


def swap(old: str, new: str) -> Callable[[bytes], bytes]:
    """Return a change of the first occurrence of a text."""

    def change(content: bytes) -> bytes:
        assert old.encode() in content
        return content.replace(old.encode(), new.encode(), 1)

    return change


def coco() -> Dict[str, Any]:
    """Return two images, three classes; outlines of each form."""
    outlines = (
        [[5, 5, 25, 5, 25, 20, 5, 20]],
        dict(size=[48, 64], counts=[245, 15, 33, 15, 2764]),
        [[1, 1, 9, 1, 9, 9], [12.5, 3, 20, 3, 20, 8.5]],
    )
    annotations = [
        ann(number + 1, number % 2 + 1, number % 3, (5, 5, 20, 15), segmentation=outlines[number % 3])
        for number in range(6)
    ]
    record = coco_cases.coco(annotations, 2, NAMES, 0, (64, 48), first_image=1)
    for category in record['categories']:
        category['supercategory'] = 'a'
    return dict(info=dict(description='small'), licenses=[], **record)


def voc_xml(stem: str) -> bytes:
    objects = ''.join(
        f'<object><name>{name}</name><pose>Left</pose><truncated>0</truncated><difficult>0</difficult><bndbox>'
        f'<xmin>{5 + place}</xmin><ymin>5</ymin><xmax>{25 + place}</xmax><ymax>20</ymax></bndbox></object>'
        for place, name in enumerate(NAMES)
    )
    return (
        f'<annotation><folder>VOC</folder><filename>{stem}.jpg</filename>'
        f'<size><width>64</width><height>48</height><depth>3</depth></size>{objects}</annotation>'
    ).encode()


def voc() -> Contents:
    files: Contents = {'ImageSets/Main/train.txt': b'a\nb\n'}
    for stem in ('a', 'b'):
        files[f'Annotations/{stem}.xml'] = voc_xml(stem)
        files[f'JPEGImages/{stem}.jpg'] = picture()
    return files


def yolo() -> Contents:
    rows = b'0 0.5 0.5 0.25 0.125\n1 0.25 0.25 0.125 0.125\n2 0.2 0.2 0.2 0.2\n'
    said = b'path: .\ntrain: images\nval: [images]\nnc: 3\nnames:\n  0: cat\n  1: dog\n  2: bird\n'
    files: Contents = {'data.yaml': said}
    for stem in ('a', 'b'):
        files[f'labels/{stem}.txt'], files[f'images/{stem}.jpg'] = rows, picture()
    return files


def class_folders() -> Contents:
    draw = np.random.default_rng(0)
    photos = [encode(draw.integers(0, 256, (48, 64, 3), dtype=np.uint8)) for _ in range(3)]
    return {
        f'{split}/{name}/{n}.png': photo
        for split in ('train', 'val')
        for name in NAMES
        for n, photo in enumerate(photos)
    }


def maps() -> Contents:
    return {f'labels/{n}.png': encode(BLOCKS) for n in range(3)}


def nifti(array: np.ndarray, kind: int) -> bytes:
    """Return a NIfTI-1 file; ``kind`` is the code of the array's type."""
    header = bytearray(352)
    struct.pack_into('<i', header, 0, 348)
    struct.pack_into('<8h', header, 40, array.ndim, *array.shape, *[1] * (7 - array.ndim))
    struct.pack_into('<hh', header, 70, kind, 8 * array.itemsize)
    struct.pack_into('<8f', header, 76, 1, 1, 1, 1, 0, 0, 0, 0)
    struct.pack_into('<f', header, 108, 352)
    struct.pack_into('<ff', header, 112, 1, 0)
    struct.pack_into('<hh', header, 252, 1, 1)
    for row in range(3):
        struct.pack_into('<4f', header, 280 + 16 * row, *(float(row == column) for column in range(4)))
    header[344:348] = b'n+1\0'
    return bytes(header) + array.tobytes(order='F')


def nnunet() -> Contents:
    label = np.zeros((6, 5, 4), np.uint8)
    label[1:3, 1:3, 1], label[3:5, 3:5, 2] = 1, 2
    image = np.arange(120, dtype=np.float32).reshape(6, 5, 4)
    said = {'channel_names': {'0': 'CT'}, 'labels': {'background': 0, 'liver': 1, 'tumor': 2}, 'numTraining': 2}
    files: Contents = {'dataset.json': json.dumps({**said, 'file_ending': '.nii'}).encode()}
    for case in 'ab':
        files[f'labelsTr/{case}.nii'], files[f'imagesTr/{case}_0000.nii'] = nifti(label, 2), nifti(image, 16)
    return files


def _other_map(content: bytes) -> bytes:
    return encode(np.where(BLOCKS == 1, np.uint8(7), BLOCKS))


_COCO, _VOC, _YOLO = 'train.json', 'Annotations/b.xml', 'labels/b.txt'
CASES: List[FormatCase] = [
    FormatCase(
        'coco',
        lambda: {_COCO: json.dumps(coco()).encode()},
        _COCO,
        {
            'a box outside': Planted(_COCO, swap('[5, 5, 20, 15]', '[70, 5, 20, 15]'), ('1.jpg', '70, 5'), {}),
            'no area': Planted(_COCO, swap('[5, 5, 20, 15]', '[5, 5, 0, 15]'), ('1.jpg', '5, 5, 0'), {}),
            'no category': Planted(_COCO, swap('"category_id": 0', '"category_id": 9'), ('annotation 1',)),
            'a text': Planted(_COCO, swap('"bbox": [5', '"bbox": ["x"'), ('annotations[0]', 'x')),
        },
        target=_COCO,
        options=ScanOptions(framework='mmdet'),
        needs=('msgspec',),
    ),
    FormatCase(
        'voc',
        voc,
        _VOC,
        {
            'a box outside': Planted(_VOC, swap('<xmin>5</xmin>', '<xmin>70</xmin>'), ('b.xml', '70'), {}),
            'no name': Planted(_VOC, swap('<name>dog</name>', ''), ('b.xml: object 2',)),
            'a text': Planted(_VOC, swap('<xmax>26</xmax>', '<xmax>x1</xmax>'), ('b.xml: object 2', 'x1')),
        },
        options=ScanOptions(classes=NAMES),
    ),
    FormatCase(
        'yolo',
        yolo,
        _YOLO,
        {
            'a class': Planted(_YOLO, swap('2 0.2', '7 0.2'), ('b.txt: line 3', '7'), dict(num_classes=3)),
            'beyond': Planted(_YOLO, swap('1 0.25', '1 1.25'), ('b.txt: line 2', '1.1'), {}),
            'a text': Planted(_YOLO, swap('0 0.5', 'x 0.5'), ('b.txt: line 1', 'x'), {}),
        },
        needs=('PIL', 'yaml'),
    ),
    FormatCase(
        'folders',
        class_folders,
        'val/dog/0.png',
        {'another class': Planted('val/fox/0.png', lambda _: picture(), ('val: has fox',))},
    ),
    FormatCase(
        'maps',
        maps,
        'labels/1.png',
        {'a value': Planted('labels/1.png', _other_map, ('1.png', '7'), dict(num_classes=3))},
        options=ScanOptions(num_classes=3),
    ),
    FormatCase(
        'nnunet',
        nnunet,
        'labelsTr/b.nii',
        {'a value': Planted('labelsTr/b.nii', lambda data: data[:-1] + b'\x09', ('b.nii', '9'))},
        needs=('nibabel', 'mmguard.nnunet'),
    ),
]
