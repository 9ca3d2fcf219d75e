"""Commands as they are typed, with what their readers are to learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import numpy as np
from drawn_scenes import save, scene, scenes
from situation import masks


class Typed(NamedTuple):
    """A command line, and what its reader is to learn.

    Attributes:
        truth (str): The true cause, in words.
        argv (callable): Makes the files in a folder; returns the arguments of ``mmguard``.
        exit (int): The exit code.
        says (tuple[str]): What is printed.
        never (tuple[str]): What is not.
    """

    truth: str
    argv: Callable[[Path], List[str]]
    exit: int
    says: Tuple[str, ...] = ()
    never: Tuple[str, ...] = ()


def scanned(build: Callable[[Path], Any], *options: str) -> Callable[[Path], List[str]]:
    return lambda root: ['scan', str(build(root)), *options, '--processes', '1']


#: Of Cityscapes: labelIds -> trainIds.
TRAIN_IDS = '7:0,8:1,11:2,12:3,13:4,17:5,19:6,20:7,21:8,22:9,23:10,24:11,25:12,26:13,27:14,28:15,31:16,32:17,33:18'


def palette_one_short(root: Path) -> Any:
    """Palette PNGs of 13 values, as labelme2voc writes them."""
    colours = [(20 * n, 255 - 20 * n, 7 * n) for n in range(13)]
    save(root / 'SegmentationClassPNG', scenes(range(13), 8, keep=0.9), palette=colours)
    return root / 'SegmentationClassPNG'


def few_of_many(root: Path) -> Path:
    """Raw values of which the user knows four."""
    save(root / 'annotations', scenes([0, 3, 5, 8, 11, 19], 9, keep=0.9))
    return root / 'annotations'


def train_ids(root: Path) -> Path:
    """Cityscapes as mmseg's converter writes it."""
    save(root / 'gtFine', [scene([*range(n % 3, 19, 2), 0, 1], n) for n in range(10)])
    return root / 'gtFine'


def world_cover(root: Path) -> Path:
    """ESA WorldCover 2021: tens, and 95 for the mangroves."""
    values = np.array([10, 20, 30, 40, 50, 60, 80, 90, 95], np.uint8)
    path, _ = masks([values[label] for label in scenes(range(9), 8)], 7)(root)
    return path


TYPED: Dict[str, Typed] = {
    'incomplete map: 11 and 19 are not in it': Typed(
        'two values are missing in the label map',
        scanned(few_of_many, '--num-classes', '4', '--label-map', '0:0,3:1,5:2,8:3'),
        1,
        ('11', '19', '255'),
        ('num_classes=20', 'Your labels are fine'),
    ),
    'nearly all ignored: the map of Cityscapes, applied twice': Typed(
        'the files hold train ids already: a map from label ids sends 0..6, 9, 10, 14..16, 18 to 255',
        scanned(train_ids, '--num-classes', '19', '--label-map', TRAIN_IDS + ',*:255'),
        1,
        ('ignored',),
        ('Your labels are fine',),
    ),
    'reader: palettes of labelme2voc, one class short': Typed(
        'the background was not counted; and cv2.imread would read colours of these files',
        scanned(palette_one_short, '--num-classes', '12'),
        1,
        ('MG102', 'num_classes=13', 'palette'),
    ),
    'incomplete map: WorldCover without wetlands and mangroves': Typed(
        '90 and 95 are not in the map',
        scanned(world_cover, '--num-classes', '7', '--label-map', '10:0,20:1,30:2,40:3,50:4,60:5,80:6'),
        1,
        ('90', '95', "'*': 255", '--label-map 10:0,20:1,30:2,40:3,50:4,60:5,80:6,90:255,95:255'),
        ('num_classes=96', 'num_classes=9', 'Your labels are fine'),
    ),
}
