"""Reader of volumes (3-D images) that reads a file once, decompresses gzip, and checks the file to its end."""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import dataclass, field
from typing import IO, Any, Callable, Iterator, List, Optional, Tuple

import numpy as np

from mmguard.formats.faults import EMPTY, NOT_A_FILE, TOO_LARGE, TRUNCATED

#: Number of voxels processed at once: about the size of a core's cache.
BLOCK = 1 << 16


class CannotRead(Exception):
    """Failure to read a volume: reason in two or three words, details, and number of missing bytes of voxels."""

    def __init__(self, fault: str, detail: str = '', missing: int = 0) -> None:
        super().__init__(detail or fault)
        self.fault = fault
        self.detail = detail
        self.missing = missing


@dataclass
class Geometry:
    """Position of the voxels, as reported by nnU-Net's reader."""

    spacing: List[float] = field(default_factory=list)  #: Edge lengths of a voxel along z, y, x.
    origin: List[float] = field(default_factory=list)  #: Origin of SimpleITK; empty for other readers.
    direction: List[float] = field(default_factory=list)  #: Matrix of SimpleITK, row by row; empty for other readers.
    affine: List[float] = field(default_factory=list)  #: Matrix of nibabel, row by row; empty for other readers.


@dataclass
class Volume:
    """An opened file whose header has been read, but not its voxels."""

    dtype: np.dtype  #: Type of the stored voxels.
    shape: Tuple[int, ...]  #: (channels, z, y, x), nnU-Net's order.
    dimension: int  #: Number of axes of the file.
    geometry: Geometry  #: Position of the voxels.
    #: Return an iterator over stored arrays of (rows, voxels of a row), first to last; may be called once. A row is a
    #: slice, or a line of a large slice. Slices go along z, channel after channel. Raises ``CannotRead`` if the file is
    #: truncated.
    blocks: Callable[[], Iterator[np.ndarray]]
    #: Verify the file without building arrays, for voxels whose values do not matter.
    check: Callable[[], None] = lambda: None
    #: ``slope``, ``inter``: nnU-Net reads ``stored * slope + inter``.
    slope: float = 1.0
    inter: float = 0.0
    lines: int = 1  #: Number of rows of a slice.
    form: str = ''  #: Voxel type or number of axes that nnU-Net does not accept; empty if accepted.
    #: Reason why nnU-Net's reader refuses a file whose voxels can still be read. It is reported unless the voxels are
    #: damaged, because damage is the more specific reason.
    refusal: Optional[CannotRead] = None

    @property
    def is_scaled(self) -> bool:
        return (self.slope, self.inter) != (1.0, 0.0)


