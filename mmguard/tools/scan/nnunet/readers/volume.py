"""A volume that is open, and the bytes of its file: each once, inflated where they are gzipped, checked to the end."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, field
from typing import IO, Any, Callable, Iterator, List, Optional, Tuple

import numpy as np

from mmguard.tools.scan.faults import EMPTY, NOT_A_FILE, TRUNCATED
from mmguard.tools.scan.forms import can_hold

#: Voxels that are looked at at once: about what fits the cache of a core.
BLOCK = 1 << 16


class CannotRead(Exception):
    """Why a volume cannot be read: in two or three words, with figures, and how many bytes of voxels are missing."""

    def __init__(self, fault: str, detail: str = '', missing: int = 0) -> None:
        super().__init__(detail or fault)
        self.fault = fault
        self.detail = detail
        self.missing = missing


@dataclass
class Geometry:
    """Where the voxels lie, as nnU-Net's reader tells it."""

    spacing: List[float] = field(default_factory=list)  #: Edge lengths of a voxel along z, y, x.
    origin: List[float] = field(default_factory=list)  #: SimpleITK's; empty for other readers.
    direction: List[float] = field(default_factory=list)  #: SimpleITK's matrix, row by row; empty for other readers.
    affine: List[float] = field(default_factory=list)  #: nibabel's matrix, row by row; empty for other readers.


@dataclass
class Volume:
    """A file that was opened: its header is known, its voxels are still to come."""

    dtype: np.dtype  #: Of the voxels as stored.
    shape: Tuple[int, ...]  #: (channels, z, y, x), as nnU-Net has it.
    dimension: int  #: Axes of the file.
    geometry: Geometry  #: Where it lies.
    #: Yields arrays of (rows, voxels of a row) as stored, first to last; may be asked once. A row is a slice, or a line
    #: of one that is large. Slices go along z, channel after channel. Raises ``CannotRead`` where the file ends too
    #: early.
    blocks: Callable[[], Iterator[np.ndarray]]
    #: Goes through the file without making arrays of it, for voxels whose values do not matter.
    check: Callable[[], None] = lambda: None
    #: ``slope``, ``inter``: What nnU-Net reads is ``stored * slope + inter``.
    slope: float = 1.0
    inter: float = 0.0
    lines: int = 1  #: Rows of a slice.
    form: str = ''  #: What about the form nnU-Net does not take; empty if nothing.
    #: Why nnU-Net's reader refuses the file, where the voxels can be read all the same: to be reported unless they turn
    #: out to be damaged, which says more.
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


_GZIP = b'\x1f\x8b'
_GZIPPED = 31
#: Bytes at once, stored and inflated: where zlib finds an error, it keeps back what it has inflated in that piece.
_PIECE = 1 << 16
#: Up to this size (bytes, inflated) libdeflate may inflate a file at once; larger ones go through zlib in pieces.
_AT_ONCE = 1 << 29


class Content:
    """The content of a file that was opened for reading bytes, at its beginning.

    Raises:
        CannotRead: It is empty or not a file.
    """

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._file = file
        status = os.fstat(file.fileno())
        if not os.path.isfile(path):
            raise CannotRead(NOT_A_FILE)
        self.size = status.st_size
        if not self.size:
            raise CannotRead(EMPTY, 'the file has no bytes')
        self._first = file.read(min(_PIECE, self.size))
        self.is_gzipped = self._first.startswith(_GZIP)

    def head(self, size: int) -> bytes:
        """The first bytes, inflated; fewer where there are no more."""
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
        """Check that all is there, gzip's checksum included.

        Raises:
            CannotRead: It is not.
        """
        self._check_size(begin, length)
        if self.is_gzipped and self._whole(begin + length) is None:
            for _ in self._pieces(begin, length, _PIECE):
                pass

    def blocks(self, begin: int, length: int, size: int) -> Iterator[memoryview]:
        """Yield ``length`` bytes from ``begin`` on, in blocks of ``size``; the last may be shorter.

        Raises:
            CannotRead: The file ends earlier, or is damaged.
        """
        self._check_size(begin, length)
        whole = self._whole(begin + length) if self.is_gzipped else None
        if whole is None:
            yield from self._pieces(begin, length, size)
            return
        view = memoryview(whole)[begin : begin + length]
        for place in range(0, length, size):
            yield view[place : place + size]

    def _check_size(self, begin: int, length: int) -> None:
        """Refuses what the file is too small for, before memory is taken for it."""
        missing = begin + length - self.size
        if not self.is_gzipped and missing > 0:
            raise CannotRead(TRUNCATED, '', min(missing, length))
        if self.is_gzipped and not can_hold(self.size, length):
            raise CannotRead(TRUNCATED, f'{self.size:,} bytes cannot hold the {length:,} that its header promises')

    def _whole(self, length: int) -> Optional[Any]:
        """All bytes; ``None`` where libdeflate is not to be had, or does not take the file.

        What it does not take goes through zlib, which can say what is wrong and where.
        """
        decode = gzip_decoder()
        if decode is None or length > _AT_ONCE or self.size > _AT_ONCE:
            return None
        self._first += self._file.read()
        try:
            whole = decode(self._first, out=length)
        except (RuntimeError, ValueError, MemoryError):
            return None
        return whole if len(whole) == length else None

    def _pieces(self, begin: int, length: int, size: int) -> Iterator[memoryview]:
        block = bytearray(min(size, length))
        filled, skip, left = 0, begin, length
        try:
            for piece in self._inflated() if self.is_gzipped else self._stored():
                view = memoryview(piece)[skip:]
                skip = max(0, skip - len(piece))
                view = view[:left]
                while view:
                    part = min(len(view), len(block) - filled)
                    block[filled : filled + part] = view[:part]
                    filled, left, view = filled + part, left - part, view[part:]
                    if filled == len(block):
                        yield memoryview(block)
                        block, filled = bytearray(min(size, left)), 0
        except zlib.error as error:
            said = str(error).split(': ')[-1]
            if said.startswith('incorrect'):  # the checksum behind the voxels
                raise CannotRead('damaged', f'gzip: {said}: all voxels are there, not all are right') from error
            raise CannotRead('damaged', f'gzip: {said}', left) from error
        except EOFError as error:
            raise CannotRead(TRUNCATED, str(error), left) from error
        if left:
            raise CannotRead(TRUNCATED, '', left)

    def _stored(self) -> Iterator[bytes]:
        piece = self._first
        while piece:
            yield piece
            piece = self._file.read(_PIECE)

    def _inflated(self) -> Iterator[bytes]:
        """Goes on to the end of the file, because gzip's checksum stands there."""
        member, piece = zlib.decompressobj(_GZIPPED), self._first
        while piece:
            yield member.decompress(piece, _PIECE)
            piece = member.unconsumed_tail
            if member.eof:
                rest = member.unused_data or self._file.read(_PIECE)
                if not rest.startswith(_GZIP):
                    return  # whatever follows, gzip's readers leave it
                member, piece = zlib.decompressobj(_GZIPPED), rest
            piece = piece or self._file.read(_PIECE)
        if not member.eof:
            raise EOFError('the gzip stream has no end')


def gzip_decoder() -> Optional[Any]:
    """libdeflate, more than twice as fast as zlib: in imagecodecs, which is there wherever nnU-Net is."""
    try:
        from imagecodecs import gzip_decode
    except ImportError:
        return None
    return gzip_decode
