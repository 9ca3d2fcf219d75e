"""A volume that is open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Iterator, List, Optional, Tuple

import numpy as np

#: Voxels that are looked at at once: about what fits the cache of a core.
BLOCK = 1 << 16


class CannotRead(Exception):
    """Why a volume cannot be read.

    Args:
        fault (str): In two or three words, ``'truncated'``.
        detail (str): The same with figures, or in the words of the reader.
        missing (int): Bytes of voxels that are missing at the end.
    """

    def __init__(self, fault: str, detail: str = '', missing: int = 0) -> None:
        super().__init__(detail or fault)
        self.fault = fault
        self.detail = detail
        self.missing = missing


@dataclass
class Geometry:
    """Where the voxels lie, as nnU-Net's reader tells it.

    Args:
        spacing (list[float]): Edge lengths of a voxel along z, y, x.
        origin (list[float]): SimpleITK's; empty for other readers.
        direction (list[float]): SimpleITK's matrix, row by row; empty for other readers.
        affine (list[float]): nibabel's matrix, row by row; empty for other readers.
    """

    spacing: List[float] = field(default_factory=list)
    origin: List[float] = field(default_factory=list)
    direction: List[float] = field(default_factory=list)
    affine: List[float] = field(default_factory=list)


@dataclass
class Volume:
    """A file that was opened: its header is known, its voxels are still to come.

    Args:
        dtype (np.dtype): Of the voxels as stored.
        shape (tuple[int]): (channels, z, y, x), as nnU-Net has it.
        dimension (int): Axes of the file.
        geometry (Geometry): Where it lies.
        blocks (callable): Yields arrays of (rows, voxels of a row) as stored, first to last; may be asked once. A row
            is a slice, or a line of one that is large. Slices go along z, channel after channel. Raises ``CannotRead``
            where the file ends too early.
        check (callable): Goes through the file without making arrays of it, for voxels whose values do not matter.
        slope, inter (float): What nnU-Net reads is ``stored * slope + inter``.
        lines (int): Rows of a slice.
        form (str): What about the form nnU-Net does not take; empty if nothing.
        refusal (CannotRead, optional): Why nnU-Net's reader refuses the file, where the voxels can be read all the
            same: to be reported unless they turn out to be damaged, which says more.
    """

    dtype: np.dtype
    shape: Tuple[int, ...]
    dimension: int
    geometry: Geometry
    blocks: Callable[[], Iterator[np.ndarray]]
    check: Callable[[], None] = lambda: None
    slope: float = 1.0
    inter: float = 0.0
    lines: int = 1
    form: str = ''
    refusal: Optional[CannotRead] = None

    @property
    def is_scaled(self) -> bool:
        return (self.slope, self.inter) != (1.0, 0.0)


def rows_at_once(voxels: int) -> int:
    """Rows per block."""
    return max(1, BLOCK // max(1, voxels))


def blocks_of(array: np.ndarray) -> Callable[[], Iterator[np.ndarray]]:
    """Blocks of an array of shape (..., y, x) that is in memory."""

    def blocks() -> Iterator[np.ndarray]:
        voxels = int(array.shape[-1] * array.shape[-2])
        slices = array.reshape(-1, voxels)
        step = rows_at_once(voxels)
        for begin in range(0, len(slices), step):
            yield slices[begin : begin + step]

    return blocks
