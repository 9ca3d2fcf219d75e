"""Folders whose names are labels: counted as classifiers count them, and no label maps."""

from __future__ import annotations

import json
import shutil
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from pictures import encode
from put_file import put
from scans import scanned

from mmguard.cli import main

pytest.importorskip('PIL')


@lru_cache(maxsize=None)
def picture(mode: str = 'RGB', kind: str = 'JPEG') -> bytes:
    return encode(np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8), kind, mode)


def make(root: Path, *names: str, files: int = 4, content: bytes = b'', ending: str = 'jpg') -> Path:
    for name in names:
        for number in range(files):
            put(root / name / f'{number}.{ending}', content or picture())
    return root


def assert_named(folder: Path, *names: str) -> None:
    """The facts of a scan name what cannot be read as it should."""
    datasets = json.loads((folder / 'scan.json').read_text())['datasets']
    said = json.dumps([dataset['facts']['annotations'].get('unreadable') for dataset in datasets])
    assert all(name in said for name in names), said


@pytest.mark.parametrize('content', [picture(), picture(kind='PNG')])
def test_images_are_counted_by_folder(content: bytes, tmp_path: Path) -> None:
    make(tmp_path / 'set/train', 'dog', 'cat', 'cat/more', content=content)
    make(tmp_path / 'set/val', 'dog', 'cat', files=2, content=content)
    (tmp_path / 'set/train/dog/about.txt').write_text('dogs')
    (tmp_path / 'set/README.md').write_text('cats and dogs')
    code, found, facts = scanned(tmp_path / 'set', tmp_path / 'scan.json')
    assert (code, found, facts['total'], facts['histogram']) == (0, {}, 12, {'0': 8, '1': 4})
    assert (facts['class_names'], facts['annotations']['format']) == (['cat', 'dog'], 'images')
    code, found, facts = scanned(tmp_path / 'set/val', tmp_path / 'scan.json', '--classes', 'cat,dog')
    assert (code, found, facts['files']) == (0, {}, 4)
    assert scanned(tmp_path / 'set', tmp_path / 'scan.json', '--split', 'val')[2]['files'] == 4
    assert main(['scan', str(tmp_path / 'set'), '--split', 'test']) == 2
    (tmp_path / 'set/val').rename(tmp_path / 'set/valid')
    assert scanned(tmp_path / 'set', tmp_path / 'scan.json', '--split', 'train')[2]['files'] == 12
    (tmp_path / 'set/valid').rename(tmp_path / 'set/val')
    make(tmp_path / 'set/val', 'emu')
    code, found, _ = scanned(tmp_path / 'set/val', tmp_path / 'scan.json', '--num-classes', '2')
    assert (code, list(found)) == (1, ['MG108'])
    assert 'emu/0.jpg: 2' in found['MG108']


def test_splits_must_have_the_same_folders(tmp_path: Path) -> None:
    make(tmp_path / 'set/train', 'cat', 'cow', 'dog')
    make(tmp_path / 'set/val', 'cat', 'dog', 'horse')
    code, found, _ = scanned(tmp_path / 'set', tmp_path / 'scan.json')
    assert (code, list(found)) == (1, ['MG393'])
    assert_named(tmp_path, f'{tmp_path}/set/val', 'cow', 'horse')
    options = ['--split', 'train', '--classes', 'dog,cow,cat']
    assert 'MG393' in scanned(tmp_path / 'set', tmp_path / 'scan.json', *options)[1]


def test_a_hidden_folder_is_numbered(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', 'cat', 'dog')
    (root / '.ipynb_checkpoints').mkdir()
    code, found, facts = scanned(root, tmp_path / 'scan.json')
    assert (code, list(found), facts['histogram']) == (1, ['MG393'], {'1': 4, '2': 4})
    assert_named(tmp_path, '.ipynb_checkpoints')


def test_a_damaged_image_is_no_label_map(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', 'cat', 'dog')
    (root / 'cat/0.jpg').write_bytes(b'no image')
    assert scanned(root, tmp_path / 'scan.json')[2]['kind'] == 'instances'


def test_folders_of_something_else_are_fewer_than_the_classes(tmp_path: Path) -> None:
    make(tmp_path / 'videos', 'one', 'two')
    code, found, _ = scanned(tmp_path / 'videos', tmp_path / 'scan.json', '--num-classes', '19')
    assert (code, list(found)) == (1, ['MG393'])
    assert_named(tmp_path, f'{tmp_path}/videos: 2 of 19')


@pytest.mark.parametrize('folder', ['leftImg8bit', 'leftImg8bit/train', 'JPEGImages/480p'])
def test_images_of_segmentation_have_no_labels_in_their_folders(folder: str, tmp_path: Path) -> None:
    make(tmp_path / folder, 'aachen', 'bremen', content=picture(kind='PNG'), ending='png')
    code, found, _ = scanned(tmp_path / folder, tmp_path / 'scan.json')
    assert (code, list(found)) == (1, ['MG120'])


@pytest.mark.parametrize(
    ('name', 'kind', 'is_mask'),
    [
        ('{}_mask.tif', 'TIFF', True),
        ('{}_seg.png', 'PNG', True),
        ('{}_color_mask.png', 'PNG', True),
        ('{}_flipped.png', 'PNG', False),
    ],
)
def test_images_with_masks_next_to_them_are_not_classes(name: str, kind: str, is_mask: bool, tmp_path: Path) -> None:
    """Folders of patients or scenes, not of classes; an augmented photograph is not a mask."""
    ending = name.rpartition('.')[2]
    root = make(tmp_path / 'set', 'case_1', 'case_2', content=picture(kind=kind), ending=ending)
    for folder in root.iterdir():
        for number in range(4):
            (folder / name.format(number)).write_bytes(picture('L' if is_mask else 'RGB', kind))
    assert main(['scan', str(root)]) == (2 if is_mask else 0)
    if is_mask:
        facts = scanned(root, tmp_path / 'scan.json', f'--suffix={name.format("")}', '--num-classes', '256')[2]
        assert (facts['files'], facts['kind']) == (8, 'pixels')


def test_what_is_no_class_folder(tmp_path: Path) -> None:
    """Label maps by city, in gray or in few colors; images beside labels; photographs alone."""
    maps = encode(np.random.default_rng(0).integers(0, 5, (48, 64), np.uint8), mode='P')
    gray = make(tmp_path / 'gray/train', 'aachen', 'ulm', content=picture('L', 'PNG'), ending='png')
    drawn = encode(np.array([[[0, 0, 0], [90, 1, 3]]] * 2, np.uint8))
    color = make(tmp_path / 'color', 'aachen', 'ulm', content=drawn, ending='png')
    pairs = make(tmp_path / 'pairs', 'images')
    make(pairs, 'masks', content=maps, ending='png')
    alone = make(tmp_path / 'alone', 'photographs')
    for root in (gray, gray.parent, color, pairs, alone):
        assert scanned(root, tmp_path / 'scan.json')[2]['kind'] == 'pixels', root
    both = make(tmp_path / 'both', 'cat', 'dog')
    shutil.copy(both / 'cat/0.jpg', both / 'above.jpg')
    assert scanned(both, tmp_path / 'scan.json')[2]['kind'] == 'pixels'
