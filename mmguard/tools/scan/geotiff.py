"""GeoTIFF that pillow does not decode."""

from __future__ import annotations

import importlib.util
from contextlib import contextmanager
from typing import Any, BinaryIO, Iterator

import numpy as np

from mmguard.tools.scan.faults import NoLabels
from mmguard.tools.scan.sizes import can_hold

#: TIFF and BigTIFF of either byte order.
_STARTS = (b'II*\0', b'MM\0*', b'II+\0', b'MM\0+')


def can_read(head: bytes) -> bool:
    """Whether rasterio is installed, and a file that begins so may be one that it reads."""
    return head.startswith(_STARTS) and importlib.util.find_spec('rasterio') is not None


@contextmanager
def open_geotiff(file: BinaryIO) -> Iterator[Any]:
    """A file as rasterio opens it.

    Raises:
        Exception: It is damaged.
    """
    import rasterio
    from rasterio.io import MemoryFile

    # This format alone: others lead to further files, or to the network.
    with rasterio.Env(), MemoryFile(file.read()) as memory, memory.open(driver='GTiff') as opened:
        yield opened


def read_band(file: BinaryIO, size: int) -> np.ndarray:
    """Read the only band of a file, (H, W).

    Args:
        file (BinaryIO): The opened file.
        size (int): Its bytes.

    Raises:
        NoLabels: It has several bands, or one row or column.
        Exception: It is damaged.
    """
    with open_geotiff(file) as opened:
        if opened.count != 1:
            raise NoLabels(f'{opened.count} bands')
        if min(opened.shape) <= 1:
            raise NoLabels('one row or column')
        if not can_hold(size, opened.height * opened.width // 8):
            raise OSError(f'truncated: {size:,} bytes cannot hold {opened.width} x {opened.height} pixels')
        band: np.ndarray = opened.read(1)
        return band
