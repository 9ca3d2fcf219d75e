"""GeoTIFF: what no label map holds is named; damaged files do not end the scan."""

from __future__ import annotations

import io
import json
import math
import os
import struct
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import numpy as np
import pytest
from label_files import BLOCKS
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from mmguard.cli import main
from mmguard.text.failures import REPORT_IT

#: The tag in which GDAL declares a value as "no data".
NODATA = 42113


def tiff(array: np.ndarray, nodata: Optional[str] = None, **options: Any) -> bytes:
    tags = ImageFileDirectory_v2()
    if nodata is not None:
        tags[NODATA] = nodata
        tags.tagtype[NODATA] = 2
    out = io.BytesIO()
    Image.fromarray(array).save(out, format='TIFF', tiffinfo=tags, **options)
    return out.getvalue()


def label(*values: float, dtype: Any = np.uint8) -> np.ndarray:
    """Labels 0 to 4, and in a row of 32 pixels each of the values."""
    made = BLOCKS.astype(dtype)
    for row, value in enumerate(values):
        made[row] = value
    return made


def make(root: Path, *contents: bytes, files: int = 12) -> Path:
    """A data set: the first files hold the contents, the others 0 to 4."""
    for folder in ('images', 'labels'):
        (root / folder).mkdir(parents=True)
    for number in range(files):
        Image.new('RGB', (32, 32)).save(root / 'images' / f'{number:02d}.jpg')
        content = contents[number] if number < len(contents) else tiff(label())
        (root / 'labels' / f'{number:02d}.tif').write_bytes(content)
    return root


def scanned(root: Path, out: Path, *more: str) -> Tuple[int, Dict[str, Any]]:
    """The exit code, and code -> finding, what is no fault left out."""
    code = main(['scan', str(root), '--num-classes', '5', '--processes', '1', '--json', str(out), *more])
    (dataset,) = json.loads(out.read_text())['datasets']
    return code, {one['code']: one for one in dataset['findings'] if one['code'] != 'MG100'}


#: What the file 00 holds -> the code that names it.
PLANTED: Dict[str, Tuple[bytes, str]] = {
    'behind the classes': (tiff(label(99), '99'), 'MG107'),
    '-9999 in 32 bits': (tiff(label(-9999, dtype=np.int32), '-9999'), 'MG122'),
    '65000 in 16 bits': (tiff(label(65000, dtype=np.uint16), '65000'), 'MG122'),
    '-9999 as a float': (tiff(label(-9999, dtype=np.float32), '-9999'), 'MG122'),
    'NaN': (tiff(label(math.nan, dtype=np.float32), 'nan'), 'MG122'),
    'the lowest float': (tiff(label(-3.4028235e38, dtype=np.float32), '-3.4028234663852886e+38'), 'MG122'),
    'compressed': (tiff(label(77), '77', compression='tiff_lzw'), 'MG107'),
}


@pytest.mark.parametrize('name', sorted(PLANTED))
def test_a_planted_value_is_named(name: str, tmp_path: Path) -> None:
    content, expected = PLANTED[name]
    code, found = scanned(make(tmp_path / 'set', content), tmp_path / 'scan.json')
    assert (code, list(found)) == (1, [expected])


SOUND = tiff(label(9), '9')
#: The entry of the tag: its number, its type and count.
ENTRY = SOUND.index(struct.pack('<HH', NODATA, 2))
DAMAGED: Dict[str, bytes] = {
    'empty': b'',
    'head alone': SOUND[:4],
    'head and offset': SOUND[:8],
    **{f'the first {part} of 8': SOUND[: len(SOUND) * part // 8] for part in range(1, 8)},
    'null bytes': bytes(2000),
    'no tags': SOUND[:4] + struct.pack('<I', 0) + SOUND[8:],
    'tags behind the end': SOUND[:4] + struct.pack('<I', 1 << 30) + SOUND[8:],
    'tags in themselves': SOUND[:4] + struct.pack('<I', 4) + SOUND[8:],
    'a declaration of 4 GB': SOUND[: ENTRY + 4] + struct.pack('<I', (1 << 32) - 1) + SOUND[ENTRY + 8 :],
    'a declaration of another type': SOUND[: ENTRY + 2] + struct.pack('<H', 12) + SOUND[ENTRY + 4 :],
    'a declaration of no type': SOUND[: ENTRY + 2] + struct.pack('<H', 999) + SOUND[ENTRY + 4 :],
    'a declaration of nothing': SOUND[: ENTRY + 4] + struct.pack('<I', 0) + SOUND[ENTRY + 8 :],
    'a BigTIFF of nothing': b'II+\0' + bytes(60),
    'the other byte order': b'MM\0*' + SOUND[4:],
    'a text': b'II*\0 is how a TIFF begins, but this is none',
    'three channels': tiff(np.zeros((32, 32, 3), np.uint8), '0'),
    'one row': tiff(label()[:1], '0'),
}  # fmt: skip


def test_damaged_files_do_not_end_the_scan(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = make(tmp_path / 'set', files=30)
    for name, content in DAMAGED.items():
        (root / 'labels' / f'{name}.tif').write_bytes(content)
    os.mkfifo(root / 'labels' / 'pipe.tif')
    code = main(['scan', str(root / 'labels'), '--num-classes', '5', '--json', str(tmp_path / 'scan.json')])
    assert code == 1
    (dataset,) = json.loads((tmp_path / 'scan.json').read_text())['datasets']
    assert dataset['facts']['files'] == 30 + len(DAMAGED) + 1
    assert 'MG132' in {one['code'] for one in dataset['findings']}
    assert REPORT_IT not in ''.join(capsys.readouterr())


@pytest.mark.parametrize('name', sorted(set(DAMAGED) - {'a declaration of nothing'}))
def test_a_damaged_file_alone_is_not_clean(name: str, tmp_path: Path) -> None:
    (tmp_path / 'labels').mkdir()
    (tmp_path / 'labels/1.tif').write_bytes(DAMAGED[name])
    assert main(['scan', str(tmp_path / 'labels'), '--num-classes', '5']) in (1, 2)
