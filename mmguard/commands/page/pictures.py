"""Pictures of label maps and boxes for the HTML page; each has a limited size, even if its file is huge."""

from __future__ import annotations

import base64
import colorsys
import io
import math
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from markupsafe import Markup

from mmguard.facts.labels import BoxedImage, DrawnBox
from mmguard.files.images import open_image
from mmguard.formats.files import FILES, read_shown_size
from mmguard.formats.table import LARGEST_SIDE
from mmguard.labels.rules import count_values
from mmguard.text import quantity

#: Number of classes that the legend of a label map names.
_NAMED = 6
#: Length of the longer side of a picture, in pixels.
LONGEST = 640
#: Maximum number of bytes of an encoded picture; the JPEG quality is reduced until a picture fits.
MOST_BYTES = 150_000
#: Color of invalid pixels, which no class has.
LOUD = (255, 0, 170)
IGNORED = (232, 234, 238)
#: Maximum share of invalid pixels at which each is painted as a square, and side of this square.
FEW, _SQUARE = 0.004, 7


@dataclass
class WorstFile:
    """File with many invalid labels that the page draws; if the file cannot be read, the page says why."""

    source: str  #: Displayed name of the file. Any string: names are escaped, and need not be UTF-8.
    label_path: Optional[str] = None  #: Path of the label map.
    image_path: Optional[str] = None
    #: {invalid value *as stored in the file*: pixels or instances}; these pixels are marked.
    values: Dict[int, int] = field(default_factory=dict)
    skipped: int = 0  #: Number of pixels or instances that are skipped because they are invalid.
    reasons: Dict[str, int] = field(default_factory=dict)  #: {reason why instances are invalid: count}.
    ignored: List[int] = field(default_factory=list)  #: Ignored values, as stored in the file.
    boxed: Optional[BoxedImage] = None  #: Image with boxes; ``None`` for a label map.

    @property
    def is_drawn(self) -> bool:
        return self.label_path is not None or self.boxed is not None


class CannotDraw(Exception):
    """Error with the reason why a picture cannot be drawn, as text for the page."""


@dataclass
class Picture:
    """Encoded picture (``data:image/...;base64,...``) with its size in pixels."""

    data: str
    width: int
    height: int


@dataclass
class Panel:
    """Picture with its legend ``keys``, pairs (CSS color or '', meaning); ``why`` tells why a picture is missing."""

    name: str
    picture: Optional[Picture] = None
    why: str = ''
    keys: List[Tuple[str, str]] = field(default_factory=list)
    crisp: bool = False


def build_panels(file: WorstFile) -> List[Panel]:
    """Return the pictures of a file with a label map: its image with the invalid pixels, and the label map."""
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
    panels = [_draw('image,', draw_marks, image, invalid, keys=keys)] if image else []
    if label.dtype.kind == 'f':
        return [*panels, Panel('label map', why=f'expected integers, got {label.dtype} values')]
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
    """Return the picture of an image file, reduced in size."""
    return encode(read_photo(path)[0], lossy=True)


def draw_marks(path: str, invalid: np.ndarray) -> Picture:
    """Return a darkened image in which the pixels of the bool mask ``invalid`` (height, width) are painted."""
    from PIL import Image

    pixels, _ = read_photo(path)
    seen = shrink_mask(invalid)
    if pixels.shape[:2] != seen.shape:  # another rule reports an image of another size
        pixels = np.asarray(Image.fromarray(pixels).resize(seen.shape[::-1]))
    painted = (pixels * 0.55 + 8).astype(np.uint8)
    painted[seen] = LOUD
    return encode(painted, lossy=True)


def draw_label(label: np.ndarray, invalid: np.ndarray, ignored: Iterable[int]) -> Picture:
    """Return the picture of a label map (height, width), with a color per value and invalid pixels in ``LOUD``."""
    small = reduce(label)  # label values cannot be averaged
    painted = build_palette()[small.astype(np.int64) % 256]
    painted[np.isin(small, list(ignored))] = IGNORED
    painted[shrink_mask(invalid)] = LOUD
    return encode(painted)


def read_label(path: str) -> np.ndarray:
    """Return the stored values of a label map, (height, width): the indices of a palette image, or gray values."""
    with _open(path) as image:
        if len(image.getbands()) > 1:
            raise CannotDraw(f'{len(image.getbands())} channels ({image.mode}): colors, not values')
        label = np.asarray(image)
    return label.astype(np.uint8) if label.dtype == np.bool_ else label


