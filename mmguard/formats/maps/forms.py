"""Pixel formats of label maps (color mode and depth of images, dtype of arrays), and their conversion to 8-bit PNGs."""

from __future__ import annotations

import io
import os
import re
import warnings
from copy import copy
from typing import Any, BinaryIO, Dict, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from mmguard.config.recognition import CHECK_TARGET_ADVICE
from mmguard.files.images import open_image
from mmguard.formats.faults import Counts, Examples, NoLabels, describe_fault
from mmguard.formats.format import Corrected, NotCorrected, Unreadable
from mmguard.formats.maps.summary import FEW_FRACTIONS, MAX_COLORS, MapSummary, as_color
from mmguard.formats.options import Color, FixOptions
from mmguard.labels.rules import LabelRule, apply_label_map, count_values
from mmguard.text import quantity


def chunks_fit(png: bytes) -> bool:
    """Return True if no PNG chunk claims more bytes than the file has; OpenCV would allocate all claimed bytes."""
    place = 8
    while place + 8 <= len(png):
        length, kind = int.from_bytes(png[place : place + 4], 'big'), png[place + 4 : place + 8]
        if place + 8 + length > len(png):
            return False
        if kind == b'IEND':
            break
        place += 12 + length
    return True


_FORMS = {
    '1': 'bool',
    'L': 'gray8',
    'P': 'palette8',
    'LA': 'gray_alpha',
    'La': 'gray_alpha',
    'PA': 'gray_alpha',
    'RGB': 'rgb',
    'RGBX': 'rgba',
    'RGBA': 'rgba',
    'RGBa': 'rgba',
    'I': 'gray32',
    'F': 'float',
}
_LOSSY = ('JPEG', 'MPO', 'JPEG2000')


def get_form(image: Any) -> str:
    """Return the pixel format of an opened image, e.g. ``'gray8'``, or ``'other'`` if it cannot hold labels (CMYK)."""
    mode = image.mode
    if mode.startswith('I;16'):
        return 'gray16'
    if mode == 'L':
        scale = get_scale(image)
        return 'gray4' if scale == 17 else 'gray2' if scale == 85 else 'gray8'
    return _FORMS.get(mode, 'other')


def get_scale(image: Any) -> float:
    """Return the factor by which decoding stretches gray values.

    Decoders stretch the values of gray PNGs of 2 and 4 bits, and of PGMs with a maximum below 255, to 0..255: for
    example, they load the value 3, stored in 4 bits, as 51.
    """
    if image.mode != 'L' or not getattr(image, 'tile', None):
        return 1
    codec, arguments = image.tile[0][0], image.tile[0][3]
    if codec in ('ppm', 'ppm_plain') and isinstance(arguments, tuple) and len(arguments) > 1:
        most = arguments[-1]
        return 255 / most if isinstance(most, int) and 0 < most < 255 else 1
    raw_mode = arguments[0] if isinstance(arguments, tuple) else arguments
    return {'L;4': 17, 'L;2': 85}.get(raw_mode, 1)


def is_lossy(image: Any, head: bytes) -> bool:
    """Return True if an opened image was compressed with loss; ``head`` is the first 16 bytes of its file."""
    if image.format == 'WEBP':
        return head[12:16] != b'VP8L'
    return image.format in _LOSSY


ARRAY_ENDING = '.npy'
VOLUME_ENDINGS = ('.nii', '.nii.gz')
#: Maximum number of bytes of a label map.
_LARGEST_ARRAY = 1 << 29
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def is_array_name(name: str) -> bool:
    return name.lower().endswith(ARRAY_ENDING) and not name.startswith('.')


def is_volume_name(name: str) -> bool:
    return name.lower().endswith(VOLUME_ENDINGS) and not name.startswith('.')


