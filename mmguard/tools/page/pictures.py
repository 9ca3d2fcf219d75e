"""Pictures of label maps and their images for the page, of bounded size for a file of any size."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple

import numpy as np
from markupsafe import Markup

from mmguard.labels.space import value_counts
from mmguard.storage.files import FILES
from mmguard.tools.page.sections import WorstFile

#: Number of classes that the key of a label map names.
_NAMED = 6
#: Length of the longer side of a picture, in pixels.
LONGEST = 640
#: Maximum number of bytes of an encoded picture; a picture of noise is encoded more coarsely until it fits.
MOST_BYTES = 150_000
#: Maximum number of pixels of a file that is decoded for a picture.
MOST_PIXELS = 120_000_000
#: Colour of invalid pixels; no class has it.
LOUD = (255, 0, 170)
IGNORED = (232, 234, 238)
#: Up to this share of invalid pixels, each is painted as a square of this side, so that it is visible.
FEW, _SQUARE = 0.004, 7


@dataclass
class Panel:
    """A picture, or the reason why it cannot be drawn, with its key: (colour or nothing, meaning)."""

    name: str
    picture: Optional[Picture] = None
    why: str = ''
    keys: List[Tuple[str, str]] = field(default_factory=list)
    crisp: bool = False


def panels_of(file: WorstFile, ignore_index: Optional[int]) -> List[Panel]:
    """Return the pictures of a file with a label map; ``ignore_index`` is used if the file has no ignored values."""
    image, stored = file.image_path, file.label_path
    assert stored is not None
    try:
        label = read_label(stored)
    except CannotDraw as error:
        why = str(error)
        plain = _drawn('label map', lambda: Panel(f'label file: {why}', photo(stored)))
        image_alone = [_drawn('image', lambda: Panel('image', photo(image)))] if image else []
        return [*image_alone, replace(plain, why=why)]
    invalid = np.isin(label, list(file.values))
    panels = []
    if image is not None:
        keys = [(_rgb(LOUD), 'invalid pixels')]
        panels = [_drawn('image', lambda: Panel('image,', marked_photo(image, label, invalid), keys=keys))]
    if label.dtype.kind == 'f':
        return [*panels, Panel('label map', why=f'{label.dtype} values: a label map holds integers')]
    ignored = file.ignored
    if ignored is None:
        ignored = [] if ignore_index is None else [ignore_index]
    panels.append(Panel('label', coloured(label, invalid, ignored), keys=_keys(label, file, ignored), crisp=True))
    return panels


def _drawn(name: str, draw: Callable[[], Panel]) -> Panel:
    try:
        return draw()
    except CannotDraw as error:
        return Panel(name, why=str(error))


def _keys(label: np.ndarray, file: WorstFile, ignored: Sequence[int]) -> List[Tuple[str, str]]:
    counts = value_counts(label)
    common = sorted(counts, key=lambda value: -counts[value])
    classes = [value for value in common if value not in file.values and value not in ignored]
    keys = [(css_colour(value), str(value)) for value in classes[:_NAMED]]
    if len(classes) > _NAMED:
        keys.append(('', f'{len(classes) - _NAMED} more'))
    if any(value in counts for value in ignored):
        keys.append((_rgb(IGNORED), 'ignored'))
    return [*keys, (_rgb(LOUD), 'invalid')] if file.values else keys


def _rgb(colour: Tuple[int, int, int]) -> str:
    return 'rgb({},{},{})'.format(*colour)


class CannotDraw(Exception):
    """Reason why a picture cannot be drawn, as text for the page."""


@dataclass
class Picture:
    """Encoded picture (``data:image/...;base64,...``) with its size in pixels."""

    data: str
    width: int
    height: int


def photo(path: str) -> Picture:
    """Return the image, reduced in size."""
    return _encode(_read_photo(path), lossy=True)


def marked_photo(path: str, label: np.ndarray, invalid: np.ndarray) -> Picture:
    """Return the image, darkened, with the invalid pixels, (height, width) of its label map, painted over it."""
    from PIL import Image

    pixels = _read_photo(path)
    height, width = shrunk_size(*label.shape)
    if pixels.shape[:2] != (height, width):  # another rule reports an image of another size
        pixels = np.asarray(Image.fromarray(pixels).resize((width, height)))
    painted = (pixels * 0.55 + 8).astype(np.uint8)
    seen = shrunk_mask(invalid)
    painted[seen] = LOUD
    return _encode(painted, lossy=True)


def coloured(label: np.ndarray, invalid: np.ndarray, ignored: Iterable[int]) -> Picture:
    """Return a label map, (height, width), one colour per value: ignored values pale, invalid pixels in ``LOUD``."""
    small = shrunk(label)
    painted = palette()[small.astype(np.int64) % 256]
    for value in ignored:
        painted[small == value] = IGNORED
    painted[shrunk_mask(invalid)] = LOUD
    return _encode(painted)


def read_label(path: str) -> np.ndarray:
    """Return the values of a label map as stored, (height, width); of a palette, its indices."""
    image = _open(path)
    if len(image.getbands()) > 1:
        raise CannotDraw(f'{len(image.getbands())} channels ({image.mode}): colours, not values')
    label = np.asarray(image)
    values: np.ndarray = label.astype(np.uint8) if label.dtype == np.bool_ else label
    return values


def _read_photo(path: str) -> np.ndarray:
    image = _open(path)
    height, width = shrunk_size(image.size[1], image.size[0])
    try:
        image.draft('RGB', (width, height))  # a JPEG is decoded at an eighth of its size
        if image.mode.startswith('I') or image.mode == 'F':
            depth = np.nan_to_num(np.asarray(image).astype(np.float64), posinf=0, neginf=0)
            top = float(depth.max()) or 1.0
            image = _from_array((depth * (255 / top)).clip(0, 255).astype(np.uint8))
        return np.asarray(image.convert('RGB').resize((width, height)))
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
    except Exception as error:  # damaged and hostile files may raise anything
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
    """Return every n-th pixel: label values cannot be averaged."""
    step = _step(*label.shape)
    return label[::step, ::step]


def shrunk_mask(mask: np.ndarray) -> np.ndarray:
    """Return a reduced mask: a pixel is set if any that it represents is, and also around it if few are set."""
    from PIL import ImageFilter

    step = _step(*mask.shape)
    height, width = shrunk_size(*mask.shape)
    padded = np.zeros((height * step, width * step), dtype=bool)
    padded[: mask.shape[0], : mask.shape[1]] = mask
    small = np.asarray(padded.reshape(height, step, width, step).any(axis=(1, 3)))
    if mask.mean() > FEW:
        return small
    return np.asarray(_from_array(small.astype(np.uint8)).filter(ImageFilter.MaxFilter(_SQUARE))) > 0


def _step(height: int, width: int) -> int:
    return max(1, -(-max(height, width) // LONGEST))


# ---- colours


def palette() -> np.ndarray:
    """Return 256 colours, (256, 3) uint8: neighbours far apart in hue, all darker than the ignored one, none like
    ``LOUD``."""
    import colorsys

    colours = np.zeros((256, 3), dtype=np.uint8)
    for value in range(256):
        # Golden-ratio steps through the hues except magenta, which marks invalid pixels; lightness in three turns.
        hue = (0.04 + value * 0.618034 % 1.0 * 0.76) % 1.0
        lightness, saturation = ((0.42, 0.48), (0.58, 0.42), (0.30, 0.42))[value % 3]
        colours[value] = [round(255 * part) for part in colorsys.hls_to_rgb(hue, lightness, saturation)]
    return colours


def css_colour(value: int) -> str:
    """Return the colour of a value as in ``palette``, for CSS."""
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
    # Markup, because a page shortens plain texts.
    return Picture(Markup(f'data:image/{form.lower()};base64,{data}'), width, height)


def _forms(lossy: bool) -> Iterable[Tuple[str, dict]]:
    if not lossy:
        yield 'PNG', dict(optimize=True)
    for quality in (82, 60, 35, 15):
        yield 'JPEG', dict(quality=quality, optimize=True, subsampling=0 if quality > 60 else 2)
