"""Label maps and photographs as people have them: regions with crooked borders, not all classes in every file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Iterable, List, Optional, Sequence

import numpy as np
from PIL import Image

HEIGHT, WIDTH = 60, 80
VOID = 255


def scene(values: Sequence[int], seed: int = 0, border: Optional[int] = None, regions: int = 0) -> np.ndarray:
    """A label map uint8 (60, 80) of regions, each value in at least one of them, the first in most.

    Args:
        values (sequence of int): What to draw with.
        seed (int): Another one, another scene.
        border (int, optional): Drawn, two pixels wide, between the regions, as VOC does.
        regions (int): How many there are at least.
    """
    random = np.random.default_rng(seed)
    order = list(values)
    extra = max(regions, len(order) + len(order) // 2 + 2) - len(order)
    order += [values[0] if random.random() < 0.5 else values[int(random.integers(len(values)))] for _ in range(extra)]
    # Seeds on a jittered grid, so that no value loses its region.
    columns = int(np.ceil(np.sqrt(len(order) * WIDTH / HEIGHT)))
    rows = -(-len(order) // columns)
    places = [(r, c) for r in range(rows) for c in range(columns)][: len(order)]
    spots = np.array([((r + 0.5) * HEIGHT / rows, (c + 0.5) * WIDTH / columns) for r, c in places])
    spots += random.uniform(-0.25, 0.25, spots.shape) * (HEIGHT / rows, WIDTH / columns)
    y, x = np.ogrid[:HEIGHT, :WIDTH]
    nearest = ((y[..., None] - spots[:, 0]) ** 2 + (x[..., None] - spots[:, 1]) ** 2).argmin(-1)
    shuffled = np.array(order)[random.permutation(len(order))]
    label = shuffled[nearest].astype(np.uint8)
    if border is not None:
        edge = np.zeros(label.shape, bool)
        edge[:, 1:] |= label[:, 1:] != label[:, :-1]
        edge[1:] |= label[1:] != label[:-1]
        edge[:, :-1] |= edge[:, 1:]
        label[edge] = border
    return label


def scenes(values: Sequence[int], files: int = 6, border: Optional[int] = None, keep: float = 1.0) -> List[np.ndarray]:
    """Several of them, each with the first value and about ``keep`` of the others."""
    random = np.random.default_rng(len(values))
    drawn = []
    for number in range(files):
        some = [value for value in values[1:] if random.random() < keep]
        drawn.append(scene([values[0], *(some or list(values[1:2]))], number, border))
    return drawn


def blob(value: int, ground: int = 0, seed: int = 0, radius: float = 14.0) -> np.ndarray:
    """One round object, uint8 (60, 80)."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    inside = (y - random.uniform(20, 40)) ** 2 + (x - random.uniform(25, 55)) ** 2 < radius**2
    return np.where(inside, value, ground).astype(np.uint8)


def soft(label: np.ndarray, size: Sequence[int] = (96, 72), how: Any = Image.BILINEAR) -> np.ndarray:
    """Resized as a photograph."""
    return np.asarray(Image.fromarray(label).resize(tuple(size), how))


def colored(label: np.ndarray, colors: Sequence[Sequence[int]]) -> np.ndarray:
    """Each label as its color, uint8 (H, W, C)."""
    return np.array(colors, np.uint8)[label]


def photo(seed: int = 0, height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """A photograph: smooth light with noise, uint8 (height, width, 3)."""
    random = np.random.default_rng(1000 + seed)
    small = Image.fromarray(random.integers(0, 256, (6, 8, 3)).astype(np.uint8))
    smooth = np.asarray(small.resize((width, height), Image.BICUBIC)).astype(int)
    return np.clip(smooth + random.integers(-12, 13, smooth.shape), 0, 255).astype(np.uint8)


def save(
    folder: Path,
    arrays: Iterable[Any],
    stem: str = '{:03}',
    ending: str = '.png',
    palette: Optional[Sequence[Sequence[int]]] = None,
    convert: Optional[str] = None,
    **options: Any,
) -> Path:
    """Writes arrays as numbered image files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, array in enumerate(arrays):
        image = Image.fromarray(array) if isinstance(array, np.ndarray) else array
        if palette is not None:
            image = image.convert('L')
            image.putpalette([part for color in palette for part in color])
        if convert is not None:
            image = image.convert(convert)
        image.save(folder / (stem.format(number) + ending), **options)
    return folder


def save_photos(folder: Path, files: int, stem: str = '{:03}', ending: str = '.jpg', **size: int) -> Path:
    """Writes photographs."""
    return save(folder, [photo(number, **size) for number in range(files)], stem, ending)


def each(labels: Iterable[np.ndarray], change: Callable[[np.ndarray], np.ndarray]) -> List[np.ndarray]:
    return [change(label) for label in labels]
