"""A small data set in the layout of Cityscapes, with invalid labels planted in some of its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import cv2
import numpy as np

from mmguard.files.whole import write_whole
from mmguard.tools.demo.street import street_scene

NUM_CLASSES = 19
IGNORE_INDEX = 255
SIZE = (512, 256)  # width, height

#: Train id -> raw Cityscapes id of what moves: an export that translated only the rest.
RAW_IDS = {11: 24, 12: 25, 13: 26, 14: 27, 15: 28, 16: 31, 17: 32, 18: 33}
#: A value that means nothing: a slip of an annotation tool.
SLIP = 200

MEANING = {
    24: 'raw id of person',
    25: 'raw id of rider',
    26: 'raw id of car',
    27: 'raw id of truck',
    28: 'raw id of bus',
    31: 'raw id of train',
    32: 'raw id of motorcycle',
    33: 'raw id of bicycle',
    SLIP: 'no id at all',
}

#: City -> what is wrong with each of its training images ('' = nothing).
TRAIN: Dict[str, Tuple[str, ...]] = {
    'aachen': ('', '', 'raw', '', 'slip', '', ''),
    'bremen': ('', '', '', 'raw', '', '', ''),
    'zurich': ('slip', '', 'raw', '', '', 'raw slip'),
}
VAL: Dict[str, Tuple[str, ...]] = {'lindau': ('', '', '', '')}


@dataclass
class DataSet:
    """What was written, and what was planted in it.

    Args:
        root (Path): The data root.
        labels (list[str]): The training label files, relative to the root.
        clean (list[str]): Those without an invalid label.
        planted (dict[str, dict[int, int]]): Label file -> invalid value -> pixels.
    """

    root: Path
    labels: List[str] = field(default_factory=list)
    clean: List[str] = field(default_factory=list)
    planted: Dict[str, Dict[int, int]] = field(default_factory=dict)

    def image_of(self, label: str) -> Path:
        """The image that belongs to a label file."""
        image = label.replace('gtFine/', 'leftImg8bit/', 1)
        return self.root / image.replace('_gtFine_labelTrainIds.png', '_leftImg8bit.png')


def write_dataset(root: Path, seed: int = 0, written: Callable[[], None] = lambda: None) -> DataSet:
    """Draws and writes the data set.

    Args:
        root (Path): The data root, as in Cityscapes: ``leftImg8bit/`` and ``gtFine/`` below it.
        seed (int): The same seed gives the same data set.
        written (callable): Called after each image, for a progress bar.

    Returns:
        DataSet: what was written and planted. ``clean.txt`` in the root lists the clean training images.
    """
    dataset = DataSet(root)
    names = []
    for split, cities in (('train', TRAIN), ('val', VAL)):
        for city, faults in cities.items():
            for number, fault in enumerate(faults):
                seed += 1
                name = f'{city}/{city}_{number:06d}_000019'
                image, label = street_scene(*SIZE, seed)
                label, planted = plant(label, fault, np.random.default_rng(seed))
                file = f'gtFine/{split}/{name}_gtFine_labelTrainIds.png'
                _write_png(root / file, label)
                _write_png(root / f'leftImg8bit/{split}/{name}_leftImg8bit.png', image)
                if split == 'train':
                    dataset.labels.append(file)
                    if planted:
                        dataset.planted[file] = planted
                    else:
                        dataset.clean.append(file)
                        names.append(name)
                written()
    write_whole(root / 'clean.txt', ('\n'.join(names) + '\n').encode())
    return dataset


def plant(label: np.ndarray, fault: str, random: np.random.Generator) -> Tuple[np.ndarray, Dict[int, int]]:
    """Plants invalid values in a copy of a label map.

    Args:
        label (np.ndarray): Train ids, uint8.
        fault (str): ``'raw'`` (raw Cityscapes ids of what moves), ``'slip'`` (a stroke of 200), both, or neither.
        random (np.random.Generator): Places the stroke.

    Returns:
        tuple: the label map, and invalid value -> pixels.
    """
    spoilt = label.copy()
    if 'raw' in fault:
        for train_id, raw_id in RAW_IDS.items():
            spoilt[label == train_id] = raw_id
    if 'slip' in fault:
        spoilt[_stroke(label, random)] = SLIP
    invalid = [value for value in (*RAW_IDS.values(), SLIP) if (spoilt == value).any()]
    return spoilt, {value: int((spoilt == value).sum()) for value in sorted(invalid)}


def _stroke(label: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A brush stroke across the street."""
    height, width = label.shape
    x = np.linspace(random.uniform(0.1, 0.3), random.uniform(0.6, 0.9), 12) * width
    y = (random.uniform(0.62, 0.78) + 0.04 * np.sin(np.linspace(0, random.uniform(3, 7), 12))) * height
    stroke = np.zeros_like(label)
    points = np.stack([x, y], axis=1).round().astype(np.int32)
    cv2.polylines(stroke, [points], False, 1, thickness=int(random.integers(5, 11)))
    return (stroke == 1) & (label < NUM_CLASSES)


def read_png(path: Path) -> np.ndarray:
    """Reads an image or a label map as it is stored.

    Raises:
        OSError: It is not there, or no image.
    """
    pixels = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    if pixels is None:
        raise OSError(f'{path} cannot be read as an image')
    return np.asarray(pixels)


def _write_png(path: Path, pixels: np.ndarray) -> None:
    encoded, content = cv2.imencode('.png', pixels)
    if not encoded:
        raise OSError(f'{path}: OpenCV cannot encode it as PNG')
    write_whole(path, content.tobytes())
