"""Reads one label map: as it is stored, and as the framework's loader would return it."""

from __future__ import annotations

import os
import stat
import warnings
from functools import lru_cache
from typing import Any, Dict, Optional, Tuple

import numpy as np

from mmguard.labels import value_counts
from mmguard.scan.edges import count_between
from mmguard.scan.faults import EMPTY, NOT_A_FILE, fault_of
from mmguard.scan.forms import form_of, is_lossy, scale_of
from mmguard.scan.record import MapItem, MapRecord, Stamp
from mmguard.scan.settings import MapSettings

#: Only plain rasters: pillow would start Ghostscript for an EPS that is named .png.
_FORMATS = ('PNG', 'JPEG', 'BMP', 'TIFF', 'GIF', 'WEBP', 'PPM', 'TGA', 'JPEG2000')
#: More distinct values than this are no classes; the most frequent ones are kept.
MAX_VALUES = 1024
MAX_COLOURS = 256
FEW_FRACTIONS = 16
_EXIF_ORIENTATION = 0x0112
_TURNED = (5, 6, 7, 8)
_HEAD = 16


def stamp_of(path: str) -> Optional[Stamp]:
    """Size and time of change; ``None`` where there is no such file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=None)
def _known_formats() -> Tuple[str, ...]:
    """The formats that this build of pillow can read."""
    from PIL import Image  # not at the top: annotation files are scanned without pillow

    Image.init()
    return tuple(name for name in _FORMATS if name in Image.OPEN)


def read_map(item: MapItem, settings: MapSettings, invalid: np.ndarray) -> MapRecord:
    """Reads a label map, and the header of its image. Whatever is wrong with them is told in the record.

    Args:
        item (MapItem): The files.
        settings (MapSettings): How the labels are loaded.
        invalid (np.ndarray): bool (256,), ``settings.invalid_values()``.
    """
    from PIL import Image

    record = MapRecord(item.path, image=item.image, backend=settings.backend)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of large, odd or damaged files: they are told in the record
        if item.image is not None:
            _look_at_image(record)
        head = b''
        try:
            status = os.stat(item.path)
            record.stamp = (status.st_size, status.st_mtime_ns)
            record.fault = _fault_of_status(status)
            if record.fault:
                return record
            with open(item.path, 'rb') as file:
                head = file.read(_HEAD)
                file.seek(0)
                with Image.open(file, formats=_known_formats()) as image:
                    _read_pixels(record, image, head, invalid)
        except Exception as error:  # a decoder fed with damaged bytes raises what it likes
            record.fault = fault_of(error, head)
            record.detail = str(error)[:200]
    return record


def _fault_of_status(status: os.stat_result) -> str:
    if not stat.S_ISREG(status.st_mode):
        return NOT_A_FILE  # opening a pipe would wait for ever
    return '' if status.st_size else EMPTY


def _look_at_image(record: MapRecord) -> None:
    from PIL import Image

    head = b''
    assert record.image is not None
    try:
        status = os.stat(record.image)
        record.image_stamp = (status.st_size, status.st_mtime_ns)
        record.image_fault = _fault_of_status(status)
        if record.image_fault:
            return
        with open(record.image, 'rb') as file:
            head = file.read(_HEAD)
            file.seek(0)
            with Image.open(file, formats=_known_formats()) as image:
                record.image_form = form_of(image)
                record.image_lossy = is_lossy(image, head)
                width, height = image.size
                turned = image.format in ('JPEG', 'MPO') and image.getexif().get(_EXIF_ORIENTATION) in _TURNED
                record.image_shape = (width, height) if turned else (height, width)
    except Exception as error:  # as above
        record.image_fault = fault_of(error, head)


def _read_pixels(record: MapRecord, image: Any, head: bytes, invalid: np.ndarray) -> None:
    record.form = form_of(image)
    record.shape = (image.size[1], image.size[0])
    record.lossy = is_lossy(image, head)
    scale = scale_of(image)
    image.load()
    if record.form in ('gray8', 'gray4', 'gray2', 'palette8'):
        # Pillow counts these itself, several times faster than numpy does.
        counts = {value: count for value, count in enumerate(image.histogram()) if count}
        _store_bytes(record, counts, scale, image)
        stored = None
    elif record.form in ('bool', 'gray16', 'gray32', 'float'):
        stored = np.asarray(image)
        _store_wide(record, stored)
    else:
        _store_colours(record, image)
        return
    if any(invalid[value] for value in record.as_loaded) and 'colours' not in record.changes:
        label = np.asarray(image) if stored is None else _as_uint8(stored)
        record.between = count_between(label, invalid)


def _store_bytes(record: MapRecord, counts: Dict[int, int], scale: float, image: Any) -> None:
    if scale != 1:
        record.raw = _moved(counts, lambda value: round(value / scale))
        if record.raw != counts:
            record.loaded = counts
            record.changes.append('scaled')
        return
    record.raw = counts
    if record.form == 'palette8' and record.backend == 'cv2':
        record.changes.append('colours')
        colours = _palette_of(image)
        record.loaded = {}
        for index, count in counts.items():
            for channel in colours[index]:
                record.loaded[channel] = record.loaded.get(channel, 0) + count


def _palette_of(image: Any) -> Dict[int, Tuple[int, ...]]:
    flat = image.getpalette('RGB') or []
    flat += [0] * (768 - len(flat))
    return {index: tuple(flat[3 * index : 3 * index + 3]) for index in range(256)}


def _store_wide(record: MapRecord, stored: np.ndarray) -> None:
    truncated = False
    if record.form == 'float':
        whole = np.nan_to_num(stored, nan=-1.0, posinf=2.0**31, neginf=-(2.0**31)).astype(np.int64)
        cut = stored[whole != stored]
        truncated = bool(cut.size)
        if truncated:
            values, counts = np.unique(cut[np.isfinite(cut)], return_counts=True)
            record.fractions = {f'{value:.6g}': int(n) for value, n in zip(values[:FEW_FRACTIONS], counts)}
        raw = value_counts(whole)
    else:
        # Cast, not viewed: True is a byte of 255 in pillow's arrays.
        raw = value_counts(stored.astype(np.uint8) if stored.dtype == np.bool_ else stored)
    wrapped = bool(raw) and not 0 <= min(raw) <= max(raw) <= 255
    record.changes += ['truncated'] * truncated + ['wrapped'] * wrapped
    if truncated or wrapped or len(raw) > MAX_VALUES:
        record.loaded = value_counts(_as_uint8(stored))
    elif record.form == 'bool' and record.backend == 'cv2' and 1 in raw:
        record.loaded = _moved(raw, lambda value: 255 * value)  # OpenCV has no bits: 1 becomes 255
        record.changes.append('scaled')
    if len(raw) > MAX_VALUES:
        raw = dict(sorted(raw.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_VALUES])
        record.raw_cut = True
    record.raw = raw


def _as_uint8(stored: np.ndarray) -> np.ndarray:
    """The cast of mmseg's loader."""
    with np.errstate(invalid='ignore', over='ignore'):
        return stored.astype(np.uint8)