def read_photo(path: str) -> Tuple[np.ndarray, Tuple[int, int]]:
    """Return an image, reduced in size and rotated by its EXIF tag, and the height and width before the reduction."""
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
        said = error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotDraw(said.split('\n')[0][:120] or type(error).__name__) from error


def shrink_mask(mask: np.ndarray) -> np.ndarray:
    """Return a smaller mask, in which a pixel is set if any of its original pixels is; dilate a nearly empty mask."""
    from PIL import Image, ImageFilter

    step = _choose_step(*mask.shape)
    padded = np.pad(mask, [(0, -side % step) for side in mask.shape])
    height, width = (side // step for side in padded.shape)
    small = padded.reshape(height, step, width, step).any(axis=(1, 3))
    if mask.mean() > FEW:
        return np.asarray(small)
    return np.asarray(Image.fromarray(small.astype(np.uint8)).filter(ImageFilter.MaxFilter(_SQUARE))) > 0


def reduce(pixels: np.ndarray) -> np.ndarray:
    """Return every nth row and column of an array, so that its longer side is at most ``LONGEST``."""
    step = _choose_step(*pixels.shape[:2])
    return pixels[::step, ::step]


def _choose_step(height: int, width: int) -> int:
    return max(1, -(-max(height, width) // LONGEST))


@lru_cache(maxsize=None)
def build_palette() -> np.ndarray:
    """Return a palette of 256 colors, uint8 (256, 3), without colors similar to ``IGNORED`` and ``LOUD``."""
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


#: Colors of valid boxes, of wrong box edges, and of the area outside of the image.
SOUND, EDGE, OUTSIDE = (40, 140, 255), (255, 214, 0), (206, 210, 217)
#: Color of an image whose file is missing.
_BLANK = (250, 250, 250)
#: Width of an outline and of a marked edge in pixels, and the width that the black border of an edge adds.
_LINE, _MARK, _BORDER = 3, 5, 4
_BLACK = (0, 0, 0)
#: Maximum margin for parts of boxes outside of the image, and space beyond these parts, as shares of the image's side.
_MARGIN, _LEAST = 0.4, 0.06
#: Maximum magnification of a small image, and side in pixels below which a box gets a ring.
_LARGER, _TINY = 8.0, 8


class View(NamedTuple):
    """Drawn region: its left and top in image coordinates, its scale, and the size of the picture in pixels."""

    left: float
    top: float
    scale: float
    width: int
    height: int

    def place(self, x: float, y: float) -> Tuple[int, int]:
        """Return the picture pixel (x, y) of an image point, moved inside so that a mark fits into the picture."""
        room = (_MARK + _BORDER) // 2
        across, down = (x - self.left) * self.scale, (y - self.top) * self.scale
        return (
            round(min(max(across, room), self.width - 1 - room)),
            round(min(max(down, room), self.height - 1 - room)),
        )


def draw_boxes_panel(image: BoxedImage) -> Panel:
    """Return the picture of an image with its boxes, or of a blank canvas with the boxes if the image is missing."""
    pixels: Optional[np.ndarray] = None
    size = _read_size(image.size)
    notes: List[str] = []
    try:
        if not image.path:
            raise CannotDraw('the folder of the images is unknown (--images DIR)')
        pixels, actual = read_photo(image.path)
        if size not in (None, (1, 1), actual):
            notes.append(f'{actual[1]} x {actual[0]}, but {size[1]:g} x {size[0]:g} in the annotations')
        size = actual
    except CannotDraw as error:
        if size in (None, (1, 1)):
            return Panel('boxes', why=f'the size of the image is not known: {error}')
        notes.append(f'without the image: {error}')
    assert size is not None
    height, width = size
    scale = (width, height) * 2 if _read_size(image.size) == (1, 1) else (1.0,) * 4
    boxes = [box._replace(corners=tuple(side * by for side, by in zip(box.corners, scale))) for box in image.boxes]
    finite = [box for box in boxes if all(map(math.isfinite, box.corners))]
    picture = draw_boxes(finite, size, pixels)
    faulty = [box for box in finite if box.fault]
    marked = [box for box in faulty if any(_find_wrong_edges(box.corners, size))]
    keys = [(format_css(SOUND), 'box')] if len(faulty) < len(finite) else []
    keys += [(format_css(LOUD), 'faulty box')] if faulty else []
    keys += [(format_css(EDGE), 'wrong edge')] if marked else []
    if len(finite) < len(image.boxes):
        notes.append(f'{quantity(len(image.boxes) - len(finite), "box")} not finite')
    if image.total > len(image.boxes):
        notes.append(f'{len(image.boxes)} of {image.total:,} boxes')
    return Panel('boxes,', picture, keys=[*keys, *(('', note) for note in notes)])


def _read_size(size: Sequence[float]) -> Optional[Tuple[float, float]]:
    height, width = size
    return (height, width) if all(1 <= side <= LARGEST_SIDE for side in size) else None


def draw_boxes(boxes: Sequence[DrawnBox], size: Tuple[float, float], pixels: Optional[np.ndarray] = None) -> Picture:
    """Return a picture of an image with boxes.

    Args:
        boxes (list[DrawnBox]): Boxes with finite corners; faulty boxes are drawn over valid ones.
        size (tuple[float, float]): Height and width of the image.
        pixels (np.ndarray, optional): uint8 (height, width, 3), the image in any size.
    """
    from PIL import Image, ImageDraw

    height, width = size
    view = _compute_view([box.corners for box in boxes if box.fault], width, height)
    canvas: Any = Image.new('RGB', (view.width, view.height), OUTSIDE)
    first = round(-view.left * view.scale), round(-view.top * view.scale)
    shown = max(1, round(width * view.scale)), max(1, round(height * view.scale))
    if pixels is None:
        canvas.paste(_BLANK, (*first, first[0] + shown[0], first[1] + shown[1]))
    else:
        canvas.paste(Image.fromarray((pixels * 0.8 + 20).astype(np.uint8)).resize(shown), first)
    pen = ImageDraw.Draw(canvas)
    for box in sorted(boxes, key=lambda one: bool(one.fault)):
        draw_outline(pen, view, box.corners, LOUD if box.fault else SOUND)
        if box.fault:
            _mark(pen, view, box.corners, size)
    return encode(np.asarray(canvas), lossy=pixels is not None)


def _compute_view(faulty: Sequence[Sequence[float]], width: float, height: float) -> View:
    """Return a view of the whole image, with a margin on each side at which a faulty box exceeds the image."""
    margins = []
    for axis, side in enumerate((width, height)):
        ends = [end for corners in faulty for end in (corners[axis], corners[axis + 2])]
        for beyond in (-min(ends, default=0.0), max(ends, default=0.0) - side):
            margins.append(min(beyond, _MARGIN * side) + _LEAST * side if beyond > 0 else 0.0)
    left, right, top, bottom = margins
    whole = width + left + right, height + top + bottom
    scale = min(LONGEST / max(whole), _LARGER)
    sides = (max(2 * _TINY, round(side * scale)) for side in whole)
    return View(-left, -top, scale, *sides)


def draw_outline(pen: Any, view: View, corners: Sequence[float], color: Tuple[int, ...]) -> None:
    """Draw the outline of a box, and a ring around a tiny box."""
    left, top, right, bottom = corners
    (a, b), (c, d) = view.place(left, top), view.place(right, bottom)
    if max(abs(c - a), abs(d - b)) < _TINY:
        ring = (min(a, c) - _TINY, min(b, d) - _TINY, max(a, c) + _TINY, max(b, d) + _TINY)
        pen.ellipse(ring, outline=color, width=_LINE)
    for thick, fill in ((_LINE + 2, _BLACK), (_LINE, color)):
        pen.line([(a, b), (c, b), (c, d), (a, d), (a, b)], fill=fill, width=thick)


def _mark(pen: Any, view: View, corners: Sequence[float], size: Tuple[float, float]) -> None:
    left, top, right, bottom = corners
    (a, b), (c, d) = view.place(left, top), view.place(right, bottom)
    edges = ((a, b, a, d), (a, b, c, b), (c, b, c, d), (a, d, c, d))
    for thick, color in ((_MARK + _BORDER, _BLACK), (_MARK, EDGE)):
        for is_wrong, line in zip(_find_wrong_edges(corners, size), edges):
            if is_wrong:
                x, y, *_ = line
                pen.rectangle((x - thick // 2, y - thick // 2, x + thick // 2, y + thick // 2), fill=color)
                pen.line(line, fill=color, width=thick)


def _find_wrong_edges(corners: Sequence[float], size: Tuple[float, float]) -> List[bool]:
    """Return a bool for the left, top, right and bottom edge: True if it is outside of the image or swapped."""
    height, width = size
    left, top, right, bottom = corners
    no_width, no_height = right <= left, bottom <= top
    sides = ((left, width, no_width), (top, height, no_height), (right, width, no_width), (bottom, height, no_height))
    return [is_turned or not 0 <= place <= most for place, most, is_turned in sides]