def read_array(file: BinaryIO, size: int) -> np.ndarray:
    """Read a label map, (H, W), of booleans, integers or floats, from a file of ``size`` bytes.

    Raises:
        NoLabels: The file is not damaged, but does not hold a label map.
        Exception: The file is damaged; numpy may raise anything.
    """
    header = _HEADERS.get(np.lib.format.read_magic(file))
    if header is None:
        raise NoLabels('a newer version of .npy')
    shape, in_columns, kind = header(file)
    if kind.hasobject:
        raise NoLabels('array of Python objects (pickled; never loaded)')
    if kind.kind not in 'biuf':
        raise NoLabels('not numeric')
    if len(shape) == 3 and 1 in shape:  # (1, H, W) and (H, W, 1)
        shape = shape[1:] if shape[0] == 1 else shape[:-1]
    if len(shape) == 3:
        channels = min(shape)
        raise NoLabels(f'array ({channels}, H, W)' if shape[0] == channels else f'array (H, W, {channels})')
    if len(shape) != 2:
        raise NoLabels(f'{len(shape)} dimensions')
    if min(shape) <= 1:
        raise NoLabels('one row or column')
    wanted = shape[0] * shape[1] * kind.itemsize
    if wanted > _LARGEST_ARRAY:
        raise MemoryError(f'{wanted:,} bytes')
    data = file.read(wanted) if wanted <= size else b''
    if len(data) < wanted:
        raise OSError(f'truncated: {size:,} bytes cannot hold {shape[0]} x {shape[1]} numbers')
    values = np.frombuffer(data, kind).reshape(shape, order='F' if in_columns else 'C')
    return values.astype(kind.newbyteorder('='), copy=False)


def get_array_form(values: np.ndarray) -> str:
    """Return the pixel format of an array, named as in :func:`get_form`; for integers, it depends on their range."""
    if values.dtype.kind in 'bf':
        return 'bool' if values.dtype.kind == 'b' else 'float'
    if 0 <= values.min() <= values.max() <= 255:
        return 'gray8'
    return 'gray16' if values.dtype.itemsize == 2 else 'gray32'


_ONE_HOT_ADVICE = 'if exactly one channel of each pixel is set, `np.save(path, array.argmax({}))` saves the labels'
#: Pattern of the fault of an undamaged file that is not a label map -> how to convert the file to a label map.
_TO_LABELS = (
    (r'array \(\d+, H, W\)', _ONE_HOT_ADVICE.format('0')),
    (r'array \(H, W, \d+\)', _ONE_HOT_ADVICE.format('-1')),
    (r'\d+ dimensions', 'remove the axes of length 1, `array.squeeze()`'),
    (
        'several pages',
        'save each page as a separate file; if each page is a class, `np.argmax` over the pages gives the labels',
    ),
    ('colors', 'replace each color by the index of its class'),
    ('one row or column', 'give it the height and width of its image, `array.reshape(height, width)`'),
    ('array of Python objects|not numeric', 'save numbers, `np.save(path, label.astype(np.uint8))`'),
    ('a newer version', 'save it with `np.save(path, label)`'),
)


def describe_unread(unreadable: Mapping[str, Examples]) -> str:
    """Return advice on how to convert the unread files to label maps, or '' if a file is missing or damaged."""
    steps = {fault: next((s for start, s in _TO_LABELS if re.match(start, fault)), '') for fault in unreadable}
    if not all(steps.values()):
        return ''
    files = [f'{os.path.basename(unreadable[fault].first[0])}: {fault}; {step}' for fault, step in steps.items()]
    return f'A label map has one label per pixel, (H, W). {". ".join(files)}. Or {CHECK_TARGET_ADVICE}' if files else ''


#: First bytes of a NumPy file.
_NUMPY = b'\x93NUMPY'
#: Number of bytes that distinguish a damaged image from another kind of file.
_HEAD = 16

#: Placeholder label of a color that is not listed.
_UNLISTED = np.iinfo(np.int32).min
#: Largest rounding error of 1 / 255 in 32 bits, times 255.
ROUNDING = 1e-4
_COLORED = ('rgb', 'rgba')


class Stored(NamedTuple):
    """Stored values: the pixels of a file, (H, W) or (H, W, C), or the values counted by a scan, (N,) or (N, 3)."""

    values: np.ndarray
    form: str  #: Pixel format, see :class:`~mmguard.facts.labels.MapFacts`; empty if the files have several.
    scale: float = 1  #: Factor by which decoding stretched the values.
    is_lossy: bool = False
    is_png: bool = False
    rounding: float = ROUNDING  #: Largest distance of a value from an integer.


