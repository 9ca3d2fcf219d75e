"""Damaged and hostile label files: every kind under its name, with what a scan should say of it."""

from __future__ import annotations

import io
import os
import struct
import sys
import zlib
from pathlib import Path
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np
from label_files import BLOCKS, write
from pictures import png
from PIL import Image

#: File, and what is said of it: a fault, ``''`` if it can be read all the same, ``None`` if either is right.
Kind = Tuple[str, Optional[str]]


def encoded(form: str, label: np.ndarray = BLOCKS, **options: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(label).save(out, form, **options)
    return out.getvalue()


def plant_bytes(folder: Path) -> Dict[str, Kind]:
    """Files with wrong content."""
    good, bmp = encoded('PNG'), encoded('BMP')
    wrong_sum = bytearray(good)
    wrong_sum[-20] ^= 0xFF
    text = b'zTXt' + b'a\0\0' + zlib.compress(bytes(1 << 27))
    bomb = struct.pack('>I', len(text) - 4) + text + struct.pack('>I', zlib.crc32(text))
    contents: Dict[str, Tuple[bytes, Optional[str]]] = {
        'empty': (b'', 'empty'),
        'one byte': (b'\x89', 'not an image'),
        'newline': (b'\n', 'not an image'),
        'signature alone': (good[:8], 'damaged'),
        'header alone': (good[:33], 'damaged'),
        'json': (b'{"annotations": []}', 'not an image'),
        'html': (b'<html><script>alert(1)</script></html>', 'not an image'),
        'xml bomb': (b'<!DOCTYPE a [<!ENTITY b "bbbb">]><a>&b;&b;</a>', 'not an image'),
        'svg': (b'<svg xmlns="http://www.w3.org/2000/svg"/>', 'not an image'),
        'lfs pointer': (b'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n', 'not an image'),
        'annex pointer': (b'/annex/objects/MD5E-s12--00\n', 'not an image'),
        'zeros': (bytes(4096), 'not an image'),
        'ones': (b'\xff' * 4096, 'not an image'),
        'noise': (np.random.default_rng(0).bytes(4096), 'not an image'),
        'elf': (b'\x7fELF' + bytes(100), 'not an image'),
        'zip': (b'PK\x03\x04' + bytes(100), 'not an image'),
        'gzip': (b'\x1f\x8b\x08' + bytes(100), 'not an image'),
        'npy': (b'\x93NUMPY\x01\x00' + bytes(100), 'not an image'),
        'nifti': (struct.pack('<i', 348) + bytes(400), 'not an image'),
        'pickle': (b'\x80\x04cos\nsystem\n(S"echo"\ntR.', 'not an image'),
        'eps': (b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(%pipe%id) (r) file\n', 'not an image'),
        'pdf': (b'%PDF-1.4\n', 'not an image'),
        'fits': (b'SIMPLE  =                    T' + bytes(2880), 'not an image'),
        'ico': (b'\0\0\1\0\1\0' + bytes(64), 'not an image'),
        'half a png': (good[: len(good) // 2], 'truncated'),
        'png without end': (good[:-12], None),
        'png with a wrong sum': (bytes(wrong_sum), None),
        'png with a tail': (good + b'<script>', ''),
        'png twice': (good + good, ''),
        'png in windows line ends': (good.replace(b'\n', b'\r\n'), 'damaged'),
        'png of no size': (png(0, 0, b''), None),
        'png of no width': (png(0, 8, b''), None),
        'png of negative size': (png(0xFFFFFFFF, 0xFFFFFFFF, b''), None),
        'png of no color type': (png(8, 8, zlib.compress(bytes(72)), color=9), 'damaged'),
        'png of 3 bits': (png(8, 8, zlib.compress(bytes(72)), bits=3), 'damaged'),
        'png without data': (png(8, 8, b''), None),
        'png with other data': (png(8, 8, b'no zlib stream'), None),
        'png with too little data': (png(800, 800, zlib.compress(bytes(72))), None),
        'png with too much data': (png(8, 8, zlib.compress(bytes(1 << 20))), None),
        'png with an unknown filter': (png(8, 8, zlib.compress(b'\x09' + bytes(71))), None),
        'png palette without a palette': (png(8, 8, zlib.compress(bytes(72)), color=3), None),
        'pixel bomb': (png(60000, 60000, zlib.compress(bytes(1 << 20))), 'too large'),
        'pixel bomb of one line': (png(2_000_000_000, 1, zlib.compress(bytes(100))), 'too large'),
        'text bomb': (png(8, 8, zlib.compress(bytes(72)), extra=bomb), None),
        'endless chunk': (good[:8] + b'\xff\xff\xff\xffIHDR' + bytes(40), 'truncated'),
        'half a jpeg': (encoded('JPEG')[:300], None),
        'jpeg head': (b'\xff\xd8\xff\xe0', 'damaged'),
        'half a tiff': (encoded('TIFF')[:60], None),
        'tiff head': (b'II*\0' + bytes(4), 'damaged'),
        'tiff that points at itself': (b'II*\0\x08\0\0\0\x01\0\0\1\3\0\1\0\0\0\x08\0\0\0\x08\0\0\0', None),
        'tiff that points outside': (b'II*\0\xff\xff\xff\x7f', 'damaged'),
        'half a bmp': (bmp[:200], 'truncated'),
        'bmp head': (b'BM' + bytes(20), 'damaged'),
        'bmp of a huge size': (
            encoded('BMP')[:18] + struct.pack('<ii', 1 << 30, 1 << 30) + encoded('BMP')[26:],
            'too large',
        ),
        'half a gif': (encoded('GIF')[:30], None),
        'gif head': (b'GIF89a', 'damaged'),
        'webp head': (b'RIFF\x10\0\0\0WEBPVP8 ', None),
        'pgm without numbers': (b'P5\n', None),
        'pgm of words': (b'P2\nwide high\n255\n', None),
        'pgm of a huge size': (b'P5\n99999 99999\n255\n', 'too large'),
        'targa of zeros': (bytes(18), None),
        'jp2 head': (b'\0\0\0\x0cjP  \r\n\x87\n' + bytes(20), None),
    }
    planted: Dict[str, Kind] = {}
    for name, (content, fault) in contents.items():
        path = folder / f'{name}.png'
        path.write_bytes(content)
        planted[name] = (str(path), fault)
    return planted


def plant_names(folder: Path) -> Dict[str, Kind]:
    """Good files with names that break reports, shells and terminals."""
    names: List[str] = [
        'new\nline', 'carriage\rreturn', 'tab\t', 'bell\x07', 'escape \x1b[2J\x1b[31m', '[bold red]rich[/]', '[/]',
        '<script>alert(1)<', '"quotes"', "it's", '$(touch x)', '`touch x`', ';rm', '--help', '%s%n', '{0.__class__}',
        '\u202egnp', '\ufeffbom', '\u043a\u0438\u0440\u0438\u043b', '\u4e2d\u6587', ' ', 'a' * 200, 'null\u2400',
        '*', '\\', '~', 'con',
    ]  # fmt: skip
    planted = {f'name {name!r}': (write(folder / f'{name}.png', BLOCKS), '') for name in names}
    if sys.platform == 'linux':
        raw = os.fsencode(str(folder)) + b'/not utf-8 \xff\xfe.png'
        with open(raw, 'wb') as file:
            file.write(encoded('PNG'))
        planted['name of bytes'] = (os.fsdecode(raw), '')
    return planted


def plant_things(folder: Path) -> Dict[str, Kind]:
    """What is no file, or cannot be reached."""
    folder.mkdir()
    planted: Dict[str, Kind] = {}

    def plant(name: str, make: Callable[[str], object], fault: Optional[str]) -> None:
        path = str(folder / f'{name}.png')
        make(path)
        planted[name] = (path, fault)

    plant('dangling link', lambda path: os.symlink('nowhere', path), 'missing')
    plant('link to itself', lambda path: os.symlink(path, path), 'link loop')
    plant('link to a device', lambda path: os.symlink('/dev/zero', path), 'not a file')
    plant('pipe', os.mkfifo, 'not a file')
    plant('link to a folder above', lambda path: os.symlink('..', path), None)
    if os.geteuid() != 0:
        plant('unreadable', lambda path: (write(path, BLOCKS), os.chmod(path, 0)), 'no permission')
    loop = folder / 'loop'
    loop.mkdir()
    (loop / 'again').symlink_to(folder, target_is_directory=True)
    # A folder that is called like a file is a folder.
    write(folder / 'folder.png' / 'inside.png', BLOCKS)
    planted['inside a folder called .png'] = (str(folder / 'folder.png' / 'inside.png'), '')
    return planted
