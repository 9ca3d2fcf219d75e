"""Reader of a single label map: stored values, loaded values, and positions of invalid pixels."""

from __future__ import annotations

import os
import stat
import warnings
from collections import Counter
from contextlib import suppress
from typing import Any, BinaryIO, Dict, List, Optional, Tuple

import numpy as np

from mmguard.files.images import MOST_DECODED, open_image
from mmguard.formats.faults import EMPTY, NOT_A_FILE, NoLabels, describe_fault
from mmguard.formats.files import FILES, read_shown_size
from mmguard.formats.maps import forms
from mmguard.formats.maps.summary import FEW_FRACTIONS, MapItem, MapRecord
from mmguard.formats.options import DEFAULT_BACKEND, MapSettings
from mmguard.formats.volumes.nifti import open_nifti
from mmguard.formats.volumes.record import FileRecord, count_labels, is_integer
from mmguard.labels.rules import count_values

#: If at most 1 / _FEW of the pixels are invalid, they are inspected one by one; else the whole map is filtered.
_FEW = 16
#: Number of pixels that are counted at once.
_AT_ONCE = 1 << 22


def count_between(label: np.ndarray, invalid: np.ndarray) -> Dict[int, int]:
    """Count pixels of invalid values that have both a lower and a higher value among their eight neighbors.

    Args:
        label (np.ndarray): uint8 (H, W).
        invalid (np.ndarray): bool (256,), True for invalid values. Each invalid value in ``label`` is a key, even if
            its count is 0.

    Example:
        >>> invalid = np.arange(256) == 5
        >>> count_between(np.array([[0, 0, 5, 9, 9], [0, 0, 5, 9, 9]], dtype=np.uint8), invalid)
        {5: 2}
    """
    counts, present = np.zeros((2, 256), np.int64)
    width = label.shape[1]
    rows = max(1, _AT_ONCE // width)
    for top in range(0, len(label), rows):
        first = min(top, 1)  # the band has one more row above and below, which are not counted
        band = label[top - first : top + rows + 1]
        found = np.flatnonzero(_find_invalid(band[first : first + rows].ravel(), invalid)) + first * width
        values = band.ravel()[found]
        present += np.bincount(values, minlength=256)
        if found.size > band.size // _FEW:
            between = _reduce_neighbours(band, np.minimum) < band
            between &= _reduce_neighbours(band, np.maximum) > band
            values = values[between.ravel()[found]]
        elif found.size:
            values = values[_are_between_neighbours(band, found, values)]
        counts += np.bincount(values, minlength=256)
    return {int(value): int(counts[value]) for value in np.flatnonzero(present)}


def _find_invalid(label: np.ndarray, invalid: np.ndarray) -> np.ndarray:
    """Return the mask of invalid pixels, by comparing with a range if possible: a lookup takes several times longer."""
    present = np.flatnonzero(invalid)
    low, high = int(present[0]), int(present[-1])
    if present.size == high - low + 1:
        # Values below wrap around and become large: one comparison checks both ends of the range.
        return (label - np.uint8(low)) <= high - low
    return invalid[label]


def _are_between_neighbours(label: np.ndarray, positions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return bool (N,), True for each position (a flat index) with both a lower and a higher neighbor."""
    height, width = label.shape
    rows, columns = np.divmod(positions, width)
    low = high = values
    for down in (-1, 0, 1):
        row = np.clip(rows + down, 0, height - 1) * width
        for right in (-1, 0, 1):
            neighbour = label.ravel()[row + np.clip(columns + right, 0, width - 1)]
            low, high = np.minimum(low, neighbour), np.maximum(high, neighbour)
    return (low < values) & (high > values)


def _reduce_neighbours(label: np.ndarray, pick: np.ufunc) -> np.ndarray:
    """Return the minimum or maximum (``pick``) over each pixel and its eight neighbors."""
    padded = np.pad(label, 1, mode='edge')
    rows = pick(pick(padded[:-2], padded[1:-1]), padded[2:])
    return pick(pick(rows[:, :-2], rows[:, 1:-1]), rows[:, 2:])


#: Maximum number of distinct values. More values cannot be classes, and only the most frequent ones are kept.
MAX_VALUES = 1024
_MOST_COUNTED = 1 << 16
MAX_COLORS = 256
#: Maximum size of an image, in bytes, that is copied for counting.
_MOST_PACKED = 1 << 26
_HEAD = 16
#: First bytes of TIFF and BigTIFF in either byte order.
_TIFF = (b'II*\0', b'MM\0*', b'II+\0', b'MM\0+')


def read_map(item: MapItem, settings: MapSettings, invalid: np.ndarray) -> MapRecord:
    """Return a record of a label map and of the header of its image, which includes the faults of both files.

    ``invalid`` is ``settings.find_invalid_values()`` as an array, bool (256,).
    """
    record = MapRecord(item.path, image=item.image, backend=settings.backend)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # about large, odd or damaged files: the record reports them
        if item.image is not None:
            _look_at_image(record, item.image)
        head = b''
        try:
            record.fault, length = _check_file(item.path)
            if record.fault:
                return record
            with FILES.open(item.path) as file:
                head = file.read(_HEAD)
                file.seek(0)
                if forms.is_volume_name(os.path.basename(item.path)):
                    _store_volume(record, file)
                    return record
                if forms.is_array_name(os.path.basename(item.path)):
                    stored = forms.read_array(file, length)
                    _store_array(record, stored)
                    if any(invalid[value] for value in record.as_loaded):
                        record.between = count_between(_as_uint8(stored), invalid)
                    return record
                with open_image(file, decodes=True) as image:
                    _check_header(image)
                    label = _read_pixels(record, image, head)
                    if settings.backend != DEFAULT_BACKEND:
                        file.seek(0)
                        label = _ask_decoder(record, file.read(MOST_DECODED))
                    if any(invalid[value] for value in record.as_loaded) and 'colors' not in record.changes:
                        label = np.asarray(image) if label is None else _as_uint8(label)
                        record.between = count_between(label, invalid)
        except Exception as error:  # a decoder may raise anything for damaged bytes
            record.fault = describe_fault(error, head)
            record.detail = str(error)[:200]
    return record


def _check_header(image: Any) -> None:
    """Raise :class:`NoLabels` if an image has CMYK or LAB colors, several pages, or a single row or column."""
    if forms.get_form(image) == 'other':
        raise NoLabels(f'colors ({image.mode})')
    if image.format == 'TIFF':  # a loader reads the first page
        size = image.size
        with suppress(EOFError):
            image.seek(1)
            if image.size == size:  # smaller ones are overviews
                raise NoLabels('several pages')
        image.seek(0)
    if 1 in image.size:
        raise NoLabels('one row or column')  # mmseg's loader drops that axis


def _ask_decoder(record: MapRecord, content: bytes) -> np.ndarray:
    """Decode a file with the loader's own decoder; set ``record.loaded`` if the counts differ from ``record.raw``."""
    from mmcv import imfrombytes

    if content.startswith(b'\x89PNG') and not forms.chunks_fit(content):
        raise OSError('truncated: a PNG chunk is longer than the rest of the file')
    label = imfrombytes(content, flag='unchanged', backend=record.backend)
    if label is None:  # OpenCV cannot decode it
        raise ValueError(f'{record.backend} cannot decode it')
    loaded = count_values(_as_uint8(label))
    record.loaded = None if loaded == record.raw else loaded
    if label.ndim > 2 and 'colors' not in record.changes:
        record.changes.append('colors')
    return label


def _check_file(path: str) -> Tuple[str, int]:
    """Return the fault of a file ('' if it has none) and its size in bytes, without opening the file."""
    held = FILES.get_replacement(path)
    if held is not None:
        return '' if held else EMPTY, len(held)
    status = os.stat(path)
    fault = '' if status.st_size else EMPTY
    if not stat.S_ISREG(status.st_mode):
        fault = NOT_A_FILE  # opening a pipe would block forever
    return fault, status.st_size


def _look_at_image(record: MapRecord, path: str) -> None:
    from PIL import UnidentifiedImageError

    head = b''
    try:
        record.image_fault, _ = _check_file(path)
        if record.image_fault:
            return
        with FILES.open(path) as file:
            if forms.is_volume_name(os.path.basename(path)):
                record.image_form, record.image_shape = 'volume', open_nifti(path, file, 'NibabelIO').shape[1:]
                return
            head = file.read(_HEAD)
            with open_image(file) as image:
                record.image_form = forms.get_form(image)
                record.image_shape = read_shown_size(image)
    except UnidentifiedImageError as error:
        if head.startswith(_TIFF):
            record.image_form = 'other'  # bands or numbers that other loaders read
        else:
            record.image_fault = describe_fault(error, head)
    except Exception as error:  # a decoder may raise anything for damaged bytes
        record.image_fault = describe_fault(error, head)


def _read_pixels(record: MapRecord, image: Any, head: bytes) -> Optional[np.ndarray]:
    """Count stored and decoded values in ``record``. Return the pixels, or ``None`` if counting needed no array."""
    record.form = forms.get_form(image)
    record.shape = (image.size[1], image.size[0])
    record.lossy = forms.is_lossy(image, head)
    scale = forms.get_scale(image)
    image.load()
    if record.form in ('gray8', 'gray4', 'gray2', 'palette8'):
        counts = {value: count for value, count in enumerate(_compute_histogram(image)) if count}
        _store_bytes(record, counts, scale)
        record.is_black = record.form == 'palette8' and len(counts) > 1 and _is_black(image, counts)
    elif record.form in ('bool', 'gray16', 'gray32', 'float'):
        stored = np.asarray(image)
        _store_wide(record, stored)
        return stored
    else:
        _store_colors(record, image)
    return None


def _compute_histogram(image: Any) -> List[int]:
    """Return the histogram of an image of one channel. pillow counts several times faster than numpy."""
    from PIL import Image

    if not 4 <= image.width * image.height <= _MOST_PACKED:
        return list(image.histogram())
    # Count as four separate channels: neighboring labels are mostly equal, and a processor waits for a counter that it
    # has just written.
    data = image.tobytes()
    pixels = len(data) // 4
    packed = Image.frombuffer('CMYK', (pixels, 1), data, 'raw', 'CMYK', 0, 1)
    counts: List[int] = np.reshape(packed.histogram(), (4, 256)).sum(0).tolist()
    for value in data[4 * pixels :]:
        counts[value] += 1
    return counts


def _store_array(record: MapRecord, stored: np.ndarray) -> None:
    """Count the values of an array from a NumPy file. Loaders do not convert its colors or brightness."""
    record.form, record.shape = forms.get_array_form(stored), (stored.shape[0], stored.shape[1])
    if record.form == 'gray8':
        record.raw = count_values(stored.astype(np.uint8))
    else:
        _store_wide(record, stored)


def _store_volume(record: MapRecord, file: BinaryIO) -> None:
    """Count the voxels of a NIfTI file as nibabel reads them."""
    volume, seen = open_nifti(record.path, file, 'NibabelIO'), FileRecord(record.path)
    if volume.form:
        raise NoLabels(volume.form)
    count_labels(volume, seen, ())
    record.form, record.shape = 'volume', volume.shape[1:]
    broken = {value: count for value, count in seen.values.items() if not is_integer(value)}
    for value, count in seen.values.items():
        whole = int(float(value))
        record.raw[whole] = record.raw.get(whole, 0) + count
    record.fractions = dict(list(broken.items())[:FEW_FRACTIONS])
    wrapped = not 0 <= min(record.raw, default=0) <= max(record.raw, default=0) <= 255
    record.changes += ['truncated'] * bool(broken) + ['wrapped'] * wrapped
    record.loaded = _move(record.raw, lambda value: value % 256) if wrapped else None


def _store_bytes(record: MapRecord, counts: Dict[int, int], scale: float) -> None:
    if scale != 1:
        record.raw = _move(counts, lambda value: round(value / scale))
        if record.raw != counts:
            record.loaded = counts
            record.changes.append('scaled')
        return
    record.raw = counts
    if record.form == 'palette8' and record.backend == 'cv2':
        record.changes.append('colors')


def _store_wide(record: MapRecord, stored: np.ndarray) -> None:
    fractions: Counter = Counter()
    raw: Counter = Counter()
    wrapped = False
    flat = stored.reshape(-1)
    for begin in range(0, flat.size, _AT_ONCE):
        part = flat[begin : begin + _AT_ONCE]
        # Cast, not viewed: True is a byte of 255 in pillow's arrays.
        whole = part.astype(np.uint8) if part.dtype == np.bool_ else part
        if record.form == 'float':
            # NaN and numbers beyond 32 bits are not fractions: they often mark unlabeled pixels.
            whole = np.nan_to_num(part, nan=-1.0).clip(-(2.0**31), 2.0**31).astype(np.int64)
            values, counts = np.unique(part[(whole != part) & (np.abs(part) < 2.0**31)], return_counts=True)
            fractions.update(dict(zip(values[:FEW_FRACTIONS].tolist(), counts.tolist())))
        found = count_values(whole, _MOST_COUNTED)
        wrapped = wrapped or not 0 <= min(found) <= max(found) <= 255
        raw.update(found)
        if len(raw) > _MOST_COUNTED:
            raw = Counter(dict(raw.most_common(MAX_VALUES + 1)))
    record.fractions = {f'{value:.6g}': fractions[value] for value in sorted(fractions)[:FEW_FRACTIONS]}
    record.changes += ['truncated'] * bool(fractions) + ['wrapped'] * wrapped
    if fractions or wrapped or len(raw) > MAX_VALUES:
        record.loaded = count_values(_as_uint8(stored))
    elif record.form == 'bool' and record.backend == 'cv2' and 1 in raw:
        record.changes.append('scaled')  # OpenCV does not read single bits: 1 becomes 255
    record.raw = dict(raw)
    if len(raw) > MAX_VALUES:
        record.raw = dict(sorted(raw.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_VALUES])


def _as_uint8(stored: np.ndarray) -> np.ndarray:
    """Return the values cast to uint8, as mmseg's loader does."""
    with np.errstate(invalid='ignore', over='ignore'):
        return stored.astype(np.uint8)


def _store_colors(record: MapRecord, image: Any) -> None:
    """Count the values of all channels: mmseg's loader keeps the channels, so that every element becomes a label."""
    record.changes.append('colors')
    channels = len(image.getbands())
    # Count each band: for a whole LA image pillow 10 counts the gray twice, and never the alpha.
    histogram = [count for band in range(channels) for count in image.getchannel(band).histogram()]
    record.loaded = {}
    for position, count in enumerate(histogram):
        if count:
            value = position % 256
            record.loaded[value] = record.loaded.get(value, 0) + count
    first = histogram[:256]
    if channels == 2 or (first == histogram[256:512] == histogram[512:768] and _is_gray(image)):
        record.raw = {value: count for value, count in enumerate(first) if count}
    if record.form in ('rgb', 'rgba'):
        seen = (image if image.mode == 'RGB' else image.convert('RGB')).getcolors(MAX_COLORS)
        record.colors = {','.join(map(str, rgb)): count for count, rgb in sorted(seen or [], reverse=True)}


def _is_black(image: Any, counts: Dict[int, int]) -> bool:
    """Return True if the palette shows every value in the file as black."""
    palette = image.getpalette() or []
    return not any(part for value in counts for part in palette[3 * value : 3 * value + 3])


def _is_gray(image: Any) -> bool:
    red = np.asarray(image.getchannel(0))
    return all((red == np.asarray(image.getchannel(band))).all() for band in (1, 2))


def _move(counts: Dict[int, int], move: Any) -> Dict[int, int]:
    moved: Dict[int, int] = {}
    for value, count in counts.items():
        target = int(move(value))
        moved[target] = moved.get(target, 0) + count
    return moved
