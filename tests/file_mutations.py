"""Files of labels with something changed in them: bytes, ends, and fields whose checksums are made to fit again."""

from __future__ import annotations

import struct
import zlib
from typing import Callable, Iterator, List

import numpy as np

Mutation = Callable[[bytes, np.random.Generator], bytes]
#: What fields of headers are often wrong by.
_NUMBERS = (0, 1, 2, 255, 256, 32767, 65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)


def flip(content: bytes, rng: np.random.Generator) -> bytes:
    """A few bits are others."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(data)


def flip_head(content: bytes, rng: np.random.Generator) -> bytes:
    """A byte of the beginning is any other."""
    data = bytearray(content)
    data[int(rng.integers(min(400, len(data))))] = int(rng.integers(256))
    return bytes(data)


def number(content: bytes, rng: np.random.Generator) -> bytes:
    """A field of two or four bytes holds another number."""
    kind = ('<H', '>H', '<I', '>I')[int(rng.integers(4))]
    size = struct.calcsize(kind)
    place = int(rng.integers(max(1, min(400, len(content)) - size)))
    value = int(rng.choice(_NUMBERS)) % (1 << 8 * size)
    return content[:place] + struct.pack(kind, value) + content[place + size :]


def cut(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(len(content)))]


def cut_a_little(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: -int(rng.integers(1, 40))]


def splice(content: bytes, rng: np.random.Generator) -> bytes:
    first, last, place = sorted(int(n) for n in rng.integers(len(content), size=3))
    return content[:place] + content[first:last] + content[place:]


def remove(content: bytes, rng: np.random.Generator) -> bytes:
    first = int(rng.integers(len(content)))
    return content[:first] + content[first + int(rng.integers(1, 64)) :]


def png_field(content: bytes, rng: np.random.Generator) -> bytes:
    """A byte in a chunk of a PNG is another, and the checksum fits it."""
    if not content.startswith(b'\x89PNG'):
        return flip(content, rng)
    chunks = list(_chunks(content))
    chosen = int(rng.integers(len(chunks)))
    body = bytearray(chunks[chosen])
    if len(body) > 4:
        body[int(rng.integers(4, len(body)))] = int(rng.choice([0, 1, 2, 3, 4, 8, 16, 255]))
    chunks[chosen] = bytes(body)
    if rng.random() < 0.2:
        chunks.insert(int(rng.integers(len(chunks))), chunks[int(rng.integers(len(chunks)))])
    sealed = [struct.pack('>I', len(c) - 4) + c + struct.pack('>I', zlib.crc32(c)) for c in chunks]
    return content[:8] + b''.join(sealed)


def _chunks(content: bytes) -> Iterator[bytes]:
    place = 8
    while place + 8 <= len(content):
        length = int.from_bytes(content[place : place + 4], 'big')
        yield content[place + 4 : place + 8 + length]
        place += 12 + length


MUTATIONS: List[Mutation] = [flip, flip_head, number, cut, cut_a_little, splice, remove, png_field]


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    return MUTATIONS[int(rng.integers(len(MUTATIONS)))](content, rng)
