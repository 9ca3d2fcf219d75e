"""The forms in which files hold label maps, by what pillow says of them."""

from __future__ import annotations

from typing import Any

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
#: Of TIFF, as pillow calls them.
_PACKED = ('tiff_lzw', 'tiff_deflate', 'tiff_adobe_deflate', 'packbits')


def form_of(image: Any) -> str:
    """The form of an opened file, ``'gray8'``; ``'other'`` for what never holds labels (CMYK, LAB)."""
    mode = image.mode
    if mode.startswith('I;16'):
        return 'gray16'
    if mode == 'L':
        scale = scale_of(image)
        return 'gray4' if scale == 17 else 'gray2' if scale == 85 else 'gray8'
    return _FORMS.get(mode, 'other')


def scale_of(image: Any) -> float:
    """The factor by which decoding stretches gray values.

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
    """Whether the file was compressed in a way that changes values.

    Args:
        image (PIL.Image.Image): The opened file.
        head (bytes): Its first 16 bytes.
    """
    if image.format == 'WEBP':
        return head[12:16] != b'VP8L'
    return image.format in _LOSSY


def is_packed(image: Any) -> bool:
    """Whether an opened file is compressed in a way of which the most that it saves is known."""
    return image.format in ('PNG', 'GIF') or (image.format == 'TIFF' and image.info.get('compression') in _PACKED)
