"""GeoTIFF: what a file declares as no data is named where it is trained; damaged files do not end the scan."""

from __future__ import annotations

import io
import json
import math
import os
import struct
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import pytest
from label_files import BLOCKS
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from mmguard.cli import main
from mmguard.tools.scan.geotiff import counted_as, without_odd_nodata

#: What GDAL calls the tag.
NODATA = 42113
CODE = 'MG155'


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


#: What the file 00 holds -> the severity, and what is said of it.
PLANTED: Dict[str, Tuple[bytes, str, str]] = {
    'a class': (tiff(label(0), '0'), 'warning', '0 in 1 file, 280 px, trained as 0'),
    'the last class': (tiff(label(4), '4'), 'warning', 'trained as 4'),
    'behind the classes': (tiff(label(5), '5'), 'error', '5 in 1 file, 32 px, trained as 5'),
    'far behind': (tiff(label(200), '200'), 'error', 'trained as 200'),
    '254': (tiff(label(254), '254'), 'error', 'trained as 254'),
    'a blank behind it': (tiff(label(99), '99 '), 'error', 'trained as 99'),
    'written as a fraction': (tiff(label(99), '99.0'), 'error', 'trained as 99'),
    '-9999 in 32 bits': (
        tiff(label(-9999, dtype=np.int32), '-9999'),
        'error',
        '-9999 in 1 file, 32 px, trained as 241',
    ),
    '65000 in 16 bits': (tiff(label(65000, dtype=np.uint16), '65000'), 'error', 'trained as 232'),
    '-9999 as a float': (tiff(label(-9999, dtype=np.float32), '-9999'), 'error', 'trained as 241'),
    'NaN': (tiff(label(math.nan, dtype=np.float32), 'nan'), 'error', 'trained as 0'),
    'the lowest float': (tiff(label(-3.4028235e38, dtype=np.float32), '-3.4028234663852886e+38'), 'error', 'as 0'),
    'compressed': (tiff(label(77), '77', compression='tiff_lzw'), 'error', 'trained as 77'),
}


@pytest.mark.parametrize('name', sorted(PLANTED))
def test_a_planted_value_is_named_with_its_file(name: str, tmp_path: Path) -> None:
    content, severity, said = PLANTED[name]
    root = make(tmp_path / 'set', content)
    code, found = scanned(root, tmp_path / 'scan.json')
    assert code == 1
    assert list(found) == [CODE], found.keys()
    assert found[CODE]['files'] == ['00.tif']
    assert found[CODE]['severity'] == severity
    assert said in found[CODE]['evidence']


def test_other_invalid_values_are_named_beside_it(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', tiff(label(-9999, 300, dtype=np.int32), '-9999'))
    assert {CODE, 'MG122'} <= set(scanned(root, tmp_path / 'scan.json')[1])
    root = make(tmp_path / 'other', tiff(label(99, 77), '99'))
    found = scanned(root, tmp_path / 'scan.json')[1]
    assert CODE in found
    assert len(found) > 1


#: What all files hold -> in how many ways it can be put right.
EDITS: Dict[str, Tuple[List[bytes], int]] = {
    'a class in some': ([tiff(label(0), '0')] * 12, 1),
    'behind the classes': ([tiff(label(9), '9')] * 12, 1),
    'two values': ([tiff(label(9), '9')] * 6 + [tiff(label(99), '99')] * 6, 1),
    'below 0': ([tiff(label(-9999, dtype=np.int32), '-9999')] * 12, 1),
    'below 0 and above': ([tiff(label(-9999, dtype=np.int32), '-9999'), tiff(label(9), '9')], 1),
    'the lowest float': ([tiff(label(-3.4028235e38, dtype=np.float32), '-3.4028234663852886e+38')] * 12, 1),
    'NaN': ([tiff(label(math.nan, dtype=np.float32), 'nan')] * 12, 1),
}


@pytest.mark.parametrize('name', sorted(EDITS))
def test_every_edit_followed_leaves_a_clean_set(name: str, tmp_path: Path) -> None:
    contents, least = EDITS[name]
    root = make(tmp_path / 'set', *contents)
    edits = scanned(root, tmp_path / 'scan.json')[1][CODE]['edits']
    assert len(edits) >= least
    for edit in edits:
        target, more = root, [word for name, value in dict(edit['options']).items() for word in _words(name, value)]
        if edit['files']:
            out = tmp_path / f'fixed {edit["number"]}'
            assert main(['fix', str(root), '--num-classes', '5', '--out', str(out), '--edit', str(edit['number'])]) == 0
            target, more = out, ['--images', str(root / 'images')]
        assert scanned(target, tmp_path / 'again.json', *more) == (0, {}), edit


def _words(name: str, value: Any) -> List[str]:
    text = ','.join(f'{old}:{new}' for old, new in dict(value).items()) if name == 'label_map' else str(value)
    return [f'--{name.replace("_", "-")}', text]


def test_a_value_that_is_a_class_in_other_files_is_not_mapped(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', tiff(label(0), '0'))
    (edit,) = scanned(root, tmp_path / 'scan.json')[1][CODE]['edits']
    assert 'without the declaration' in edit['text']


#: Sets without a fault.
CLEAN: Dict[str, bytes] = {
    'the ignored label': tiff(label(255), '255'),
    'declared, and in no pixel': tiff(label(), '-9999'),
    'nothing declared': tiff(label()),
    'no number': tiff(label(), 'none'),
    'a fraction': tiff(label(), '0.5'),
    'out of range of 8 bits': tiff(label(), '241000'),
    'empty': tiff(label(), ''),
    'bytes that are no text': tiff(label(), '\udcff'.encode('utf-8', 'surrogateescape').decode('latin-1')),
}


@pytest.mark.parametrize('name', sorted(CLEAN))
def test_clean_sets(name: str, tmp_path: Path) -> None:
    root = make(tmp_path / 'set', *[CLEAN[name]] * 12)
    assert scanned(root, tmp_path / 'scan.json') == (0, {})


def test_the_ignored_label_may_be_another(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', *[tiff(label(9), '9')] * 12)
    assert scanned(root, tmp_path / 'scan.json', '--ignore-index', '9') == (0, {})
    assert scanned(root, tmp_path / 'scan.json', '--label-map', '9:255') == (0, {})


def test_a_resumed_scan_knows_it(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', tiff(label(0), '0'))
    journal = ['--journal', str(tmp_path / 'journal.jsonl')]
    first = scanned(root, tmp_path / 'scan.json', *journal)
    assert scanned(root, tmp_path / 'scan.json', *journal, '--resume') == first


def test_numbers() -> None:
    assert counted_as('') is None
    far = without_odd_nodata(np.array([[1, 1 << 40]]), str(1 << 40))
    assert far.tolist() == [[1, -(1 << 31)]]
    same = np.array([[1, 2]])
    assert without_odd_nodata(same, 'nan') is same


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
    printed = capsys.readouterr()
    assert 'should not happen' not in printed.out + printed.err


@pytest.mark.parametrize('name', sorted(set(DAMAGED) - {'a declaration of nothing'}))
def test_a_damaged_file_alone_is_not_clean(name: str, tmp_path: Path) -> None:
    (tmp_path / 'labels').mkdir()
    (tmp_path / 'labels/1.tif').write_bytes(DAMAGED[name])
    assert main(['scan', str(tmp_path / 'labels'), '--num-classes', '5']) in (1, 2)
