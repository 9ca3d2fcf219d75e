"""Storage forms of label maps: images as described by pillow, NumPy arrays (.npy, never unpickled)."""

from __future__ import annotations

import os
import re
from typing import Any, BinaryIO, Mapping

import numpy as np

from mmguard.config.recognition import CHECK_TARGET_ADVICE
from mmguard.formats.faults import Examples, NoLabels


def chunks_fit(png: bytes) -> bool:
    """Return True if no PNG chunk claims more bytes than the file has: OpenCV would allocate gigabytes for it."""
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
    """Return the form of an opened file, ``'gray8'``; ``'other'`` for one that never holds labels (CMYK, LAB)."""
    mode = image.mode
    if mode.startswith('I;16'):
        return 'gray16'
    if mode == 'L':
        scale = get_scale(image)
        return 'gray4' if scale == 17 else 'gray2' if scale == 85 else 'gray8'
    return _FORMS.get(mode, 'other')


def get_scale(image: Any) -> float:
    """Return the factor by which decoding stretches gray values.

    Decoders stretch gray PNGs of 2 and 4 bits, and PGMs with a smaller maximum, over 0 to 255: a stored 3 of 4 bits
    is loaded as 51.
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
    """Return True if an opened file was compressed with loss; ``head`` is its first 16 bytes."""
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
    """Read a label map, (H, W), of booleans, integers or fractions, from a file of ``size`` bytes.

    Raises:
        NoLabels: The file holds something else.
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
    """Return the form of an array, named as in :func:`get_form`, by its values: numpy's integers are wide by
    default."""
    if values.dtype.kind in 'bf':
        return 'bool' if values.dtype.kind == 'b' else 'float'
    if 0 <= values.min() <= values.max() <= 255:
        return 'gray8'
    return 'gray16' if values.dtype.itemsize == 2 else 'gray32'


_ONE_HOT_ADVICE = 'if one channel of each pixel is set, `np.save(path, array.argmax({}))` converts it to labels'
#: Beginning of the fault of an undamaged file that is not a label map -> how to convert the file to one.
_TO_LABELS = (
    (r'array \(\d+, H, W\)', _ONE_HOT_ADVICE.format('0')),
    (r'array \(H, W, \d+\)', _ONE_HOT_ADVICE.format('-1')),
    (r'\d+ dimensions', 'remove the axes of length 1, `array.squeeze()`'),
    (
        'several pages',
        'save each page as a file of its own; if a page is a class, `np.argmax` over the pages converts them to labels',
    ),
    ('colors', 'look each color up in the table of its class'),
    ('one row or column', 'give it the shape of its image, `array.reshape(height, width)`'),
    ('array of Python objects|not numeric', 'save numbers, `np.save(path, label.astype(np.uint8))`'),
    ('a newer version', 'save it with `np.save(path, label)`'),
)


def describe_unread(unreadable: Mapping[str, Examples]) -> str:
    """Suggest how to convert the unread files to label maps; empty if a file is missing or damaged."""
    steps = {fault: next((s for start, s in _TO_LABELS if re.match(start, fault)), '') for fault in unreadable}
    if not all(steps.values()):
        return ''
    files = [f'{os.path.basename(unreadable[fault].first[0])}: {fault}; {step}' for fault, step in steps.items()]
    return f'A label map has one label per pixel, (H, W). {". ".join(files)}. Or {CHECK_TARGET_ADVICE}' if files else ''
