"""Label maps of every form, arrays among them, and the raw data sets of nnU-Net."""

from __future__ import annotations

import gzip
import io
import struct
from functools import partial

import loaders
import numpy as np
from format_cases import BLOCKS, nnunet
from kinds import Files, Kind
from mutations import Random, damaged_bytes, damaged_json
from pictures import encode


def _maps() -> Files:
    array = io.BytesIO()
    np.save(array, BLOCKS)
    contents = {
        'gray.png': encode(BLOCKS, 'PNG'),
        'palette.png': encode(BLOCKS, 'PNG', 'P'),
        'rgb.png': encode(BLOCKS * 60, 'PNG', 'RGB'),
        'bits.png': encode(BLOCKS % 2 * 255, 'PNG', '1'),
        'wide.png': encode(BLOCKS.astype(np.uint16), 'PNG'),
        'alpha.png': encode(BLOCKS, 'PNG', 'LA'),
        'gray.tif': encode(BLOCKS, 'TIFF'),
        'packed.tif': encode(BLOCKS, 'TIFF', compression='tiff_lzw'),
        'float.tif': encode(BLOCKS.astype(np.float32), 'TIFF'),
        'cmyk.tif': encode(BLOCKS * 60, 'TIFF', 'CMYK'),
        'gray.bmp': encode(BLOCKS, 'BMP'),
        'gray.gif': encode(BLOCKS, 'GIF'),
        'gray.jpg': encode(BLOCKS * 60, 'JPEG'),
        'array.npy': array.getvalue(),
    }
    # Bytes alone: an image is no tree.
    return {name: (content, (damaged_bytes,)) for name, content in contents.items()}


def _arrays() -> Files:
    """Label maps of numpy: plain, and with an axis more."""
    files: Files = {}
    for name, label in (('plain', BLOCKS), ('wide', BLOCKS.astype(np.int64)), ('axis', BLOCKS.astype('>f4')[None])):
        out = io.BytesIO()
        np.save(out, np.asfortranarray(label))
        files[f'{name}.npy'] = (out.getvalue(), (damaged_bytes, _damaged_shape))
    return files


def _damaged_shape(draw: Random, content: bytes) -> bytes:
    """Type, order or shape that the header of a .npy file states; its length stays."""
    at = content.index(b'{'), content.index(b'\n')
    header = content[at[0] : at[1]].decode()
    old, new = draw.choice(_HEADERS)
    header = header.replace(old, new, 1) if old in header else header
    return content[: at[0]] + header.encode()[: at[1] - at[0]].ljust(at[1] - at[0]) + content[at[1] :]


#: What stands in a header -> what is written there.
_HEADERS = (
    ('|u1', '|O'), ('|u1', '<U9'), ('|u1', '<c8'), ('|u1', '<M8[s]'), ('|u1', '|V1'), ('|u1', '<f8'), ('|u1', '<i0'),
    ("'|u1'", "[('a', '|u1')]"), ("'|u1'", '7'), ('<i8', '<f8'), ('<i8', '<u8'), ('<i8', '<f2'), ('<i8', '|b1'),
    ('>f4', '>f8'), ('>f4', '<f4'), ('>f4', '|S4'), ('12', '-12'), ('12', '0'), ('12', '10**9'), ('12', '1.5'),
    ('12', '9999999999'), ('(12,', '('), ('(', '(1, 1, '), ('True', '1'), ('False', 'None'), ('shape', 'shap'),
    ('}', ", 'a': 1}"), ('{', '{{'), ('{', "__import__('os').mkdir('was_run')#"), ('15', '15' + ', 1' * 40),
)  # fmt: skip


#: Form and place of the fields of a NIfTI header: shape, type, bits, spacing, offset, scale, codes, affine, magic.
_FIELDS = (
    *(('<h', 40 + 2 * place) for place in range(8)), ('<h', 70), ('<h', 72), ('<f', 76), ('<f', 80), ('<f', 108),
    ('<f', 112), ('<f', 116), ('<h', 252), ('<h', 254), *(('<f', 280 + 4 * place) for place in range(12)), ('<h', 344),
)  # fmt: skip


def _damaged_header(draw: Random, content: bytes) -> bytes:
    """Shape, type, scale or offset of a NIfTI file changed."""
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 2))):
        form, at = draw.choice(_FIELDS)
        whole = (0, 1, -1, 2, 3, 4, 8, 16, 64, 128, 512, 2304, 32_767, -32_768)
        real = (0.0, -1.0, 1e-30, 1e30, float('nan'), float('inf'), 348.0, 352.0, 1e9)
        struct.pack_into(form, data, at, draw.choice(whole if form == '<h' else real))
    return bytes(data)


def _in_gzip(draw: Random, content: bytes) -> bytes:
    inner = draw.choice((damaged_bytes, _damaged_header))(draw, gzip.decompress(content))
    return gzip.compress(inner, mtime=0)


def nnunet_files(ending: str) -> Files:
    packs = ending.endswith('.gz')
    files: Files = {}
    for name, content in nnunet().items():
        if name == 'dataset.json':
            files[name] = (content.replace(b'".nii"', f'"{ending}"'.encode()), (damaged_json,))
        else:
            packed = gzip.compress(content, mtime=0) if packs else content
            files[name.replace('.nii', ending)] = (packed, (_in_gzip if packs else _damaged_header,))
    return files


_VOLUMES = ('scan . --json {out}/scan.json', 'scan . --html {out}/page.html')

KINDS = (
    Kind(
        'maps',
        _maps,
        (
            'scan . --json {out}/scan.json', 'scan {file} --num-classes 3', 'scan {file} --json {out}/scan.json',
            'scan . --num-classes 3 --html {out}/page.html', 'fix . --out {out}/fixed --num-classes 3',
        ),
        {
            'scan': ('--reduce-zero-label', '--label-map 0:1,1:0', '--ignore-index 0', '--suffix .png'),
            'fix': (
                '--on-invalid clip', '--label-map 0:1', '--threshold 1', '--colors {(0,0,0):0,(60,60,60):1}',
                '--ignore-index 0',
            ),
        },
        needs=('PIL',),
        loads=loaders.load_maps,
        renamed=True,
    ),
    Kind(
        'arrays',
        _arrays,
        (
            'scan . --num-classes 3 --json {out}/scan.json', 'scan {file} --html {out}/page.html',
            'fix . --out {out}/fixed --num-classes 3',
        ),
        {
            'scan': ('--reduce-zero-label', '--label-map 0:1,1:0', '--ignore-index 0', '--suffix .npy'),
            'fix': ('--on-invalid clip', '--label-map 0:1', '--threshold 1', '--ignore-index 0', '--edit safe'),
        },
        needs=('PIL',),
        loads=loaders.load_arrays,
        renamed=True,
    ),
    *(
        Kind(
            name,
            partial(nnunet_files, ending),
            _VOLUMES,
            needs=('nibabel', 'SimpleITK', 'mmguard.nnunet'),
            loads=loaders.load_volumes,
            renamed=True,
        )
        for name, ending in (('nnunet', '.nii'), ('nnunet_packed', '.nii.gz'))
    ),
)  # fmt: skip
