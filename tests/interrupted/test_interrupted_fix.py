"""`mmguard fix` that is interrupted at any moment: what it wrote is whole, and run again it writes the rest."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, List

import pytest
from interruptions import check
from PIL import Image

from mmguard.cli import main


@pytest.fixture
def voc(tmp_path: Path) -> Path:
    root = tmp_path / 'VOC2007'
    for name in ('Annotations', 'JPEGImages', 'ImageSets/Main'):
        (root / name).mkdir(parents=True)
    (root / 'ImageSets' / 'Main' / 'train.txt').write_text('\n'.join(map(str, range(16))))
    for number in range(16):
        box = '<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>90</xmax><ymax>30</ymax></bndbox>'
        size = '<size><width>80</width><height>60</height></size>'
        xml = f'<annotation>{size}<object><name>cat</name>{box}</object></annotation>'
        (root / 'Annotations' / f'{number}.xml').write_text(xml)
        Image.new('RGB', (80, 60)).save(root / 'JPEGImages' / f'{number}.jpg')
    return root


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    path = tmp_path / 'in' / 'train.json'
    path.parent.mkdir()
    images = [dict(id=n, file_name=f'{n}.jpg', width=100, height=100) for n in range(200)]
    annotations = [dict(id=n, image_id=n % 200, category_id=1, bbox=[50, 50, 60, 9], area=540) for n in range(2000)]
    path.write_text(json.dumps(dict(images=images, annotations=annotations, categories=[dict(id=1, name='cat')])))
    return path


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize('kind', ['maps', 'voc', 'coco'])
def test_an_interrupted_fix_goes_on(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    target = request.getfixturevalue(kind)
    options: List[Any] = ['--num-classes', 3] if kind == 'maps' else []
    place = tmp_path / 'place'
    check(['fix', target, '--out', place / 'out', *options], place, begun=['out/manifest.json'])


@pytest.mark.parametrize('left', [['.manifest.json.part'], ['.manifest.json.ab12cd34.part', '.0.png.12ab34cd.part']])
def test_a_folder_that_holds_nothing_but_what_was_begun_is_taken_over(
    left: List[str], maps: Path, tmp_path: Path
) -> None:
    out = tmp_path / 'out'
    out.mkdir()
    for name in left:
        (out / name).write_bytes(b'half')
    assert main(['fix', str(maps), '--out', str(out), '--num-classes', '3']) == 0
    assert sorted(os.listdir(out)) == ['city_0', 'city_1', 'city_2', 'manifest.json']


def test_what_an_interrupted_run_left_is_no_target(maps: Path, tmp_path: Path, capsys: Any) -> None:
    command = ['fix', str(maps), '--out', str(tmp_path / 'out'), '--num-classes', '3', '--label-map', '0:1,1:0']
    assert main(command) == 0
    manifest = tmp_path / 'out' / 'manifest.json'
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), 'finished': False}))
    assert main(['fix', str(tmp_path / 'out'), *command[2:3], str(tmp_path / 'again'), *command[4:]]) == 2
    assert str(tmp_path / 'out') in capsys.readouterr().err
    assert main(command) == 0
    assert main(['fix', str(tmp_path / 'out'), *command[2:3], str(tmp_path / 'again'), *command[4:]]) == 0
