"""Masks in colour with their list of classes, as CVAT exports them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Tuple

import numpy as np
import pytest
from PIL import Image

from mmguard.cli import main

FILES = 6
LABELMAP = '# label:color_rgb:parts:actions\nbackground:0,0,0::\ncar:61,61,245::\nroad:250,50,83::\n'


def image(path: Path, array: Any = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((48, 64, 3), 120, np.uint8) if array is None else array).save(path)


def text(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def masks(root: Path, images: bool = False, stray: bool = False) -> Path:
    for number in range(FILES):
        label = np.zeros((48, 64, 3), np.uint8)
        label[5:20, 5:20], label[30:40] = (61, 61, 245), (250, 50, 83)
        if stray and number == 3:
            label[0, :9] = (1, 2, 3)
        image(root / f'SegmentationClass/{number}.png', label)
        image(root / f'SegmentationObject/{number}.png', label // 2)
        if images:
            image(root / f'JPEGImages/{number}.jpg')
    text(root / 'ImageSets/Segmentation/default.txt', '\n'.join(map(str, range(FILES))) + '\n')
    text(root / 'labelmap.txt', LABELMAP)
    return root


def scanned(target: Path, out: Path, *options: str) -> Tuple[int, Dict[str, Any]]:
    """The exit code, and code -> finding, what is no fault left out."""
    code = main(['scan', str(target), '--processes', '1', '--json', str(out), *options])
    datasets = json.loads(out.read_text())['datasets']
    return code, {one['code']: one for dataset in datasets for one in dataset['findings'] if one['severity'] != 'info'}


@pytest.mark.parametrize('images', [False, True])
@pytest.mark.parametrize('place', ['', 'SegmentationClass'])
def test_colours_become_the_classes_of_the_list(place: str, images: bool, tmp_path: Path) -> None:
    root = masks(tmp_path / 'set', images)
    code, found = scanned(root / place, tmp_path / 'scan.json')
    assert (code, list(found)) == (1, ['MG120'])
    (edit,) = found['MG120']['edits']
    assert edit['applicability'] == 'safe'
    assert main(['fix', str(root / place), '--out', str(tmp_path / 'fixed'), '--edit', 'safe']) == 0
    assert scanned(tmp_path / 'fixed', tmp_path / 'again.json', '--num-classes', '3') == (0, {})
    with Image.open(tmp_path / 'fixed/0.png') as written:
        assert (written.mode, written.getpixel((6, 6)), written.getpixel((6, 31))) == ('L', 1, 2)


def test_a_colour_that_the_list_does_not_have_is_named(tmp_path: Path) -> None:
    root = masks(tmp_path / 'set', stray=True)
    finding = scanned(root, tmp_path / 'scan.json')[1]['MG120']
    assert [edit['applicability'] for edit in finding['edits']] == ['asks']
    assert main(['fix', str(root), '--out', str(tmp_path / 'fixed'), '--edit', '1']) == 0
    assert scanned(tmp_path / 'fixed', tmp_path / 'again.json', '--num-classes', '3') == (0, {})


@pytest.mark.parametrize('content', ['', 'car:::\n', 'car:1,2\n', 'car:300,2,3::\n', '\0\n', 'car\n'])
def test_a_list_that_says_nothing_is_left_alone(content: str, tmp_path: Path) -> None:
    root = masks(tmp_path / 'set')
    text(root / 'labelmap.txt', content)
    code, found = scanned(root, tmp_path / 'scan.json')
    assert (code, list(found)) == (1, ['MG120'])
    assert 'safe' not in [edit['applicability'] for edit in found['MG120']['edits']]