def _store_colours(record: MapRecord, image: Any) -> None:
    """Files of several channels: mmseg's loader keeps the channels, every element becomes a label."""
    record.changes.append('colours')
    channels = len(image.getbands())
    histogram = image.histogram()
    record.loaded = {}
    for position, count in enumerate(histogram):
        if count:
            value = position % 256
            record.loaded[value] = record.loaded.get(value, 0) + count
    first = histogram[:256]
    if channels == 2 or (first == histogram[256:512] == histogram[512:768] and _is_gray(image)):
        record.raw = {value: count for value, count in enumerate(first) if count}
    if record.form in ('rgb', 'rgba'):
        seen = (image if image.mode == 'RGB' else image.convert('RGB')).getcolors(MAX_COLOURS)
        record.colours = {','.join(map(str, rgb)): count for count, rgb in sorted(seen or [], reverse=True)}


def _is_gray(image: Any) -> bool:
    bands = np.asarray(image)
    return bool((bands[..., 0] == bands[..., 1]).all() and (bands[..., 0] == bands[..., 2]).all())


def _moved(counts: Dict[int, int], move: Any) -> Dict[int, int]:
    moved: Dict[int, int] = {}
    for value, count in counts.items():
        target = int(move(value))
        moved[target] = moved.get(target, 0) + count
    return moved
