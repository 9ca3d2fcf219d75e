"""Pictures of single files for the page: of bounded size, whatever the size of the file."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any, Iterable, List, Optional, Tuple

import numpy as np
from markupsafe import Markup

from mmguard.tools.storage.files import FILES

#: Pixels of the longer side of a picture.
LONGEST = 640
#: Bytes of one encoded picture; a picture of noise is encoded coarser until it fits.
MOST_BYTES = 150_000
#: Files of more pixels are not decoded for a picture.
MOST_PIXELS = 120_000_000

#: What invalid pixels are painted in. No class has it.
LOUD = (255, 0, 170)
IGNORED = (232, 234, 238)
#: Up to this share of invalid pixels they are ringed and shown from close by.
FEW = 0.004
#: Pixels of the longer side of what is shown from close by.
CLOSE = 64
#: Up to so many rings; more of them hide the picture.
_RINGS = 40
_CELLS = 16


class CannotDraw(Exception):
    """Why there is no picture, in words for the page."""


@dataclass
class Picture:
    """An encoded picture.

    Args:
        data (str): ``data:image/...;base64,...``.
        width, height (int): Its pixels.
        rings (list[tuple]): Places to draw a ring at, as shares of width and height.
    """

    data: str
    width: int
    height: int
    rings: List[Tuple[float, float]]


def photo(path: str) -> Tuple[Picture, Tuple[int, int]]:
    """The image, reduced, and the (width, height) of its file.

    Raises:
        CannotDraw: It cannot be read.
    """
    pixels, size = _read_photo(path)
    return _encode(pixels, lossy=True), size


def marked_photo(path: str, label: np.ndarray, invalid: np.ndarray) -> Picture:
    """The image, darkened, with the invalid pixels painted over it.

    Args:
        path (str): The image.
        label (np.ndarray): (height, width), for its size.
        invalid (np.ndarray): bool, (height, width).

    Raises:
        CannotDraw: It cannot be read.
    """
    from PIL import Image

    pixels, _ = _read_photo(path)
    height, width = shrunk_size(*label.shape)
    if pixels.shape[:2] != (height, width):  # an image of another size is a finding of its own
        pixels = np.asarray(Image.fromarray(pixels).resize((width, height)))
    painted = (pixels * 0.55 + 8).astype(np.uint8)
    seen = shrunk_mask(invalid)
    painted[seen] = LOUD
    picture = _encode(painted, lossy=True)
    picture.rings = rings(invalid)
    return picture


def coloured(label: np.ndarray, invalid: np.ndarray, ignored: Iterable[int]) -> Picture:
    """The label map, one colour per value: ignored pixels pale, invalid ones loud.

    Args:
        label (np.ndarray): Integers, (height, width).
        invalid (np.ndarray): bool, (height, width).
        ignored (iterable of int): Values that are not trained on.
    """
    picture = _encode(_paint(shrunk(label), shrunk_mask(invalid), ignored))
    picture.rings = rings(invalid)
    return picture


def closer(label: np.ndarray, invalid: np.ndarray, ignored: Iterable[int]) -> Optional[Picture]:
    """The surroundings of a few invalid pixels, enlarged; ``None`` where they are seen without."""
    height, width = label.shape
    high, wide = min(height, round(CLOSE * min(1, height / width))), min(width, round(CLOSE * min(1, width / height)))
    if max(height, width) < 3 * CLOSE or not invalid.any() or invalid.mean() > FEW:
        return None
    row, column = _densest(invalid)
    top = min(max(row - high // 2, 0), height - high)
    left = min(max(column - wide // 2, 0), width - wide)
    part = slice(top, top + high), slice(left, left + wide)
    painted = _paint(label[part], invalid[part], ignored)
    return _encode(painted.repeat(6, axis=0).repeat(6, axis=1))


def read_label(path: str) -> np.ndarray:
    """The values of a label map as stored, (height, width); of a palette, its indices.

    Raises:
        CannotDraw: It cannot be read, or holds colours instead of values.
    """
    image = _open(path)
    if len(image.getbands()) > 1:
        raise CannotDraw(f'{len(image.getbands())} channels ({image.mode}): colours, not values')
    label = np.asarray(image)
    values: np.ndarray = label.astype(np.uint8) if label.dtype == np.bool_ else label
    return values


def _read_photo(path: str) -> Tuple[np.ndarray, Tuple[int, int]]:
    image = _open(path)
    size = image.size
    height, width = shrunk_size(size[1], size[0])
    try:
        image.draft('RGB', (width, height))  # a JPEG is decoded at an eighth of its size
        if image.mode.startswith('I') or image.mode == 'F':
            depth = np.nan_to_num(np.asarray(image).astype(np.float64), posinf=0, neginf=0)
            top = float(depth.max()) or 1.0
            image = _from_array((depth * (255 / top)).clip(0, 255).astype(np.uint8))
        return np.asarray(image.convert('RGB').resize((width, height))), size
    except Exception as error:
        raise CannotDraw(_words(error)) from error


def _open(path: str) -> Any:
    from PIL import Image

    try:
        with FILES.open(path) as file:
            image = Image.open(io.BytesIO(file.read()))
        if image.size[0] * image.size[1] > MOST_PIXELS:
            raise CannotDraw(f'too large to draw ({image.size[0]:,} x {image.size[1]:,})')
        if image.format != 'JPEG':
            image.load()
        return image
    except CannotDraw:
        raise
    except Exception as error:  # damaged and hostile files raise anything
        raise CannotDraw(_words(error)) from error


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error).split('\n')[0][:120] or type(error).__name__


def _from_array(pixels: np.ndarray) -> Any:
    from PIL import Image

    return Image.fromarray(pixels)


# ---- smaller


def shrunk_size(height: int, width: int) -> Tuple[int, int]:
    step = _step(height, width)
    return -(-height // step), -(-width // step)


def shrunk(label: np.ndarray) -> np.ndarray:
    """Every n-th pixel: label values cannot be averaged."""
    step = _step(*label.shape)
    return label[::step, ::step]


def shrunk_mask(mask: np.ndarray) -> np.ndarray:
    """A pixel is set where any of those that it stands for is: a single one stays visible."""
    step = _step(*mask.shape)
    height, width = shrunk_size(*mask.shape)
    padded = np.zeros((height * step, width * step), dtype=bool)
    padded[: mask.shape[0], : mask.shape[1]] = mask
    return np.asarray(padded.reshape(height, step, width, step).any(axis=(1, 3)))


def _step(height: int, width: int) -> int:
    return max(1, -(-max(height, width) // LONGEST))


def rings(mask: np.ndarray) -> List[Tuple[float, float]]:
    """Where small groups of pixels lie, (x, y) as shares of width and height; none where they are easily seen."""
    height, width = mask.shape
    if mask.mean() > FEW:
        return []
    rows, columns = np.nonzero(mask)
    cell = max(height, width) / _CELLS
    cells = (rows // cell).astype(int) * (_CELLS + 1) + (columns // cell).astype(int)
    found = []
    for place in np.unique(cells):
        here = cells == place
        found.append(((columns[here].mean() + 0.5) / width, (rows[here].mean() + 0.5) / height))
    return found if len(found) <= _RINGS else []


def _densest(mask: np.ndarray) -> Tuple[int, int]:
    """A set pixel where many others are near: the one in the middle of the fullest cell."""
    rows, columns = np.nonzero(mask)
    cells = rows // 32 * (mask.shape[1] // 32 + 1) + columns // 32
    names, counts = np.unique(cells, return_counts=True)
    here = np.flatnonzero(cells == names[counts.argmax()])
    middle = here[len(here) // 2]
    return int(rows[middle]), int(columns[middle])


# ---- colours


def _paint(label: np.ndarray, invalid: np.ndarray, ignored: Iterable[int]) -> np.ndarray:
    painted = palette()[label.astype(np.int64) % 256]
    for value in ignored:
        painted[label == value] = IGNORED
    painted[invalid] = LOUD
    return painted


def palette() -> np.ndarray:
    """256 colours, (256, 3) uint8: neighbours far apart in hue, all darker than what is ignored, none loud."""
    import colorsys

    colours = np.zeros((256, 3), dtype=np.uint8)
    for value in range(256):
        # Golden steps through the hues but magenta, which is for the invalid; lightness in three turns.
        hue = (0.04 + value * 0.618034 % 1.0 * 0.76) % 1.0
        lightness, saturation = ((0.42, 0.48), (0.58, 0.42), (0.30, 0.42))[value % 3]
        colours[value] = [round(255 * part) for part in colorsys.hls_to_rgb(hue, lightness, saturation)]
    return colours


def css_colour(value: int) -> str:
    """The colour of a value, as ``palette`` paints it."""
    red, green, blue = palette()[value % 256].tolist()
    return f'#{red:02x}{green:02x}{blue:02x}'


# ---- encoding


def _encode(pixels: np.ndarray, lossy: bool = False) -> Picture:
    height, width = pixels.shape[:2]
    image = _from_array(np.ascontiguousarray(pixels))
    for form, options in _forms(lossy):
        buffer = io.BytesIO()
        made = image.quantize(256, dither=0) if form == 'PNG' else image
        made.save(buffer, form, **options)
        if buffer.tell() <= MOST_BYTES:
            break
    data = base64.b64encode(buffer.getvalue()).decode('ascii')
    # Markup: a page shortens the texts that it shows.
    return Picture(Markup(f'data:image/{form.lower()};base64,{data}'), width, height, [])


def _forms(lossy: bool) -> Iterable[Tuple[str, dict]]:
    if not lossy:
        yield 'PNG', dict(optimize=True)
    for quality in (82, 60, 35, 15):
        yield 'JPEG', dict(quality=quality, optimize=True, subsampling=0 if quality > 60 else 2)
