"""Whether a file can hold what its header promises: asked before memory is taken for it."""

from __future__ import annotations

#: No stored byte becomes more than this: deflate makes at most 1,032 of it, LZW with codes of 12 bits 1,300.
MOST_INFLATED = 2048


def can_hold(stored: int, wanted: int) -> bool:
    """Return True if so many bytes can be unpacked from a file by deflate, LZW or runs.

    Args:
        stored (int): Bytes of the file.
        wanted (int): Bytes that its header promises.

    Example:
        >>> can_hold(300, 32767 * 32767), can_hold(1 << 20, 1 << 30)
        (False, True)
    """
    return wanted <= stored * MOST_INFLATED


def chunks_fit(png: bytes) -> bool:
    """Whether no chunk of a PNG promises more than the file holds: OpenCV takes gigabytes for it."""
    place = 8
    while place + 8 <= len(png):
        length, kind = int.from_bytes(png[place : place + 4], 'big'), png[place + 4 : place + 8]
        if place + 8 + length > len(png):
            return False
        if kind == b'IEND':
            break
        place += 12 + length
    return True
