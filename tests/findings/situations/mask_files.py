"""Situations that show in the form of label files, in their names and sizes."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any, Dict

import numpy as np
from drawn_scenes import VOID, blob, colored, each, photo, save, save_photos, scene, scenes, soft
from mask_values import blobs
from pictures import png
from PIL import Image
from situation import Situation, masks, seg_config, seg_model

VOC_COLORS = [(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0), (0, 0, 128)]
STREET = [(128, 64, 128), (244, 35, 232), (70, 70, 70), (0, 0, 142), (107, 142, 35)]
OWN_COLORS = [(0, 0, 0), (250, 50, 83), (51, 221, 255), (36, 179, 83)]
WHITE = [blob(255, seed=seed) for seed in range(8)]
FIVE = scenes(range(5), 6)


def channels(label: np.ndarray, *others: int) -> np.ndarray:
    """The label in the first channel, constants in the others."""
    return np.stack([label, *(np.full_like(label, other) for other in others)], -1)


def pairs(root: Path, labels: Any, num_classes: int, names: str = '{:03}', **photos: Any) -> Any:
    save(root / 'masks', labels, names)
    save_photos(root / 'photos', photos.pop('number', len(labels)), **photos)
    return root / 'masks', dict(num_classes=num_classes, images=str(root / 'photos'))


def turned_photographs(root: Path) -> Any:
    """Phone pictures: stored lying, with an EXIF tag that turns them upright; labels drawn on what was stored."""
    save(root / 'masks', FIVE)
    (root / 'photos').mkdir()
    exif = Image.Exif()
    exif[0x0112] = 6
    for number in range(len(FIVE)):
        Image.fromarray(photo(number)).save(root / f'photos/{number:03}.jpg', exif=exif)
    return root / 'masks', dict(num_classes=5, images=str(root / 'photos'))


def pointers(root: Path) -> Any:
    """A clone without git lfs."""
    (root / 'masks').mkdir()
    for number in range(4):
        text = f'version https://git-lfs.github.com/spec/v1\noid sha256:{number:064}\nsize 1234\n'
        (root / f'masks/{number}.png').write_text(text)
    return root / 'masks', dict(num_classes=5)


def cut_off(root: Path) -> Any:
    """The disk was full: the last files are cut, one is empty."""
    save(root / 'masks', scenes(range(5), 10))
    for number in (7, 8):
        path = root / f'masks/{number:03}.png'
        path.write_bytes(path.read_bytes()[:90])
    (root / 'masks/009.png').write_bytes(b'')
    return root / 'masks', dict(num_classes=5)


def cases_differ(root: Path) -> Any:
    return pairs(root, FIVE, 5, 'img_{:03}', stem='IMG_{:03}')


def four_bits(root: Path) -> Any:
    folder = save(root / 'masks', ())
    for number in range(5):
        rows = scene(range(5), number)
        packed = (rows[:, ::2] << 4 | rows[:, 1::2]).astype(np.uint8)
        data = zlib.compress(b''.join(b'\0' + row.tobytes() for row in packed))
        (folder / f'{number}.png').write_bytes(png(*rows.shape[::-1], data, bits=4))
    return folder, dict(num_classes=5)


def two_tools(root: Path) -> Any:
    save(root / 'masks', FIVE, 'a_{}', palette=VOC_COLORS)
    save(root / 'masks', each(FIVE, lambda label: colored(label, VOC_COLORS)), 'b_{}')
    return root / 'masks', dict(num_classes=5)


def noisy(label: np.ndarray, quality: int = 75) -> np.ndarray:
    """What a JPEG in between made of it."""
    file = io.BytesIO()
    Image.fromarray(label).save(file, format='JPEG', quality=quality)
    return np.asarray(Image.open(file))


SITUATIONS: Dict[str, Situation] = {
    'milesial/Pytorch-UNet#311': Situation(
        "pillow's default resize (bicubic) overshoots: a few pixels of N at the edges of class N - 1",
        ('MG136',),
        masks(each(scenes([0, 5, 12, 20], 6), lambda label: soft(label, (113, 87), Image.BICUBIC)), 21),
        never=dict(num_classes=[22, 23]),
    ),
    '16 bits, 0 and 65535': Situation(
        'a binary mask saved white in 16 bits: it wraps to 255, which is ignored',
        ('MG122', 'MG103'),
        masks(each(WHITE, lambda label: label.astype(np.uint16) * 257), 2),
        first=dict(label_map={65535: 1}),
    ),
    'probabilities': Situation(
        'float maps in [0, 1] out of a network',
        ('MG123',),
        masks(each(WHITE, lambda x: soft(x).astype(np.float32) / 255), 2, files=dict(ending='.tiff')),
        first=dict(threshold=0.5),
    ),
    '4-bit files': Situation('pngquant wrote 4-bit gray: loaders stretch 1 to 17', ('MG122',), four_bits),
    'other size': Situation(
        'labels at half the size of the photographs',
        ('MG130',),
        lambda root: pairs(root, FIVE, 5, height=120, width=160),
    ),
    'EXIF': Situation('photographs turned by EXIF', ('MG130',), turned_photographs),
    'git lfs': Situation('LFS pointers instead of files', ('MG132',), pointers, seen=('0.png',)),
    'cut off': Situation('truncated and empty files', ('MG132',), cut_off, seen=('009.png', '007.png')),
    'some labels are missing': Situation(
        'three photographs were never annotated',
        ('MG129',),
        lambda root: pairs(root, FIVE, 5, number=9),
        seen=('photos/006.jpg', 'photos/007.jpg', 'photos/008.jpg'),
    ),
    'case of names': Situation('img_000.png and IMG_000.jpg', ('MG129',), cases_differ, seen=('IMG_000.jpg',)),
    'labels of half of the set drawn in 255': Situation(
        'palette PNGs in a folder with color PNGs of a second tool',
        ('MG120',),
        two_tools,
        first=dict(colors={color: label for label, color in enumerate(VOC_COLORS)}),
    ),
    'facebookresearch/detectron2#1760': Situation(
        'palette PNGs, right as indices; the reader converts them to gray',
        ('MG121',),
        masks(scenes([*range(4), VOID], 8), 4, files=dict(palette=[(0, 0, 0)] * 256)),
    ),
    'near: a palette of colors': Situation(
        'right as indices; nobody said what reads them',
        ('MG121',),
        masks(scenes(range(4), 8), 4, files=dict(palette=[(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0)])),
    ),
    'two peaks: PNG after a poor JPEG, in a config': Situation(
        'compressed once, 0 and 255',
        ('MG136', 'MG106', 'MG103'),
        seg_config(each(blobs(VOID, 10), lambda label: noisy(label, 40)), ['background', 'crack'], seg_model(2)),
        first=dict(threshold=127),
        never=dict(label_map=...),
    ),
}
