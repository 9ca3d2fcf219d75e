"""Street scenes in the layout of Cityscapes, with invalid labels in some of the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Tuple

import cv2
import numpy as np

from mmguard.files.regular import write_whole

NUM_CLASSES, SIZE = 19, (512, 256)  # width, height
ROAD, SIDEWALK, BUILDING, TREE, TERRAIN, SKY = 0, 1, 2, 8, 9, 10
PERSON, RIDER, CAR, BICYCLE, IGNORED = 11, 12, 13, 18, 255
#: {train id: raw Cityscapes id} of moving objects, as if an export had converted only static classes to train ids.
RAW_IDS = {PERSON: 24, RIDER: 25, CAR: 26, BICYCLE: 33}
#: An invalid value, as if from a mistake in an annotation tool.
SLIP = 200
#: {city: fault of each training image}: ``'raw'`` (raw ids), ``'slip'`` (a stroke of ``SLIP``), or ``''`` (none).
TRAIN: Dict[str, Tuple[str, ...]] = {
    'aachen': ('', '', 'raw', '', 'slip', '', ''),
    'bremen': ('', '', '', 'raw', '', '', ''),
    'zurich': ('slip', '', 'raw', '', '', 'raw slip'),
}

Span = Tuple[float, float]
DARK, GLASS, WOOD, HAZE = (26, 25, 26), (74, 62, 54), (44, 56, 70), np.array((205, 196, 188), float)  # BGR
_BODY = ((-0.16, 0.16, 0.2, 1, DARK, False), (-0.23, 0.23, 0.8, 1.6, None, True), (-0.1, 0.1, 1.54, 1.82, WOOD, True))
#: {label: parts of an object}: left, right, low, high in meters, color (``None`` for a random one), True if round.
THINGS: Dict[int, Tuple[Tuple[float, float, float, float, Any, bool], ...]] = {
    TREE: ((-0.14, 0.14, 0, 2.6, WOOD, False), (-1.2, 1.2, 2.2, 4.6, (46, 92, 70), True)),
    CAR: (
        (-0.86, 0.86, 0, 0.5, DARK, False),
        (-0.88, 0.88, 0.28, 0.95, None, False),
        (-0.76, 0.76, 0.95, 1.5, GLASS, False),
    ),
    BICYCLE: ((-0.83, -0.17, 0, 0.68, DARK, True), (0.17, 0.83, 0, 0.68, DARK, True)),
    PERSON: _BODY,
    RIDER: _BODY,
}


def draw_street(width: int, height: int, seed: int) -> Tuple[np.ndarray, np.ndarray]:
    """Draw a street: the image (height, width, 3), uint8, BGR, and its label map (height, width), uint8.

    The same seed gives the same street. As in Cityscapes, the hood of the car with the camera has the label 255.
    """
    random = np.random.default_rng(seed)
    image = np.repeat(np.linspace((205, 160, 120), HAZE, height, dtype=np.uint8)[:, None], width, axis=1)
    label = np.full((height, width), SKY, np.uint8)
    center, horizon, focal, eye, near = random.uniform(0.42, 0.58) * width, 0.43 * height, 0.62 * width, 1.45, 1.5

    def draw(across: Span, up: Span, ahead: Span, color: Any, value: int, is_round: bool = False) -> None:
        """Draw a box in meters or, if ``is_round``, an ellipse that fits into the outline of the box."""
        corners = [(x, y, max(z, near)) for x in across for y in up for z in ahead]
        spots = np.array([(center + focal * x / z, horizon + focal * (eye - y) / z) for x, y, z in corners])
        outline: Any = cv2.convexHull(spots.round().astype(np.int32))
        if is_round:
            left, top, wide, high = cv2.boundingRect(outline)
            outline = cv2.ellipse2Poly((left + wide // 2, top + high // 2), (wide // 2, high // 2), 0, 0, 360, 10)
        share = np.exp(-ahead[0] / 140)
        cv2.fillPoly(image, [outline], (share * np.array(color, float) + (1 - share) * HAZE).tolist())
        cv2.fillPoly(label, [outline], value)

    curb = random.uniform(4.2, 5.4)
    draw((-200, 200), (0, 0), (near, 400), (78, 112, 98), TERRAIN)
    draw((-curb - 3, curb + 3), (0, 0), (near, 400), (146, 150, 154), SIDEWALK)
    draw((-curb, curb), (0, 0), (near, 400), (92, 90, 89), ROAD)
    for start in range(3, 90, 6):
        draw((-0.08, 0.08), (0, 0), (start, start + 3), (214, 216, 216), ROAD)
    for front in (-curb - 4, curb + 4):
        for start in range(90, 0, -12):
            wall = np.array((120, 136, 150)) * random.uniform(0.75, 1.2, 3)
            draw((front, front), (0, random.uniform(7, 17)), (start, start + 12), wall, BUILDING)
    placed = [(random.uniform(8, 14), CAR, 1.9), (random.uniform(14, 34), CAR, -1.9)]
    if random.random() < 0.6:
        placed += [(5, RIDER, random.uniform(1.8, 2.8))]
        placed += [(5.01, BICYCLE, placed[-1][2])]
    for thing, away, gap in ((TREE, 2.0, 14), (CAR, -1.2, 9), (PERSON, 1.6, 12)):
        for side in (-1, 1):
            rows = np.cumsum([random.uniform(6, 6 + gap), *(gap * random.uniform(0.6, 1.5, 60 // gap))])
            placed += [(float(ahead), thing, side * (curb + away)) for ahead in rows]
    for ahead, thing, right in sorted(placed, reverse=True):
        paint = random.uniform(50, 170, 3)
        for left, end, low, high, color, is_round in THINGS[thing]:
            spans = (right + left, right + end), (low, high), (ahead, ahead)
            draw(*spans, paint if color is None else color, thing, is_round)
    hood = (width // 2, round(1.03 * height)), (width // 2, height // 10), 0, 0, 360
    cv2.ellipse(image, *hood, (60, 56, 52), -1)
    cv2.ellipse(label, *hood, IGNORED, -1)
    return (image + random.normal(0, 4, image.shape)).clip(0, 255).astype(np.uint8), label


def write_dataset(root: Path) -> Dict[str, Dict[int, int]]:
    """Draw the data set, and write it to the folders ``leftImg8bit`` and ``gtFine`` of the data root.

    Return {label file: {invalid value: pixels}}, with an empty dict for a file without invalid values.
    """
    planted: Dict[str, Dict[int, int]] = {}
    for city, faults in TRAIN.items():
        for number, fault in enumerate(faults):
            image, label = draw_street(*SIZE, seed=len(planted) + 1)
            known = label < NUM_CLASSES
            for train_id, raw_id in RAW_IDS.items() if 'raw' in fault else ():
                label[label == train_id] = raw_id
            if 'slip' in fault:
                stroke = np.zeros_like(label)
                cv2.line(stroke, (90 + 5 * number, 190), (400, 160 + 5 * number), 1, thickness=8)
                label[(stroke == 1) & known] = SLIP
            name = f'train/{city}/{city}_{number:06d}_000019'
            file = f'gtFine/{name}_gtFine_labelTrainIds.png'
            for path, pixels in ((file, label), (f'leftImg8bit/{name}_leftImg8bit.png', image)):
                write_whole(root / path, cv2.imencode('.png', pixels)[1].tobytes())
            values = np.unique(label[(label >= NUM_CLASSES) & (label != IGNORED)]).tolist()
            planted[file] = {value: int((label == value).sum()) for value in values}
    return planted
