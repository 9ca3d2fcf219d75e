"""Example pictures of codes: a small data set with one mistake each, drawn as ``mmguard scan --html`` draws it."""

from __future__ import annotations

import base64
import json
import re
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np
from PIL import Image, ImageFilter

HEIGHT, WIDTH = 180, 320
FILES = 12
#: x1, y1, x2, y2 of the objects of a scene.
OBJECTS = ((40, 70, 110, 150), (150, 84, 214, 156), (244, 60, 296, 142))

Values = Callable[[np.ndarray], np.ndarray]
Numbers = Callable[[int, Tuple[int, ...]], Tuple[float, ...]]


class Example(NamedTuple):
    """Data set with the mistake that a code reports."""

    alt: str  #: What the picture shows.
    write: Callable[[Path], Dict[str, Any]]  #: Writes it into a folder; returns the arguments of ``mmguard.scan``.


def draw_scene() -> Tuple[np.ndarray, np.ndarray]:
    """Return a picture, uint8 (height, width, 3), and its labels: 0 to 3 from top to bottom, 4 the objects."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    label = (rows > 50 + 8 * np.sin(columns / 40)).astype(np.uint8) + (rows > 100) + (rows > 150)
    colors = np.array([(150, 185, 220), (95, 140, 90), (130, 125, 120), (100, 95, 100), (190, 80, 60)], float)
    for left, top, right, bottom in OBJECTS:
        label[top:bottom, left:right] = 4
    light = 1 + 0.06 * np.sin(rows / 9 + columns / 23)[..., None]
    return (colors[label] * light).clip(0, 255).astype(np.uint8), label


def write_maps(num_classes: int, values: Values) -> Callable[[Path], Dict[str, Any]]:
    """Return a function that writes label maps; ``values`` converts an array of labels 0 to 4."""

    def write(folder: Path) -> Dict[str, Any]:
        photo, label = draw_scene()
        for name in ('images', 'labels'):
            (folder / name).mkdir()
        for number in range(FILES):
            Image.fromarray(photo).save(folder / 'images' / f'{number:04}.jpg', quality=90)
            Image.fromarray(values(label)).save(folder / 'labels' / f'{number:04}.png')
        return dict(target=folder / 'labels', images=str(folder / 'images'), num_classes=num_classes)

    return write


def write_boxes(numbers: Numbers) -> Callable[[Path], Dict[str, Any]]:
    """Return a function that writes a COCO JSON; ``numbers(image number, corners)`` returns the bbox of an object."""

    def write(folder: Path) -> Dict[str, Any]:
        (folder / 'images').mkdir()
        record: Dict[str, List[Any]] = dict(images=[], annotations=[], categories=[dict(id=0, name='car')])
        for number in range(FILES):
            Image.fromarray(draw_scene()[0]).save(folder / 'images' / f'{number:04}.jpg', quality=90)
            record['images'].append(dict(id=number, file_name=f'{number:04}.jpg', width=WIDTH, height=HEIGHT))
            for corners in OBJECTS:
                one = dict(id=len(record['annotations']), image_id=number, category_id=0, iscrowd=0, area=99)
                record['annotations'].append({**one, 'bbox': numbers(number, corners)})
        (folder / 'train.json').write_text(json.dumps(record))
        return dict(target=folder / 'train.json', images=str(folder / 'images'))

    return write


def write_texts(folder: Path) -> Dict[str, Any]:
    """Write YOLO labels with coordinates in pixels instead of fractions."""
    for name in ('images', 'labels'):
        (folder / name).mkdir()
    for number in range(FILES):
        Image.fromarray(draw_scene()[0]).save(folder / 'images' / f'{number:04}.jpg', quality=90)
        rows = [f'0 {(a + c) / 2} {(b + d) / 2} {c - a} {d - b}\n' for a, b, c, d in OBJECTS]
        (folder / 'labels' / f'{number:04}.txt').write_text(''.join(rows))
    (folder / 'data.yaml').write_text('train: images\nval: images\nnames: [car]\n')
    return dict(target=folder / 'data.yaml')


def blur(label: np.ndarray) -> np.ndarray:
    """Return a 0/255 mask with interpolated values at its edges."""
    mask = Image.fromarray(((label == 4) * 255).astype(np.uint8))
    return np.asarray(mask.filter(ImageFilter.GaussianBlur(2)))


def to_sizes(number: int, corners: Tuple[int, ...]) -> Tuple[float, ...]:
    left, top, right, bottom = corners
    return left, top, right - left, bottom - top


def without_height(number: int, corners: Tuple[int, ...]) -> Tuple[float, ...]:
    left, top, width, height = to_sizes(number, corners)
    return (left, top, width, 0 if number == 3 and left > 200 else -height if number == 3 and left > 120 else height)


def move_right(number: int, corners: Tuple[int, ...]) -> Tuple[float, ...]:
    left, top, width, height = to_sizes(number, corners)
    return left + 50 * (number % 4 == 0), top, width, height


#: Number of pictures (boxes have 1, a label map has 2) -> meaning of their colors.
KEYS = {
    1: 'magenta: a faulty box; yellow: a wrong edge',
    2: 'magenta: invalid pixels; the image, and the label map',
}
EXAMPLES: Dict[str, Example] = {
    'MG102': Example('Pixels with the value 4 where the classes are 0 to 3', write_maps(4, lambda label: label)),
    'MG107': Example(
        'An object with the value 77 where the classes are 0 to 4',
        write_maps(5, lambda label: np.where((label == 4) & (np.arange(WIDTH) > 240), 77, label).astype(np.uint8)),
    ),
    'MG109': Example('A box without height and a box whose bottom is above its top', write_boxes(without_height)),
    'MG115': Example('Labels that count from 1: pixels with the value 5', write_maps(5, lambda label: label + 1)),
    'MG136': Example('A mask whose edges hold values between 0 and 255', write_maps(2, blur)),
    'MG152': Example('A box whose right edge is outside of the image', write_boxes(move_right)),
    'MG164': Example('A box in pixels, read as fractions: far beyond the image', write_texts),
    'MG172': Example(
        'Boxes that reach beyond the image, and fit its objects if they are read as two corners',
        write_boxes(lambda number, corners: corners),
    ),
}


def draw_examples(folder: Path, relative: str) -> Iterator[Tuple[str, str]]:
    """Write the pictures of all codes into a folder; yield each code with the Markdown that shows them.

    Args:
        relative (str): Path of the folder, relative to the pages.
    """
    import mmguard

    folder.mkdir(parents=True, exist_ok=True)
    for code, example in EXAMPLES.items():
        with tempfile.TemporaryDirectory() as data:
            found = mmguard.scan(**example.write(Path(data)), processes=1)
            pictures = re.findall(r'<image href="data:image/(\w+);base64,([^"]+)"', found.show(1))
        if code not in [finding.code for finding in found.findings] or not pictures:
            raise ValueError(f'the example of {code} shows {[finding.code for finding in found.findings]}')
        text = f'\n{example.alt}, as `mmguard scan --html` draws it ({KEYS[min(len(pictures), 2)]}):\n'
        for number, (kind, encoded) in enumerate(pictures):
            name = f'{code}-{number}.{kind}'
            (folder / name).write_bytes(base64.b64decode(encoded))
            text += f'\n![{example.alt}{": the label map" if number else ""}]({relative}/{name})\n'
        yield code, text