def correct_map(data: bytes, ending: str, options: FixOptions) -> Corrected:
    """Convert a label map to an 8-bit gray PNG in which every value is a class or ``ignore_index``."""
    assert options.num_classes is not None
    stored = _read(data, bool(options.colors))
    label = _to_labels(stored, options)
    rule = LabelRule(options.num_classes, options.ignore_index, options.on_invalid, options.label_map)
    corrected, tally = rule.sanitize(label)
    changed = {} if corrected is label else count_values(label[label != corrected])
    changes = []
    for raw, count in changed.items():
        (new,) = count_values(corrected[label == raw])
        changes.append(f'{count:,} px of {raw} -> {new}')
    if options.threshold is not None:
        changes.insert(0, f'values above {options.threshold:g} -> 1, the others -> 0')
    elif options.scale is not None:
        changes.insert(0, f'values times {options.scale:g}')
    if stored.form != 'gray8' or not stored.is_png or ending.lower() != '.png':
        changes.append(f'{stored.form} -> 8-bit index PNG')
    if not changes:
        return Corrected(data, ending, [], {}, {})
    low, high = (int(corrected.min()), int(corrected.max())) if corrected.size else (0, 0)
    if low < 0 or high > 255:
        raise NotCorrected(
            f'a label map of 8 bits cannot hold {low if low < 0 else high}: use an --ignore-index of 0..255'
        )
    from PIL import Image  # local: annotation files are corrected without pillow

    file = io.BytesIO()
    Image.fromarray(corrected.astype(np.uint8)).save(file, format='PNG', optimize=False)
    return Corrected(
        file.getvalue(),
        '.png',
        changes,
        {str(value): count for value, count in changed.items()},
        {'skipped': tally.skipped, 'remapped': tally.remapped, 'total': tally.total},
    )


def _read(data: bytes, by_color: bool) -> Stored:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            if data.startswith(_NUMPY):
                array = read_array(io.BytesIO(data), len(data))
                return Stored(array, get_array_form(array))
            with open_image(io.BytesIO(data), decodes=True) as image:
                form, scale = get_form(image), get_scale(image)
                lossy, is_png = is_lossy(image, data[:_HEAD]), image.format == 'PNG'
                image.load()
                array = np.asarray(image.convert('RGB') if by_color and form in _COLORED else image)
                return Stored(array, form, scale, lossy, is_png)
    except Exception as error:  # a decoder may raise anything for damaged bytes
        raise Unreadable(f'cannot be read: {describe_fault(error, data[:_HEAD]) if data else "it is empty"}') from error


def _to_labels(stored: Stored, options: FixOptions) -> np.ndarray:
    """Convert stored values to labels, before ``label_map`` is applied.

    Raises:
        NotCorrected: The values are not labels.
    """
    values, form = stored.values, stored.form
    if options.colors and form in _COLORED and not stored.is_lossy:
        return _look_up_labels(values, options.colors)
    if stored.is_lossy and options.threshold is None:
        raise NotCorrected(
            'compressed with loss (JPEG): the values differ from the drawn labels. Export it again as PNG'
        )
    if options.scale is not None and options.threshold is None:
        values = values * options.scale
    if values.ndim == 3:
        colors = values[..., : 1 if form == 'gray_alpha' else 3]
        if (colors != colors[..., :1]).any():
            raise NotCorrected('stored as colors, not as labels: list the color of each class with --colors')
        values = np.ascontiguousarray(colors[..., 0])
    elif values.dtype.kind == 'f' and options.threshold is None:
        if not (np.isfinite(values).all() and (np.abs(values - np.round(values)) <= stored.rounding).all()):
            raise NotCorrected('stored as fractions (resized, or divided by 255): export the label map again')
        values = np.round(values).clip(-(2.0**31), 2.0**31).astype(np.int64)
    elif values.dtype.kind != 'f' and stored.scale != 1:  # gray of 2 or 4 bits, which decoders stretch to 0..255
        values = np.round(values / stored.scale).astype(np.uint8)
    elif values.dtype == np.bool_:
        values = values.astype(np.uint8)
    return values if options.threshold is None else (values > options.threshold).astype(np.uint8)


