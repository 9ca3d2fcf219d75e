"""GeoTIFF that pillow does not decode, and rasterio does: they are read where it is installed."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
import rasterio
from label_files import BLOCKS
from PIL import Image

from mmguard.cli import main

#: Kind of file -> how rasterio writes it.
KINDS: Dict[str, Dict[str, Any]] = {
    'floats of 64 bits': dict(dtype='float64', nodata=-9999.0),
    'whole numbers of 64 bits': dict(dtype='int64', nodata=-9999),
    'lerc': dict(dtype='uint8', nodata=99, compress='lerc'),
}


def make(root: Path, **options: Any) -> Path:
    for folder in ('images', 'labels'):
        (root / folder).mkdir(parents=True)
    for number in range(12):
        Image.new('RGB', (32, 32)).save(root / 'images' / f'{number:02d}.jpg')
        label = BLOCKS.astype(options['dtype'])
        label[0] = options['nodata']
        write(root / 'labels' / f'{number:02d}.tif', label[None], **options)
    return root


def write(path: Path, bands: np.ndarray, **options: Any) -> None:
    count, height, width = bands.shape
    shape = dict(count=count, height=height, width=width)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of files that lie nowhere on earth
        with rasterio.open(path, 'w', driver='GTiff', **shape, **options) as file:
            file.write(bands)


def scanned(root: Path, out: Path, *more: str) -> Any:
    code = main(['scan', str(root), '--num-classes', '5', '--processes', '1', '--json', str(out), *more])
    (dataset,) = json.loads(out.read_text())['datasets']
    return code, {one['code']: one for one in dataset['findings'] if one['code'] != 'MG100'}


@pytest.mark.parametrize('name', sorted(KINDS))
def test_they_are_read(name: str, tmp_path: Path) -> None:
    root = make(tmp_path / 'set', **KINDS[name])
    code, found = scanned(root, tmp_path / 'scan.json')
    assert (code, list(found)) == (1, ['MG107' if name == 'lerc' else 'MG122'])
    out = tmp_path / 'fixed'
    assert main(['fix', str(root / 'labels'), '--num-classes', '5', '--out', str(out)]) == 0
    assert scanned(out, tmp_path / 'again.json', '--images', str(root / 'images')) == (0, {})


def test_without_rasterio_they_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / 'set', **KINDS['lerc'])
    monkeypatch.setitem(sys.modules, 'rasterio', None)
    code, found = scanned(root, tmp_path / 'scan.json')
    assert (code, list(found)) == (1, ['MG132'])


def test_several_bands_are_no_label_map_and_may_be_an_image(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', dtype='uint8', nodata=255)
    for number in range(12):
        (root / 'images' / f'{number:02d}.jpg').unlink()
        write(root / 'images' / f'{number:02d}.tif', np.zeros((6, 32, 32 + (number == 3)), np.uint16), dtype='uint16')
    code, found = scanned(root, tmp_path / 'scan.json')
    assert (code, list(found)) == (1, ['MG130'])
    write(root / 'labels/05.tif', np.zeros((6, 32, 32), np.uint8), dtype='uint8')
    assert '6 bands: 05.tif' in scanned(root, tmp_path / 'scan.json')[1]['MG132']['evidence']


def test_a_file_that_is_cut_off_does_not_end_the_scan(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', **KINDS['floats of 64 bits'])
    content = (root / 'labels/00.tif').read_bytes()
    for part in range(1, 12):
        (root / 'labels' / f'{part:02d}.tif').write_bytes(content[: len(content) * part // 12])
    code, found = scanned(root, tmp_path / 'scan.json')
    assert code == 1
    assert {'MG132', 'MG122'} <= set(found)
