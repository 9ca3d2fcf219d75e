"""Checks of the rows of SECURITY.md on limits of size and time, names, links and written files."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from security_rows import COCO, count_unreadable, line, png, scan, scan_facts, write, write_yolo

from mmguard.cli import main
from mmguard.commands.child import build_python_command
from mmguard.commands.explain import log_errors
from mmguard.files import images, plain_data
from mmguard.formats.coco import masks
from mmguard.formats.coco.file import BLOCK
from mmguard.formats.format import LARGEST, MANIFEST
from mmguard.formats.maps import forms
from mmguard.formats.voc import records as voc_xml
from mmguard.formats.yolo import data_yaml as declared
from mmguard.formats.yolo import rows as settings
from mmguard.log import run_log


@line('an image')
def check_image(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    for figure in (images.FREE, images.MOST_PER_BYTE, images.MOST_SCANNED, images._TIMES):
        assert f'{figure:,}' in row
    limits = [images.MOST_DECODED, images.MOST_DECODED // 2, images.MOST_DECODED // 3, images._READ]
    assert re.findall(r'(\d+) MiB', row) == [str(limit >> 20) for limit in limits]
    assert f'{images._CALL >> 10} KiB' in row
    assert images._BYTES['I'] == images._BYTES['F'] == 8
    header = b'IHDR' + (13_000).to_bytes(4, 'big') * 2 + png()[24:29]
    bomb = png()[:12] + header + zlib.crc32(header).to_bytes(4, 'big') + png()[33:]
    write(folder, maps__a_png=bomb, maps__b_png=png())
    facts = scan_facts('maps', folder, '--num-classes', 3)
    assert list(facts['maps']['unreadable']) == ['too many pixels for its bytes']


@line('a NumPy file, a volume')
def check_volume(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    volume = pytest.importorskip('mmguard.formats.volumes')
    assert row.startswith(f'{forms._LARGEST_ARRAY >> 20} MiB')
    assert f'{volume.MOST_VOXELS >> 30} GiB' in row
    assert f'{volume.MOST_INFLATED:,} times' in row
    head = b"{'descr': '|u1', 'fortran_order': False, 'shape': (30000, 30000), }"
    array = b'\x93NUMPY\1\0' + len(head).to_bytes(2, 'little') + head
    write(folder, maps__a_npy=array)
    with (folder / 'maps/a.npy').open('r+b') as file:
        file.truncate(len(array) + 30_000**2)  # takes no disk
    np.save(folder / 'maps' / 'b.npy', np.zeros((4, 4), np.uint8))
    facts = scan_facts('maps', folder, '--num-classes', 3, '--suffix', '.npy')
    assert list(facts['maps']['unreadable']) == ['too large']


@line('masks of a COCO file')
def check_masks(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert f'{masks.MOST_DRAWN:,} points' in row
    assert f'{masks.MOST_CHARACTERS:,} characters' in row
    assert f'{BLOCK >> 20} MiB' in row
    zigzag = [x for n in range(12_000) for x in ((0.0, 0.0) if n % 2 else (16_000.0, 16_000.0))]
    rle = {'size': [8, 8], 'counts': '1' * (masks.MOST_CHARACTERS + 1)}
    annotations = [{**COCO['annotations'][0], 'segmentation': mask} for mask in ([zigzag], rle)]
    write(folder, train_json={**COCO, 'annotations': annotations})
    faults = scan_facts('train.json', folder, '--masks')['annotations']['mask_faults']
    assert faults == {masks.MASK_FAULTS[-1]: 2}


@line('folders')
def check_folders(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    write(folder, set__data_yaml='path: /proc\ntrain: self\nval: self\nnames: [a]\n', set__a_txt='0 .5 .5 .1 .1\n')
    assert scan('set') == 1
    assert '/proc/self' in capsys.readouterr().out
    write(folder, maps__a_png=png())
    for place in ('/proc', '/sys', '/dev'):
        assert place in row
        (folder / 'maps' / place[1:]).symlink_to(place)
    assert count_unreadable(scan_facts('maps', folder, '--num-classes', 3)) == 3


@line('a file that `fix` corrects')
def check_corrected(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert row == f'{LARGEST >> 30} GiB'
    write(folder, maps__a_png=png())
    with (folder / 'maps' / 'b.png').open('wb') as file:
        file.truncate(LARGEST + 1)
    assert main(['fix', 'maps', '-o', 'out', '--num-classes', '3']) == 1
    assert sorted(os.listdir('out')) == ['a.png', MANIFEST]


@line('the log of a training')
def check_log(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert f'{run_log._LARGEST >> 20} MiB' in row


@line('YAML, JSON of settings')
def check_spread(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert f'{plain_data.LARGEST:,} values' in row
    assert f'{plain_data.DEEPEST} levels' in row


@line('texts of a data set')
def check_texts(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert voc_xml.LARGEST == settings._LARGEST
    limits = [voc_xml.LARGEST, declared._LARGEST, plain_data.LARGEST_WEIGHTS]
    assert re.findall(r'(\d+) MiB', row) == [str(limit >> 20) for limit in limits]
    write_yolo(folder / 'yolo', label='#' * (settings._LARGEST + 1))
    write(folder, voc__Annotations__a_xml=b' ' * (voc_xml.LARGEST + 1))
    for target in ('yolo', 'voc'):
        unreadable = scan_facts(target, folder)['annotations']['unreadable']
        assert any('64 MiB' in fault for fault in unreadable)
    with pytest.raises(ValueError):
        plain_data.parse_weights(bytes(plain_data.LARGEST_WEIGHTS + 1), '.yaml')


@line('a line of a log')
def check_line(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert row.startswith(f'{log_errors.LONGEST >> 10} KiB')
    assert len(log_errors.read_line(b'x' * 100_000).text) == log_errors.LONGEST


@line('paths in settings')
def check_settings(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    write_yolo(folder / 'there')
    write(folder, set__data_yaml=f'path: {folder}/there\ntrain: images\nval: images\nnames: [a]\n')
    assert scan_facts('set/data.yaml', folder)['annotations']['annotations'] == 1
    before = sorted(folder.rglob('*'))
    assert main(['fix', 'set/data.yaml', '-o', 'out']) == 2
    assert sorted(folder.rglob('*')) == before


@line('`fix --out`')
def check_fix_out(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert f'`{MANIFEST}`' in row  # what is written where, tests/commands/fix looks at


@line('a file that is written')
def check_whole(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    resource = pytest.importorskip('resource')
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (300, 300))
    write(folder, maps__a_png=png(), facts_json='')
    code = 'import sys, mmguard.cli; sys.exit(mmguard.cli.main(sys.argv[1:]))'
    words = [*build_python_command(code), *['scan', 'maps', '--num-classes', '3', '--json', 'facts.json']]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    before = (folder / 'facts.json').read_bytes()
    full = subprocess.run(words, preexec_fn=limit, check=False, capture_output=True)
    assert full.returncode == 2
    assert b'facts.json' in full.stderr
    assert (folder / 'facts.json').read_bytes() == before
    assert not [name for name in os.listdir(folder) if name.endswith('.part')]