def count_rows_per_block(voxels: int) -> int:
    """Return the number of rows of ``voxels`` voxels that fit into a block, or 1 if a row does not fit."""
    return max(1, BLOCK // max(1, voxels))


def split_into_blocks(array: np.ndarray) -> Callable[[], Iterator[np.ndarray]]:
    """Return a function that yields the blocks of an array of shape (..., y, x)."""

    def blocks() -> Iterator[np.ndarray]:
        voxels = int(array.shape[-1] * array.shape[-2])
        slices = array.reshape(-1, voxels)
        step = count_rows_per_block(voxels)
        for begin in range(0, len(slices), step):
            yield slices[begin : begin + step]

    return blocks


_GZIP = b'\x1f\x8b'
_GZIPPED = 31
#: Number of stored and decompressed bytes per step: on an error, zlib discards the output of the current step.
_PIECE = 1 << 16
#: Maximum size (stored and decompressed, in bytes) of a file for libdeflate; larger ones use zlib in steps.
_AT_ONCE = 1 << 29
#: Maximum number of bytes of the voxels, and of bytes decompressed from one stored byte (deflate reaches 1,032).
MOST_VOXELS, MOST_INFLATED = 1 << 32, 2048


class Content:
    """Content of a plain or gzipped file, opened in binary mode and positioned at the beginning.

    Raises:
        CannotRead: The file is empty or not a regular file.
    """

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._file = file
        status = os.fstat(file.fileno())
        if not os.path.isfile(path):
            raise CannotRead(NOT_A_FILE)
        self.size = status.st_size
        if not self.size:
            raise CannotRead(EMPTY, 'the file is empty')
        self._first = file.read(min(_PIECE, self.size))
        self.is_gzipped = self._first.startswith(_GZIP)

    def read_head(self, size: int) -> bytes:
        """Return the first ``size`` bytes, decompressed; fewer if the file is shorter."""
        if not self.is_gzipped:
            return self._first[:size]
        inflated, rest = b'', self._first
        try:
            while rest.startswith(_GZIP) and len(inflated) < size:
                member = zlib.decompressobj(_GZIPPED)
                inflated += member.decompress(rest, size - len(inflated))
                rest = member.unused_data
        except zlib.error as error:
            raise CannotRead('damaged', f'gzip: {error}') from error
        return inflated

    def check(self, begin: int, length: int) -> None:
        """Check that the content is complete, including gzip's checksum.

        Raises:
            CannotRead: The content is incomplete or damaged.
        """
        self._check_size(begin, length)
        if self.is_gzipped and self._decompress(begin + length) is None:
            for _ in self._read_pieces(begin, length, _PIECE):
                pass

    def read_blocks(self, begin: int, length: int, size: int) -> Iterator[memoryview]:
        """Yield ``length`` bytes from ``begin`` on, in blocks of ``size`` bytes; the last block may be shorter.

        Raises:
            CannotRead: The file ends earlier, or is damaged.
        """
        self._check_size(begin, length)
        whole = self._decompress(begin + length) if self.is_gzipped else None
        if whole is None:
            yield from self._read_pieces(begin, length, size)
            return
        view = memoryview(whole)[begin : begin + length]
        for place in range(0, length, size):
            yield view[place : place + size]

    def _check_size(self, begin: int, length: int) -> None:
        """Raise :class:`CannotRead` if the file is too small for ``length`` bytes, or if ``length`` is too large."""
        missing = begin + length - self.size
        if not self.is_gzipped and missing > 0:
            raise CannotRead(TRUNCATED, '', min(missing, length))
        if length > MOST_VOXELS:
            raise CannotRead(TOO_LARGE, f'{length:,} bytes, but at most {MOST_VOXELS:,} are read')
        if self.is_gzipped and length > self.size * MOST_INFLATED:
            raise CannotRead(TRUNCATED, f'{self.size:,} bytes cannot hold the {length:,} that its header promises')

    def _decompress(self, length: int) -> Optional[Any]:
        """Decompress the file with libdeflate. Return ``None`` without libdeflate, or for a large or rejected file.

        The caller then uses zlib, which reports an error and its place.
        """
        decode = find_gzip_decoder()
        if decode is None or length > _AT_ONCE or self.size > _AT_ONCE:
            return None
        self._first += self._file.read()
        try:
            whole = decode(self._first, out=length)
        except (RuntimeError, ValueError, MemoryError):
            return None
        return whole if len(whole) == length else None

    def _read_pieces(self, begin: int, length: int, size: int) -> Iterator[memoryview]:
        self._file.seek(0)
        # The standard library reads a gzipped file up to its end, which contains the checksum.
        source: Any = gzip.GzipFile(fileobj=self._file) if self.is_gzipped else self._file
        block = bytearray(min(size, length))
        filled, skip, left = 0, begin, length
        try:
            for piece in iter(lambda: source.read1(_PIECE), b''):
                view = memoryview(piece)[skip:][:left]
                skip = max(0, skip - len(piece))
                while view:
                    part = min(len(view), len(block) - filled)
                    block[filled : filled + part] = view[:part]
                    filled, left, view = filled + part, left - part, view[part:]
                    if filled == len(block):
                        yield memoryview(block)
                        block, filled = bytearray(min(size, left)), 0
        except zlib.error as error:
            raise CannotRead('damaged', f'gzip: {str(error).split(": ")[-1]}', left) from error
        except EOFError as error:
            raise CannotRead(TRUNCATED, 'the gzip stream has no end', left) from error
        except gzip.BadGzipFile as error:
            if not str(error).startswith('Not a gzipped file'):  # readers of gzip ignore trailing data
                said = 'incorrect data check: no voxel is missing, but some are wrong'
                raise CannotRead('damaged', f'gzip: {said}') from error
        if left:
            raise CannotRead(TRUNCATED, '', left)


def find_gzip_decoder() -> Optional[Any]:
    """Return libdeflate's decoder, over twice as fast as zlib, or ``None`` if imagecodecs is not installed."""
    try:
        from imagecodecs import gzip_decode
    except ImportError:
        return None
    return gzip_decode
