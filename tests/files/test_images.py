"""The work that an image header asks for is bounded before anything is decoded, whatever the codec."""

from __future__ import annotations

import io
import struct
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest
from PIL import Image

from mmguard.files.images import FREE, TooCostly, open_image
from mmguard.formats.maps.read import read_map
from mmguard.formats.maps.summary import MapItem
from mmguard.formats.options import MapSettings

SIDE = 6000
resource: Any = pytest.importorskip('resource')


def encode(mode: str, form: str, side: int = SIDE, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new(mode, (side, side)).save(file, form, **options)
    return file.getvalue()


def write_tiff(pages: int, tags: Tuple[Tuple[int, int, int, int], ...] = (), tail: bytes = b'') -> bytes:
    """Return a TIFF with pages of 4 x 4 pixels at byte 8."""
    begin, fields = 8, ((256, 4, 1, 4), (257, 4, 1, 4), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1))
    fields = tuple(
        sorted({tag[0]: tag for tag in (*fields, (273, 4, 1, 8), (278, 4, 1, 4), (279, 4, 1, 16), *tags)}.values())
    )
    out = bytearray(b'II*\0' + struct.pack('<I', begin))
    for page in range(pages):
        follows = len(out) + 6 + 12 * len(fields)
        out += struct.pack('<H', len(fields)) + b''.join(struct.pack('<HHII', *field) for field in fields)
        out += struct.pack('<I', follows if page < pages - 1 else 0)
    return bytes(out) + tail


def write_jpeg(segments: int) -> bytes:
    """Return a JPEG with EXIF in many segments, each of which pillow appends to those before."""
    whole = encode('L', 'JPEG', 64)
    return whole[:2] + b'\xff\xe1\0\x09Exif\0\0x' * segments + whole[2:]


BOMBS = {
    'group 4': lambda: encode('1', 'TIFF', compression='group4'),
    'WEBP': lambda: encode('RGB', 'WEBP', lossless=True, quality=0, method=0),
    'JPEG': lambda: encode('L', 'JPEG', 64).replace(b'\x08\0\x40\0\x40', b'\x08' + struct.pack('>HH', SIDE, SIDE)),
    'JPEG 2000': lambda: encode('L', 'JPEG2000'),
}


@pytest.mark.skipif(sys.platform != 'linux', reason='other systems count other things as resident')
@pytest.mark.parametrize('codec', BOMBS)
def test_a_few_bytes_are_not_decoded_to_a_large_image(codec: str) -> None:
    content = BOMBS[codec]()
    with open_image(io.BytesIO(content)) as image:  # to see its size costs nothing
        assert image.width * image.height > FREE
    with pytest.raises(TooCostly, match='too many pixels for its bytes'), open_image(io.BytesIO(content), decodes=True):
        pass


@pytest.mark.parametrize(('mode', 'limit'), [('RGB', 1 << 26), ('RGBA', 1 << 26), ('I', 1 << 25), ('F', 1 << 25)])
def test_an_image_that_is_too_large_is_not_decoded(mode: str, limit: int) -> None:
    content = bytearray(encode(mode, 'TIFF', 32))
    for side, faults in ((int(limit**0.5), 0), (int(limit**0.5) + 1, 1)):
        for tag in (256, 257):
            place = next(at for at in range(len(content)) if content[at : at + 4] == struct.pack('<HH', tag, 4))
            content[place + 8 : place + 12] = struct.pack('<I', side)
        found = []
        try:
            with open_image(io.BytesIO(bytes(content) + bytes(1 << 20)), decodes=True):
                pass
        except TooCostly as error:
            found.append(str(error))
        assert found == ['too large'] * faults


def write_progressive_jpeg(scans: int) -> bytes:
    """Return a JPEG that repeats the last scan over all of its pixels."""
    whole = encode('L', 'JPEG', 4096, progressive=True)
    last = whole[whole.rindex(b'\xff\xda') : -2]
    return whole[:-2] + last * scans + b'\xff\xd9'


HEADERS: Dict[str, Tuple[Any, str]] = {
    'tags that all hold the whole file': (
        lambda: write_tiff(1, tuple((tag, 7, 1 << 20, 0) for tag in range(40_000, 60_000)), bytes(1 << 20)),
        'too many parts',
    ),
    'scans without end': (lambda: write_progressive_jpeg(1000), 'too many parts'),
    'EXIF in many segments': (lambda: write_jpeg(500_000), 'too many parts'),
}  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('kind', HEADERS)
def test_a_header_does_not_ask_for_more_work_than_a_file_of_its_size(kind: str) -> None:
    write, fault = HEADERS[kind]
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(TooCostly, match=fault), open_image(io.BytesIO(write()), decodes=True):
        pass
    assert time.process_time() - began < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 << 10


def test_the_file_stays_open_and_is_read_on(tmp_path: Path) -> None:
    read: List[bytes] = []
    (tmp_path / 'a.png').write_bytes(encode('L', 'PNG', 8))
    with open(tmp_path / 'a.png', 'rb') as file:
        for _ in range(2):
            with open_image(file, decodes=True) as image:
                assert image.size == (8, 8)
                image.load()
        file.seek(0)
        read.append(file.read())
    assert read == [(tmp_path / 'a.png').read_bytes()]


@pytest.mark.timeout(60)
def test_of_many_pages_two_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / 'a.tif').write_bytes(write_tiff(100_000))
    began = time.process_time()
    record = read_map(MapItem(str(tmp_path / 'a.tif')), MapSettings(5), np.zeros(256, bool))
    assert record.fault == 'several pages'
    assert time.process_time() - began < 10
