"""The bytes of a file, inflated where they are gzipped: each byte once, and checked to the end."""

from __future__ import annotations

import os
import zlib
from typing import IO, Any, Iterator, Optional

from mmguard.tools.scan.faults import EMPTY, NOT_A_FILE, TRUNCATED
from mmguard.tools.scan.nnunet.readers.volume import CannotRead
from mmguard.tools.scan.sizes import can_hold

_GZIP = b'\x1f\x8b'
_GZIPPED = 31
#: Bytes at once, stored and inflated: where zlib finds an error, it keeps back what it has inflated in that piece.
_PIECE = 1 << 16
#: Up to this size (bytes, inflated) libdeflate may inflate a file at once; larger ones go through zlib in pieces.
_AT_ONCE = 1 << 29


class Content:
    """The content of a file.

    Args:
        path (str): The file.
        file (file object): The same, opened for reading bytes, at its beginning.

    Raises:
        CannotRead: It is empty or no file.
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
        """Sees to it that all is there, gzip's checksum included.

        Raises:
            CannotRead: It is not.
        """
        self._check_size(begin, length)
        if self.is_gzipped and self._whole(begin + length) is None:
            for _ in self._pieces(begin, length, _PIECE):
                pass

    def blocks(self, begin: int, length: int, size: int) -> Iterator[memoryview]:
        """The bytes from ``begin`` on, in blocks.

        Args:
            begin (int): First byte wanted.
            length (int): Bytes wanted.
            size (int): Bytes of a block; the last may be shorter.

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
