"""A label map with something wrong in its bytes is a finding, or mmseg's own loader returns what the scan counts."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Dict

import numpy as np
import pytest
from file_mutations import mutated
from label_files import BLOCKS, write
from pictures import png
from PIL import Image
from scans import codes, scan
from test_scan_read import every_form, record_of, stock

from mmguard.cli import main
from mmguard.formats.options import MapSettings
from mmguard.labels.rules import count_values

MUTATIONS = 40


def files(folder: Path) -> Dict[str, str]:
    made = {name: path for name, (path, _form) in every_form(folder).items()}
    made['webp'] = write(folder / 'p.webp', BLOCKS, lossless=True)
    made['pgm'] = write(folder / 'q.pgm', BLOCKS)
    made['targa'] = write(folder / 'r.tga', BLOCKS)
    for compression in ('tiff_lzw', 'tiff_adobe_deflate', 'packbits'):
        made[compression] = write(folder / f'{compression}.tif', BLOCKS, compression=compression)
    return made


@pytest.mark.parametrize('backend', ['pillow', 'cv2'])
def test_what_is_no_finding_is_loaded_as_it_is_counted(tmp_path: Path, backend: str) -> None:
    labels = MapSettings(256, backend=backend)
    clean = 0
    for name, path in files(tmp_path).items():
        content = Path(path).read_bytes()
        for number in range(MUTATIONS):
            file = tmp_path / f'mutated{Path(path).suffix}'
            file.write_bytes(mutated(content, np.random.default_rng([number, len(name), len(content)])))
            record = record_of(str(file), labels)
            if record.fault:
                continue
            clean += 1
            loaded = stock(str(file), labels)
            assert count_values(loaded) == record.as_loaded, (name, number)
            assert loaded.shape[:2] == record.shape, (name, number)
    assert clean > 30


@pytest.mark.parametrize('mode', ['CMYK', 'LAB', 'YCbCr'])
def test_colors_of_print_are_no_label_map(tmp_path: Path, mode: str, capsys: pytest.CaptureFixture) -> None:
    path = write(tmp_path / 'a.tif', np.stack([BLOCKS % 2] * 3, axis=2), mode, compression='raw')
    with Image.open(path) as image:
        if image.mode != mode:
            pytest.skip(f'pillow stores {image.mode} for {mode}')
    words = [str(tmp_path), '--num-classes', '256']
    assert main(['scan', *words, '--json', '-']) == 2
    assert mode in json.loads(capsys.readouterr().out)['failed'][0]
    write(tmp_path / 'b.png', BLOCKS % 2)  # next to a label map it is a file that cannot be used
    reported = scan(capsys, *words)
    assert (reported['code'], codes(reported)) == (1, ['MG132'])
    assert mode in json.dumps(reported['facts']['maps'])


@pytest.mark.skipif(sys.platform != 'linux', reason='other systems count other things as resident')
def test_a_header_alone_takes_no_memory(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    page = write(tmp_path / 'a.tif', np.zeros((9, 9), np.float32), compression='tiff_adobe_deflate')
    content = bytearray(Path(page).read_bytes())
    for tag in (256, 257, 278):  # width, height, rows of a strip
        place = content.index(tag.to_bytes(2, 'little') + b'\3\0\1\0\0\0')
        content[place + 8 : place + 10] = (13_000).to_bytes(2, 'little')
    (tmp_path / 'a.tif').write_bytes(content)
    (tmp_path / 'a.png').write_bytes(png(13_000, 13_000, b'', color=6))
    long = bytearray(Path(write(tmp_path / 'b.png', BLOCKS)).read_bytes())
    end = long.index(b'IEND') - 4
    long[end:end] = b'\x7f\xff\xff\xfftEXta'
    (tmp_path / 'b.png').write_bytes(long)
    faults = {'a.tif': 'too many pixels for its bytes', 'a.png': 'too many pixels for its bytes', 'b.png': 'truncated'}
    for name, fault in faults.items():
        assert record_of(str(tmp_path / name), MapSettings(256, backend='cv2')).fault == fault
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
