"""Pictures of label maps and their images for the page, of bounded size for a file of any size."""

from __future__ import annotations

import base64
import colorsys
import io
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from markupsafe import Markup

from mmguard.facts.labels import BoxedImage
from mmguard.files.images import open_image
from mmguard.formats.files import FILES, read_shown_size
from mmguard.labels.rules import count_values

#: Number of classes that the key of a label map names.
_NAMED = 6
#: Length of the longer side of a picture, in pixels.
LONGEST = 640
#: Maximum number of bytes of an encoded picture; a picture of noise is encoded more coarsely until it fits.
MOST_BYTES = 150_000
#: Color of invalid pixels; no class has it.
LOUD = (255, 0, 170)
IGNORED = (232, 234, 238)
#: Up to this share of invalid pixels, each is painted as a square of this side, so that it is visible.
FEW, _SQUARE = 0.004, 7


@dataclass
class WorstFile:
    """File with many invalid labels, for a picture drawn from its paths; a file that cannot be read is named instead.

    Args:
        source (str): Its name, as shown. Any string: names are escaped, and need not be UTF-8.
        label_path (str, optional): The label map on disk.
        image_path (str, optional): Its image.
        values (dict[int, int]): Invalid value *as stored in the file* -> pixels or instances. These are the pixels that
            are marked.
        skipped (int): Pixels or instances that are not trained on because they are invalid.
        reasons (dict[str, int]): For instances, reason why they are invalid -> count.
        ignored (list[int]): Values as stored that count as ignored.
        boxed (BoxedImage, optional): Its boxes, and its image.
    """

    source: str
    label_path: Optional[str] = None
    image_path: Optional[str] = None
    values: Dict[int, int] = field(default_factory=dict)
    skipped: int = 0
    reasons: Dict[str, int] = field(default_factory=dict)
    ignored: List[int] = field(default_factory=list)
    boxed: Optional[BoxedImage] = None

    @property
    def is_drawn(self) -> bool:
        return self.label_path is not None or self.boxed is not None


class CannotDraw(Exception):
    """Reason why a picture cannot be drawn, as text for the page."""


@dataclass
class Picture:
    """Encoded picture (``data:image/...;base64,...``) with its size in pixels."""

    data: str
    width: int
    height: int


@dataclass
class Panel:
    """A picture, or the reason why it cannot be drawn, with its key: (color or nothing, meaning)."""

    name: str
    picture: Optional[Picture] = None
    why: str = ''
    keys: List[Tuple[str, str]] = field(default_factory=list)
    crisp: bool = False