def _look_up_labels(rgb: np.ndarray, table: Dict[Color, int]) -> np.ndarray:
    labels = np.full(1 << 24, _UNLISTED, np.int32)
    labels[[red << 16 | green << 8 | blue for red, green, blue in table]] = list(table.values())
    codes = rgb[..., 0].astype(np.int32) << 16 | rgb[..., 1].astype(np.int32) << 8 | rgb[..., 2]
    found = labels[codes]
    unknown = np.unique(codes[found == _UNLISTED]).tolist()
    if unknown:
        first = (unknown[0] >> 16, unknown[0] >> 8 & 255, unknown[0] & 255)
        raise NotCorrected(f'no label is listed for {quantity(len(unknown), "color")}, the first is {first}')
    return found


def predict_counts(summary: MapSummary, options: FixOptions) -> Optional[MapSummary]:
    """Return the counts that a scan of the corrected copies would give, or ``None`` if they are not certain.

    Invalid values that no option maps are counted as they are, although `mmguard fix` changes them.
    """
    if 'volume' in summary.forms:
        return None
    counts = Counts()
    try:
        for stored, numbers in _list_stored(summary, options):
            for label, number in zip(_to_labels(stored, options).tolist(), numbers):
                if number:
                    counts.add(apply_label_map(options.label_map, label, options.ignore_index), number)
    except NotCorrected:
        return None
    if any(not 0 <= value <= 255 for value in counts):
        return None
    other = copy(summary)
    for name in _OF_FORMS:
        setattr(other, name, type(getattr(summary, name))())
    other.raw = other.loaded = counts
    for value, files in summary.files_with.items():
        new = options.map_label(value)
        other.files_with[new] = max(files, other.files_with.get(new, 0))
    other.forms.add('gray8', sum(summary.forms.values()))
    return other


#: Fields of a summary that are empty after a correction.
_OF_FORMS = (
    'files_with', 'lossy', 'gray_in_color', 'black_palettes', 'uncounted', 'invalid_looked_at', 'invalid_between',
    'changes', 'fractions', 'colors', 'forms', 'form_examples', 'examples', 'all_void',
)  # fmt: skip


def _list_stored(summary: MapSummary, options: FixOptions) -> List[Tuple[Stored, List[int]]]:
    """Return pairs of stored values of all files and the numbers of pixels with these values.

    Raises:
        NotCorrected: The counts of a scan do not determine the stored values.
    """
    values: Dict[float, int] = dict(summary.raw.items())
    colored = sum(summary.forms.get(form, 0) for form in _COLORED)
    is_color = colored == sum(summary.forms.values())
    found: List[Tuple[Stored, List[int]]] = []
    known = not summary.lossy or options.threshold is not None
    if summary.fractions or options.scale is not None:
        known &= options.scale is not None and len(summary.fractions) < FEW_FRACTIONS and {*summary.forms} == {'float'}
        for text, count in summary.fractions.items():
            truncated = int(float(text))  # where the fraction was counted
            values[truncated] = values.get(truncated, 0) - count
            values[float(text)] = count
    elif options.colors:
        # In a mixed folder, gray and color values can be separated only if no color is gray.
        known &= not summary.uncounted and len(summary.colors) < MAX_COLORS and (is_color or not summary.gray_in_color)
        colors = np.array([*map(as_color, summary.colors)], np.uint8).reshape(-1, 3)
        found.append((Stored(colors, 'rgb'), [*summary.colors.values()]))
    else:
        known &= colored + summary.forms.get('gray_alpha', 0) == summary.gray_in_color
    if not known:
        raise NotCorrected('the counts of a scan do not determine the stored values')
    if not found or not is_color:
        # Fractions are recorded with six digits.
        grays = Stored(np.array([*values]), '', rounding=1e-5 * (options.scale or 1))
        found.append((grays, [*values.values()]))
    return found


def name_of_copy(path: str) -> str:
    """Return the path of a label map with the ending .png, as `mmguard fix` names its copy."""
    stem, ending = os.path.splitext(path)
    return path if ending.lower() == '.png' else f'{stem}.png'
