"""PNG, BMP and TIFF, as nnU-Net's NaturalImage2DIO and Tiff3DIO see them."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any, List, Optional, Tuple

import numpy as np

from mmguard.files.regular import check_regular, open_regular, read_regular
from mmguard.text.failures import words_of
from mmguard.tools.scan.faults import TRUNCATED, fault_of
from mmguard.tools.scan.nnunet.readers.volume import CannotRead, Geometry, Volume, blocks_of
from mmguard.tools.scan.sizes import can_hold

#: Compression in TIFF of which the most is known that it saves -> whether there is any: none; LZW, deflate (two
#: numbers), PackBits.
_PACKED = {1: False, 5: True, 8: True, 32946: True, 32773: True}

#: Three numbers take less.
_LARGEST_SPACING = 1 << 20
#: NaturalImage2DIO tells no spacing; this is what it says instead.
_FLAT = [999.0, 1.0, 1.0]


def open_natural(path: str) -> Volume:
    """Opens a 2-D image: gray, RGB or RGBA.

    A palette is turned into its colours, as skimage does.

    Raises:
        CannotRead: It is damaged, or has other channels.
    """
    array = _tiff(path) if path.lower().endswith(('.tif', '.tiff')) else None
    if array is None:
        array = _picture(path)
    elif array.ndim == 3 and array.shape[-1] not in (3, 4) and array.shape[0] in (3, 4):
        array = np.moveaxis(array, 0, -1)  # as skimage takes them
    if array.ndim == 3 and array.shape[-1] in (3, 4):
        array = np.moveaxis(array, -1, 0)[:, None]
    elif array.ndim == 2:
        array = array[None, None]
    else:
        raise CannotRead('neither gray nor RGB', f'an array of shape {array.shape}')
    return _volume(array, 2, Geometry(list(_FLAT)))


def open_tiff_volume(path: str, spacing_file: str) -> Volume:
    """Opens a 3-D TIFF.

    Args:
        path (str): The file.
        spacing_file (str): The JSON that may hold its spacing.

    Raises:
        CannotRead: It is damaged, not 3-D, or its spacing makes no sense.
    """
    array = _tiff(path)
    if array is None:
        raise CannotRead('needs tifffile', 'TIFF volumes are read by tifffile: pip install tifffile')
    if array.ndim != 3:
        raise CannotRead('not 3-D', f'an array of shape {array.shape}: Tiff3DIO takes 3-D files only')
    return _volume(array[None], 3, Geometry(_spacing(spacing_file)))


def is_flat(path: str) -> bool:
    """Whether nnU-Net takes a ``.tif`` for a 2-D image, and so chooses NaturalImage2DIO."""
    try:
        open_natural(path)
    except CannotRead:
        return False
    return True


def _volume(array: np.ndarray, dimension: int, geometry: Geometry) -> Volume:
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    form = '' if array.dtype.kind in 'iuf' else f'voxels are of type {array.dtype}'
    return Volume(array.dtype, array.shape, dimension, geometry, blocks_of(np.ascontiguousarray(array)), form=form)


def _spacing(spacing_file: str) -> List[float]:
    try:
        spacing = json.loads(read_regular(spacing_file, _LARGEST_SPACING))['spacing']
    except FileNotFoundError:
        return [1.0, 1.0, 1.0]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CannotRead('damaged spacing file', f'{os.path.basename(spacing_file)}: {words_of(error, 120)}') from error
    numbers = isinstance(spacing, list) and len(spacing) == 3 and all(isinstance(n, (int, float)) for n in spacing)
    if not numbers or min(spacing) <= 0:
        raise CannotRead('damaged spacing file', f'{os.path.basename(spacing_file)}: spacing must be 3 numbers above 0')
    return [float(length) for length in spacing]


def _tiff(path: str) -> Optional[np.ndarray]:
    try:
        import tifffile
    except ImportError:
        return None
    try:
        check_regular(path)
        with tifffile.TiffFile(path) as file:
            series = file.series[0]  # what imread reads; it takes memory for all of it at once
            if not series.is_multifile:
                page = series.keyframe
                _check_size(path, series.size * page.bitspersample // 8, int(page.compression))
            return np.asarray(file.asarray())
    except CannotRead:
        raise
    except Exception as error:  # a decoder fed with damaged bytes raises what it likes
        raise _damaged(path, error) from error


def _check_size(path: str, wanted: int, compression: int) -> None:
    stored = os.path.getsize(path)
    if compression in _PACKED and not can_hold(stored, wanted, _PACKED[compression]):
        raise CannotRead(TRUNCATED, f'{stored:,} bytes cannot hold the {wanted:,} that its header promises')


def _picture(path: str) -> np.ndarray:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # of large or odd files
            with open_regular(path) as file, Image.open(file, formats=('PNG', 'BMP', 'TIFF', 'JPEG')) as image:
                return _as_skimage(image)
    except Exception as error:  # as above
        raise _damaged(path, error) from error


def _as_skimage(image: Any) -> np.ndarray:
    if image.mode == 'P':
        image = image.convert('RGB')
    array = np.asarray(image)
    # Cast, not viewed: True is a byte of 255 in pillow's arrays.
    return array.astype(np.uint8) if array.dtype == np.bool_ else array


def _damaged(path: str, error: Exception) -> CannotRead:
    head: Tuple[bytes, ...] = ()
    try:
        with open_regular(path) as file:
            head = (file.read(16),)
    except OSError:
        pass
    if head == (b'',):
        return CannotRead('empty', 'the file has no bytes')
    return CannotRead(fault_of(error, head[0] if head else b''), str(error)[:200])