def build_panels(file: WorstFile) -> List[Panel]:
    """Return the pictures of a file with a label map."""
    image, stored = file.image_path, file.label_path
    assert stored is not None
    try:
        label = read_label(stored)
    except CannotDraw as error:
        panels = [_draw('image', draw_photo, image)] if image else []
        return [*panels, _draw(f'label file: {error}', draw_photo, stored, why=str(error))]
    # In parts: isin takes ten times the memory of its labels.
    parts = np.array_split(label, len(label) // 256 + 1)
    invalid = np.concatenate([np.isin(part, list(file.values)) for part in parts])
    keys = [(format_css(LOUD), 'invalid pixels')]
    panels = [_draw('image,', draw_marks, image, label, invalid, keys=keys)] if image else []
    if label.dtype.kind == 'f':
        return [*panels, Panel('label map', why=f'{label.dtype} values: a label map holds integers')]
    keys = _build_keys(label, file)
    return [*panels, _draw('label', draw_label, label, invalid, file.ignored, keys=keys, crisp=True)]


def _draw(name: str, draw: Callable[..., Picture], *args: Any, **more: Any) -> Panel:
    try:
        return Panel(name, draw(*args), **more)
    except CannotDraw as error:
        return Panel(name.rstrip(','), why=str(error))


def _build_keys(label: np.ndarray, file: WorstFile) -> List[Tuple[str, str]]:
    counts = count_values(label)
    common = sorted(counts, key=lambda value: -counts[value])
    classes = [value for value in common if value not in file.values and value not in file.ignored]
    keys = [(format_css(build_palette()[value % 256].tolist()), str(value)) for value in classes[:_NAMED]]
    if len(classes) > _NAMED:
        keys.append(('', f'{len(classes) - _NAMED} more'))
    if any(value in counts for value in file.ignored):
        keys.append((format_css(IGNORED), 'ignored'))
    return [*keys, (format_css(LOUD), 'invalid')] if file.values else keys


def format_css(color: Sequence[int]) -> str:
    return 'rgb({},{},{})'.format(*color)


def draw_photo(path: str) -> Picture:
    """Return the image, reduced in size."""
    return encode(read_photo(path)[0], lossy=True)


def draw_marks(path: str, label: np.ndarray, invalid: np.ndarray) -> Picture:
    """Return the image, darkened, with the invalid pixels, (height, width) of its label map, painted over it."""
    from PIL import Image

    pixels, _ = read_photo(path)
    seen = shrink_mask(invalid)
    if pixels.shape[:2] != seen.shape:  # another rule reports an image of another size
        pixels = np.asarray(Image.fromarray(pixels).resize(seen.shape[::-1]))
    painted = (pixels * 0.55 + 8).astype(np.uint8)
    painted[seen] = LOUD
    return encode(painted, lossy=True)


def draw_label(label: np.ndarray, invalid: np.ndarray, ignored: Iterable[int]) -> Picture:
    """Return a label map, (height, width), one color per value: ignored values pale, invalid pixels in ``LOUD``."""
    small = reduce(label)  # label values cannot be averaged
    painted = build_palette()[small.astype(np.int64) % 256]
    painted[np.isin(small, list(ignored))] = IGNORED
    painted[shrink_mask(invalid)] = LOUD
    return encode(painted)


def read_label(path: str) -> np.ndarray:
    """Return the values of a label map as stored, (height, width); of a palette, its indices."""
    with _open(path) as image:
        if len(image.getbands()) > 1:
            raise CannotDraw(f'{len(image.getbands())} channels ({image.mode}): colors, not values')
        label = np.asarray(image)
    return label.astype(np.uint8) if label.dtype == np.bool_ else label


def read_photo(path: str) -> Tuple[np.ndarray, Tuple[int, int]]:
    """Return an image, reduced in size and turned as its EXIF tag says, and its height and width."""
    from PIL import Image, ImageOps

    with _open(path) as image:
        step = _choose_step(*image.size)
        size = -(-image.size[0] // step), -(-image.size[1] // step)
        full = read_shown_size(image)
        image.draft('RGB', size)  # a JPEG is decoded at an eighth of its size
        if image.mode.startswith('I') or image.mode == 'F':
            depth = np.nan_to_num(np.asarray(image).astype(np.float64), posinf=0, neginf=0)
            image = Image.fromarray((depth * (255 / (depth.max() or 1.0))).clip(0, 255).astype(np.uint8))
        small = image.convert('RGB').resize(size)
        return np.asarray(ImageOps.exif_transpose(small)), full


@contextmanager
def _open(path: str) -> Iterator[Any]:
    try:
        with FILES.open(path) as file, open_image(file, decodes=True) as image:
            yield image
    except CannotDraw:
        raise
    except Exception as error:  # damaged and hostile files may raise anything
        raise CannotDraw(_describe(error)) from error


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error).split('\n')[0][:120] or type(error).__name__


def shrink_mask(mask: np.ndarray) -> np.ndarray:
    """Return a reduced mask: a pixel is set if any that it represents is, and also around it if few are set."""
    from PIL import Image, ImageFilter

    step = _choose_step(*mask.shape)
    padded = np.pad(mask, [(0, -side % step) for side in mask.shape])
    height, width = (side // step for side in padded.shape)
    small = padded.reshape(height, step, width, step).any(axis=(1, 3))
    if mask.mean() > FEW:
        return np.asarray(small)
    return np.asarray(Image.fromarray(small.astype(np.uint8)).filter(ImageFilter.MaxFilter(_SQUARE))) > 0


def reduce(pixels: np.ndarray) -> np.ndarray:
    """Return every nth row and column of an array, so that its longer side has at most ``LONGEST`` pixels."""
    step = _choose_step(*pixels.shape[:2])
    return pixels[::step, ::step]


def _choose_step(height: int, width: int) -> int:
    return max(1, -(-max(height, width) // LONGEST))


@lru_cache(maxsize=None)
def build_palette() -> np.ndarray:
    """Return 256 colors, (256, 3) uint8: neighbors differ in hue, all are darker than ``IGNORED``, none is ``LOUD``."""
    colors = []
    for value in range(256):
        # Golden-ratio steps through the hues except magenta, which marks invalid pixels; lightness in three turns.
        hue = (0.04 + value * 0.618034 % 1.0 * 0.76) % 1.0
        lightness, saturation = ((0.42, 0.48), (0.58, 0.42), (0.30, 0.42))[value % 3]
        colors.append([round(255 * part) for part in colorsys.hls_to_rgb(hue, lightness, saturation)])
    return np.array(colors, dtype=np.uint8)


def encode(pixels: np.ndarray, lossy: bool = False) -> Picture:
    from PIL import Image

    image: Any = Image.fromarray(np.ascontiguousarray(pixels))
    forms: List[Tuple[str, Dict[str, Any]]] = [] if lossy else [('PNG', {})]
    forms += [('JPEG', dict(quality=quality, subsampling=0)) for quality in (82, 60, 35, 15)]
    for form, options in forms:
        buffer = io.BytesIO()
        made = image.quantize(256, dither=0) if form == 'PNG' else image
        made.save(buffer, form, optimize=form == 'PNG', **options)  # optimizing a JPEG of noise fails
        if buffer.tell() <= MOST_BYTES:
            break
    data = base64.b64encode(buffer.getvalue()).decode('ascii')
    # Markup, because a page shortens plain texts.
    return Picture(Markup(f'data:image/{form.lower()};base64,{data}'), *image.size)
