"""Damaged YOLO label files and data.yaml files, and sets without a row, do not pass as clean ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, List

import pytest
from texts import make, picture, scanned

from mmguard.cli import main
from mmguard.findings.rules.labels.yolo import UnusableDataYaml
from mmguard.text import REPORT_ADVICE

TEXTS: Dict[str, bytes] = {
    'nothing but blanks': b' \t\n\n',
    'null bytes': b'0 0.5\0 0.5 0.1 0.1\n' * 3,
    'utf-16': '0 0.5 0.5 0.1 0.1\n'.encode('utf-16'),
    'byte order mark': b'\xef\xbb\xbf0 0.5 0.5 0.1 0.1\n',
    'latin-1': 'caf\xe9 0.5 0.5 0.1 0.1\n'.encode('latin-1'),
    'binary': bytes(range(256)) * 9,
    'a picture': picture(),
    'endless': b'1e999 0.5 0.5 0.1 0.1\n0 1e999 0.5 0.1 0.1\n',
    'nan': b'0 nan 0.5 0.1 0.1\nnan 0.5 0.5 0.1 0.1\n',
    'huge id': b'9' * 5000 + b' 0.5 0.5 0.1 0.1\n',
    'a long row': b'0 ' + b'0.5 ' * 70_001,
    'many short rows': b'0\n' * 5000,
    'commas': b'0,0.5,0.5,0.1,0.1\n',
    'a comma for a point': b'0 0,5 0,5 0,1 0,1\n',
    'carriage returns': b'0 0.5 0.5 0.1 0.1\r1 0.5 0.5 0.1 0.1 \r',
    'json': b'{"shapes": []}',
    'xml': b'<annotation><object/></annotation>',
    'cut off': b'0 0.5 0.5 0.1 0.1\n0 0.5 0.5 0.',
    'escapes': b'\x1b[31m0 0.5 0.5 0.1 0.1\x1b[0m\n',
    'other digits': '\u0663 0.5 0.5 0.1 0.1\n'.encode(),
    'zip': b'PK\x03\x04' + bytes(300),
}


def test_damaged_texts_do_not_end_the_scan(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = make(tmp_path / 'set', files=3)
    for name, content in TEXTS.items():
        (root / 'images/train' / f'{name}.jpg').write_bytes(picture())
        (root / 'labels/train' / f'{name}.txt').write_bytes(content)
    for name in ('folder', 'pipe', 'link', 'loop'):
        (root / 'images/train' / f'{name}.jpg').write_bytes(picture())
    (root / 'labels/train/folder.txt').mkdir()
    os.mkfifo(root / 'labels/train/pipe.txt')
    (root / 'labels/train/link.txt').symlink_to(tmp_path / 'nothing.txt')
    (root / 'labels/train/loop.txt').symlink_to(root / 'labels/train/loop.txt')
    for number, content in enumerate(
        (b'', b'\xff\xd8', picture()[:100], b'no image', b'\x89PNG\r\n\x1a\n' + bytes(40))
    ):
        (root / 'images/train' / f'image {number}.jpg').write_bytes(content)
        (root / 'labels/train' / f'image {number}.txt').write_text('0 0.5 0.5 0.1 0.1\n')
    found = scanned(root, tmp_path / 'scan.json')
    assert found[''] == ['1']
    assert {'MG132', 'MG163'} <= set(found)
    facts = json.loads((tmp_path / 'scan.json').read_text())['datasets'][0]['facts']
    said = json.dumps(facts['annotations']['unreadable'])
    assert all(f'labels/train/{name}.txt' in said for name in ('folder', 'pipe', 'link', 'loop'))
    assert all(f'image {number}.jpg' in said for number in range(5))
    assert facts['total'] == 9 + 2 + 1 + 5  # those of the whole texts, and readable rows of the damaged ones
    assert REPORT_ADVICE not in ''.join(capsys.readouterr())
    assert main(['fix', str(root), '--out', str(tmp_path / 'fixed')]) == 1  # those that cannot be read are left out


YAMLS = {
    'names as text': 'names: cat',
    'names as number': 'names: 3',
    'names with gaps': 'names: {0: cat, 2: dog}',
    'names by name': 'names: {cat: 0}',
    'names nested': 'names: [[a, b], {c: d}, null]',
    'a name twice': 'names: [cat, cat, dog]',
    'no names': 'names: []\nnc: 3',
    'nc as text': 'nc: three',
    'nc below zero': 'nc: -1',
    'nc huge': 'nc: 99999999999999999999',
    'nc other': 'nc: 2\nnames: [cat, dog, cow]',
    'kpt_shape short': 'nc: 3\nkpt_shape: [17]',
    'kpt_shape text': 'nc: 3\nkpt_shape: "17, 3"',
    'flip_idx': 'nc: 3\nkpt_shape: [3, 3]\nflip_idx: [0, 2]',
    'flip_idx alone': 'nc: 3\nflip_idx: [0, 2, 1]',
    'path is a number': 'nc: 3\npath: 7',
    'path with null': 'nc: 3\npath: "a\\0b"',
    'train is a number': 'nc: 3\ntrain: 5',
    'train is a table': 'nc: 3\ntrain: {a: b}',
    'train with null': 'nc: 3\ntrain: "images\\0"',
    'train is a file': 'nc: 3\ntrain: data.yaml',
    'val is nothing': 'nc: 3\nval: []',
    'a surrogate': 'names: ["\\ud800", b, c]',
}


@pytest.mark.parametrize('name', sorted(YAMLS))
def test_damaged_data_yaml(name: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = make(tmp_path / 'set', files=2)
    text = YAMLS[name]
    for key in ('train', 'val'):
        text += '' if f'{key}:' in text else f'\n{key}: images/train'
    (root / 'data.yaml').write_text(text + '\n')
    code = main(['scan', str(root), '--json', str(tmp_path / 'scan.json')])
    # Values that ultralytics reads as a name, or leaves out, are not faults.
    assert (code == 0) == (name in ('path is a number', 'path with null', 'no names', 'names nested', 'a surrogate'))
    assert REPORT_ADVICE not in ''.join(capsys.readouterr())


@pytest.mark.parametrize(
    ('lines', 'way'),
    [
        (['names: [cat]', 'train: images/train'], 'path'),
        (['names: [cat, dog]', 'train: images/train', 'val: 5'], 'path'),
        (['names: [cat]', 'nc: 3', 'train: images/train', 'val: images/train'], 'names'),
        (['nc: 2', 'kpt_shape: 7', 'train: images/train', 'val: images/train'], 'kpt_shape'),
    ],
)
def test_each_fault_of_a_data_yaml_has_its_advice(lines: List[str], way: str, tmp_path: Path) -> None:
    root = make(tmp_path / 'set', files=2)
    (root / 'data.yaml').write_text('\n'.join(lines) + '\n')
    main(['scan', str(root), '--json', str(tmp_path / 'scan.json')])
    datasets = json.loads((tmp_path / 'scan.json').read_text())['datasets']
    advice = {finding['advice'] for one in datasets for finding in one['findings'] if finding['code'] == 'MG168'}
    assert advice == {next(text for key, text in UnusableDataYaml.ways.items() if way in key)}


def test_a_set_without_a_row_is_not_clean(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', files=2)
    for path in (root / 'labels/train').iterdir():
        path.write_text('')
    assert main(['scan', str(root / 'data.yaml')]) == 2
    for path in (root / 'labels/train').iterdir():
        path.unlink()
    assert main(['scan', str(root / 'data.yaml')]) == 2
    (root / 'data.yaml').write_text('train: images/none\nval: images/none\nnc: 2\n')
    assert main(['scan', str(root / 'data.yaml')]) == 2


def test_without_a_label_file_nothing_is_copied(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = make(tmp_path / 'set', files=2)
    (root / 'data.yaml').write_text('train:\nval:\nnames: [cat]\n')
    assert main(['fix', str(root / 'data.yaml'), '--out', str(tmp_path / 'fixed')]) == 2
    assert 'data.yaml' in capsys.readouterr().err
    assert not (tmp_path / 'fixed').exists()


@pytest.mark.parametrize(
    ('flips', 'code'),
    [
        ([0, 2, 1], 0),
        ([2, 1, 0], 0),
        ([], 0),
        ([1, 2, 0], 1),
        ([0, 1], 1),
        ([0, 1, 1], 1),
        ('0, 2, 1', 1),
    ],
)
def test_flip_idx_exchanges_the_keypoints_of_kpt_shape(flips: Any, code: int, tmp_path: Path) -> None:
    root = make(tmp_path / 'set', 'keypoints', files=2, flip_idx=flips)
    found = scanned(root, tmp_path / 'scan.json')
    assert found[''] == [str(code)]
    assert [fault for fault in found.get('MG168', []) if 'flip_idx' in fault][:1] == found.get('MG168', [])[:1]
    assert ('MG168' in found) == bool(code)
