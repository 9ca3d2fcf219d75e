"""PNG and BMP, as nnU-Net's NaturalImage2DIO sees them."""

from __future__ import annotations

import warnings
from typing import Any, Tuple

import numpy as np

from mmguard.files.regular import open_regular
from mmguard.tools.scan.faults import fault_of
from mmguard.tools.scan.nnunet.readers.volume import CannotRead, Geometry, Volume, blocks_of

#: NaturalImage2DIO tells no spacing; this is what it says instead.
_SPACING = (999.0, 1.0, 1.0)


def open_flat(path: str) -> Volume:
    """Opens a 2-D image: gray, RGB or RGBA.

    A palette is turned into its colours, as skimage does.

    Raises:
        CannotRead: It is damaged, or has other channels.
    """
    array = _pixels(path)
    if array.ndim == 3 and array.shape[-1] in (3, 4):
        array = np.moveaxis(array, -1, 0)[:, None]
    elif array.ndim == 2:
        array = array[None, None]
    else:
        raise CannotRead('neither gray nor RGB', f'an array of shape {array.shape}')
    return Volume(array.dtype, array.shape, 2, Geometry(list(_SPACING)), blocks_of(np.ascontiguousarray(array)))


def _pixels(path: str) -> np.ndarray:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # of large or odd files
            with open_regular(path) as file, Image.open(file, formats=('PNG', 'BMP', 'JPEG')) as image:
                return _as_skimage(image)
    except Exception as error:  # a decoder fed with damaged bytes raises what it likes
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
