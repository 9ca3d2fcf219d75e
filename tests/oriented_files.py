"""Small data sets of oriented boxes: sound ones, the same each time, with more planted behind their objects."""

from __future__ import annotations

import io
import math
import random
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import List, Mapping, Sequence, Tuple

from PIL import Image

NAMES = ('plane', 'ship', 'harbor')
WIDTH, HEIGHT, OBJECTS = 64, 48, 3
Points = List[Tuple[float, float]]


@lru_cache(maxsize=None)
def picture(kind: str = 'PNG', width: int = WIDTH, height: int = HEIGHT) -> bytes:
    out = io.BytesIO()
    Image.new('RGB', (width, height), 0).save(out, kind)
    return out.getvalue()


def turned(x: float, y: float, w: float, h: float, angle: float) -> Points:
    along, across = (
        (w / 2 * math.cos(angle), w / 2 * math.sin(angle)),
        (-h / 2 * math.sin(angle), h / 2 * math.cos(angle)),
    )
    signs = ((1, 1), (1, -1), (-1, -1), (-1, 1))
    return [(x + a * along[0] + b * across[0], y + a * along[1] + b * across[1]) for a, b in signs]


def rboxes(number: int) -> List[Tuple[float, ...]]:
    """Three boxes as centre, width, height and angle."""
    draw = random.Random(number)
    return [
        (draw.randint(24, 40), draw.randint(20, 28), draw.randint(12, 16), draw.randint(6, 9), draw.uniform(-1.5, 1.5))
        for _ in range(OBJECTS)
    ]


def row(points: Points, label: str = 'plane', difficulty: object = 0) -> str:
    return ' '.join([*(f'{side:.1f}' for point in points for side in point), label, str(difficulty)])


def rows(number: int) -> List[str]:
    return [row(turned(*box), NAMES[place % 3]) for place, box in enumerate(rboxes(number))]


def make_dota(
    root: Path,
    files: int = 14,
    planted: Mapping[int, Sequence[str]] = MappingProxyType({}),
    head: str = '',
    labels: str = 'labelTxt',
) -> Path:
    """Writes images, and a text for each; ``planted``: number of a text -> lines behind its own."""
    for folder in ('images', labels):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for number in range(files):
        text = head + ''.join(f'{line}\n' for line in [*rows(number), *planted.get(number, ())])
        (root / labels / f'P{number:04d}.txt').write_text(text)
        (root / 'images' / f'P{number:04d}.png').write_bytes(picture())
    return root


#: The lines of an object of DIOR and of HRSC.
TAGS = [f'{axis}_{side}' for side in ('left_top', 'right_top', 'right_bottom', 'left_bottom') for axis in 'xy']


def of_dior(points: Points, name: str = 'airplane', truncated: int = 0) -> str:
    corners = ''.join(f'<{tag}>{side:.1f}</{tag}>' for tag, side in zip(TAGS, (s for point in points for s in point)))
    return f'<object><name>{name}</name><truncated>{truncated}</truncated><robndbox>{corners}</robndbox></object>'


def of_hrsc(box: Sequence[object], kind: str = '100000001', head: Tuple[object, object] = (30, 20)) -> str:
    tags = zip(('mbox_cx', 'mbox_cy', 'mbox_w', 'mbox_h', 'mbox_ang'), box)
    numbers = ''.join(f'<{tag}>{value}</{tag}>' for tag, value in tags)
    ends = f'<header_x>{head[0]}</header_x><header_y>{head[1]}</header_y>'
    return f'<HRSC_Object><Class_ID>{kind}</Class_ID><truncated>0</truncated>{numbers}{ends}</HRSC_Object>'


def dior_text(objects: Sequence[str], size: str = f'<width>{WIDTH}</width><height>{HEIGHT}</height>') -> str:
    return '\n'.join(['<annotation>', f'<size>{size}</size>', *objects, '</annotation>', ''])


def hrsc_text(objects: Sequence[str], width: object = WIDTH) -> str:
    size = f'<Img_SizeWidth>{width}</Img_SizeWidth><Img_SizeHeight>{HEIGHT}</Img_SizeHeight>'
    return '\n'.join(['<HRSC_Image>', f'{size}<HRSC_Objects>', *objects, '</HRSC_Objects>', '</HRSC_Image>', ''])


#: The line of the first object.
FIRST = 3
DIOR_NAMES = ('airplane', 'ship', 'Expressway-Service-area')


def make_xml(
    root: Path, kind: str, files: int = 14, planted: Mapping[int, Sequence[str]] = MappingProxyType({})
) -> Path:
    """Writes images and XML, where DIOR or HRSC has them, and lists of all of them."""
    dior = kind == 'dior'
    labels = root / ('Annotations/Oriented Bounding Boxes' if dior else 'FullDataSet/Annotations')
    images = root / ('JPEGImages-trainval' if dior else 'FullDataSet/AllImages')
    for folder in (labels, images, root / 'ImageSets'):
        folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        own = [
            of_dior(turned(*box), DIOR_NAMES[n % 3]) if dior else of_hrsc(box) for n, box in enumerate(rboxes(number))
        ]
        text = (dior_text if dior else hrsc_text)([*own, *planted.get(number, ())])
        (labels / f'{number:05d}.xml').write_text(text)
        (images / (f'{number:05d}.jpg' if dior else f'{number:05d}.bmp')).write_bytes(
            picture('JPEG' if dior else 'BMP')
        )
    (root / 'ImageSets/trainval.txt').write_text(''.join(f'{number:05d}\n' for number in range(files)))
    return labels
