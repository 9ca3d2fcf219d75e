"""A small data set in the layout of Cityscapes, with invalid labels in some of its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Tuple

import cv2
import numpy as np

from mmguard.files.regular import write_whole
from mmguard.tools.demo.street import draw_street

NUM_CLASSES = 19
SIZE = (512, 256)  # width, height

#: Train id -> raw Cityscapes id for moving objects, as in an export that translated only the rest.
RAW_IDS = {11: 24, 12: 25, 13: 26, 14: 27, 15: 28, 16: 31, 17: 32, 18: 33}
#: A meaningless value, as if by a slip in an annotation tool.
SLIP = 200
_MOVING = ('person', 'rider', 'car', 'truck', 'bus', 'train', 'motorcycle', 'bicycle')
MEANING = {**{raw: f'raw id of {name}' for raw, name in zip(RAW_IDS.values(), _MOVING)}, SLIP: 'no id at all'}

#: City -> fault of each of its training images ('' = none).
TRAIN: Dict[str, Tuple[str, ...]] = {
    'aachen': ('', '', 'raw', '', 'slip', '', ''),
    'bremen': ('', '', '', 'raw', '', '', ''),
    'zurich': ('slip', '', 'raw', '', '', 'raw slip'),
}


@dataclass
class DataSet:
    """A data root, its training label files, and the planted pixels: label file -> invalid value -> number."""

    root: Path
    labels: List[str] = field(default_factory=list)
    planted: Dict[str, Dict[int, int]] = field(default_factory=dict)

    def find_image(self, label: str) -> Path:
        """Return the image of a label file."""
        image = label.replace('gtFine/', 'leftImg8bit/', 1)
        return self.root / image.replace('_gtFine_labelTrainIds.png', '_leftImg8bit.png')


def write_dataset(root: Path) -> DataSet:
    """Draw and write the data set, below ``leftImg8bit/`` and ``gtFine/`` of the data root."""
    dataset, seed = DataSet(root), 0
    for city, faults in TRAIN.items():
        for number, fault in enumerate(faults):
            seed += 1
            image, label = draw_street(*SIZE, seed)
            label, planted = plant(label, fault, np.random.default_rng(seed))
            file = f'gtFine/train/{city}/{city}_{number:06d}_000019_gtFine_labelTrainIds.png'
            _write_png(root / file, label)
            _write_png(dataset.find_image(file), image)
            dataset.labels.append(file)
            if planted:
                dataset.planted[file] = planted
    return dataset


def plant(label: np.ndarray, fault: str, rng: np.random.Generator) -> Tuple[np.ndarray, Dict[int, int]]:
    """Put invalid values into a copy of a label map.

    Args:
        label (np.ndarray): Train ids, uint8.
        fault (str): ``'raw'`` (raw Cityscapes ids of moving objects), ``'slip'`` (a stroke of 200), both, or neither.
        rng (np.random.Generator): Places the stroke.

    Returns:
        tuple: the label map, and invalid value -> pixels.
    """
    spoilt = label.copy()
    if 'raw' in fault:
        for train_id, raw_id in RAW_IDS.items():
            spoilt[label == train_id] = raw_id
    if 'slip' in fault:
        x = np.linspace(rng.uniform(0.1, 0.3), rng.uniform(0.6, 0.9), 12) * label.shape[1]
        y = (rng.uniform(0.62, 0.78) + 0.04 * np.sin(np.linspace(0, 6, 12))) * label.shape[0]
        stroke = np.zeros_like(label)
        cv2.polylines(stroke, [np.stack([x, y], axis=1).round().astype(np.int32)], False, 1, thickness=8)
        spoilt[(stroke == 1) & (label < NUM_CLASSES)] = SLIP
    counts = {value: int((spoilt == value).sum()) for value in MEANING}
    return spoilt, {value: count for value, count in counts.items() if count}


def _write_png(path: Path, pixels: np.ndarray) -> None:
    write_whole(path, cv2.imencode('.png', pixels)[1].tobytes())
