"""`mmguard fix` on COCO JSON and VOC XML."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, Dict, List, Tuple

import coco_cases
import pytest
from coco_cases import ann
from pictures import picture
from put_file import put
from voc_cases import obj, xml

from mmguard.cli import main
from mmguard.formats.coco.write import correct_coco
from mmguard.formats.options import FixOptions

W, H = 100, 50


def run(*arguments: Any) -> int:
    return main(['fix', *map(str, arguments)])


def changes(out: Path) -> List[str]:
    """Return what the manifest lists of all files."""
    return [
        change for file in json.loads((out / 'mmguard.manifest').read_text())['files'] for change in file['changes']
    ]


def coco(annotations: List[Dict[str, Any]]) -> Dict[str, Any]:
    boxes = [{**ann(n, 1, 3, (1, 2, 3, 4)), **changes} for n, changes in enumerate(annotations)]
    record = coco_cases.coco(boxes, 1, {3: 'cat', 7: 'dog'}, size=(W, H), first_image=1)
    return dict(record, info=dict(description='mine'))


#: What is counted of an annotation -> what is wrong with it.
FAULTS: Dict[str, Dict[str, Any]] = {
    'label': dict(category_id=99),
    'box_no_area': dict(bbox=[1, 2, 0, 4]),
    'box_outside': dict(bbox=[W, 2, 3, 4]),
    'box_not_finite': dict(bbox=[1, 2, float('nan'), 4]),
    'image_not_listed': dict(image_id=2),
}


@pytest.fixture
def annotations(tmp_path: Path) -> Path:
    faulty = [*FAULTS.values(), dict(bbox=None), dict(bbox=['a', 1, 2, 3]), dict(category_id=[3])]
    good = [{}, dict(category_id=7, iscrowd=1), dict(bbox=[90, 40, 30, 30])]
    return put(tmp_path / 'in' / 'train.json', json.dumps(coco([good[0], *faulty, *good[1:]])))


def test_coco_keeps_what_can_be_trained_on(annotations: Path, tmp_path: Path, capsys: Any) -> None:
    before, out = annotations.read_bytes(), tmp_path / 'out'
    assert run(annotations, '--out', out) == 0
    assert annotations.read_bytes() == before
    corrected, original = json.loads((out / 'train.json').read_text()), json.loads(before)
    assert [annotation['id'] for annotation in corrected['annotations']] == [0, 9, 10]
    assert main(['scan', str(annotations)]) == 1
    assert main(['scan', str(out / 'train.json')]) == 0, capsys.readouterr().out
    by_id = {annotation['id']: annotation for annotation in original['annotations']}
    by_id[10].update(bbox=[90, 40, 10, 10], area=100)  # clamped into the image
    assert all(annotation == by_id[annotation['id']] for annotation in corrected['annotations'])
    assert {k: v for k, v in corrected.items() if k != 'annotations'} == {
        k: v for k, v in original.items() if k != 'annotations'
    }
    (record,) = json.loads((out / 'mmguard.manifest').read_text())['files']
    assert record['counts'] == dict(
        label=2, box_no_area=1, box_outside=1, box_not_finite=3, image_not_listed=1, clipped=1
    )
    assert record['values'] == {'99': 1, '[3]': 1}
    assert run(out / 'train.json', '--out', tmp_path / 'again') == 0
    assert changes(tmp_path / 'again') == []
    assert (tmp_path / 'again' / 'train.json').read_bytes() == (out / 'train.json').read_bytes()


def test_coco_areas_that_are_missing_are_added() -> None:
    record = coco([{}])
    del record['annotations'][0]['area']
    corrected = correct_coco(json.dumps(record).encode(), FixOptions())
    assert json.loads(corrected.data) == coco([{}])
    assert corrected.counts == {'area_added': 1}


def test_coco_categories_are_remapped(annotations: Path, tmp_path: Path) -> None:
    assert run(annotations, '--out', tmp_path / 'out', '--label-map', '99:7') == 0
    corrected = json.loads((tmp_path / 'out' / 'train.json').read_text())
    assert corrected['annotations'][1]['category_id'] == 7
    assert run(annotations, '--out', tmp_path / 'wrong', '--label-map', '99:5') == 1
    assert not (tmp_path / 'wrong' / 'train.json').exists()


@pytest.mark.parametrize('text', ['', '{', '[]', '{"images": 3}', '[' * 100_000, '{"images": [{}], "annotations": []}'])
def test_what_is_no_coco_is_left_out(text: str, tmp_path: Path, capsys: Any) -> None:
    path = put(tmp_path / 'in' / 'a.json', text)
    assert run(path, '--out', tmp_path / 'out') == 1
    assert 'a.json:' in capsys.readouterr().out
    assert not (tmp_path / 'out' / 'a.json').exists()


# ---- VOC


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / 'VOC2007'
    put(root / 'ImageSets' / 'Main' / 'train.txt', '1\n2\n')
    for stem in ('1', '2'):
        put(root / 'JPEGImages' / f'{stem}.jpg', picture(100, 80))
    faulty = [('unicorn', (1, 1, 9, 9)), ('cat', (5, 5, 5, 9)), ('cat', (1, 1, 9)), ('cat', (101, 1, 120, 9))]
    good = (obj('cat', (1, 1, 9, 9)), obj('dog', (90, 1, 120, 9)))
    put(root / 'Annotations' / '1.xml', xml(good[0], *(obj(*one) for one in faulty), good[1]))
    put(root / 'Annotations' / '2.xml', xml(good[0]))
    return root


def boxes(path: Path) -> List[Any]:
    return [
        (item.findtext('name'), *(item.findtext(f'bndbox/{s}') for s in ('xmin', 'ymin', 'xmax', 'ymax')))
        for item in ET.parse(path).iter('object')
    ]


def test_voc_keeps_what_can_be_trained_on(folder: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / 'out'
    before = (folder / 'Annotations' / '1.xml').read_bytes()
    assert run(folder, '--out', out, '--classes', 'cat,dog') == 0
    assert (folder / 'Annotations' / '1.xml').read_bytes() == before
    assert boxes(out / 'Annotations' / '1.xml') == [('cat', '1', '1', '9', '9'), ('dog', '90', '1', '101', '9')]
    assert (out / 'Annotations' / '2.xml').read_bytes() == (folder / 'Annotations' / '2.xml').read_bytes()
    assert (out / 'ImageSets' / 'Main' / 'train.txt').read_text() == '1\n2\n'
    records = {r['file']: r for r in json.loads((out / 'mmguard.manifest').read_text())['files']}
    counts = records['Annotations/1.xml']['counts']
    assert counts == dict(label=1, box_no_area=1, box_not_finite=1, box_outside=1, clipped=1)
    assert (out / 'JPEGImages' / '1.jpg').samefile(folder / 'JPEGImages' / '1.jpg')
    assert main(['scan', str(folder)]) == 1
    assert main(['scan', str(out)]) == 0, capsys.readouterr().out
    assert run(out, '--out', tmp_path / 'again', '--classes', 'cat,dog') == 0
    assert changes(tmp_path / 'again') == []


@pytest.mark.parametrize('below', [(), ('train', 'valid')])
def test_voc_beside_its_images(below: Tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root, out = tmp_path / 'set', tmp_path / 'out'
    for split in below or ('',):
        for number in range(12):
            put(root / split / f'{number}.jpg', picture(100, 80))
            flat = [obj('cat', (5, 5, 5, 9))] if split != 'valid' and number == 7 else []
            (root / split / f'{number}.xml').write_text(xml(obj('cat', (1, 1, 9, 9)), *flat))
    assert main(['scan', str(root)]) == 1
    said = ' '.join(capsys.readouterr().out.split())
    assert f'{os.path.join(*below[:1], "7.xml")}: 5, 5, 5, 9' in said
    assert run(root, '--out', out) == 0
    assert len(list(out.rglob('*.jpg'))) == len(list(root.rglob('*.jpg')))
    assert main(['scan', str(out)]) == 0, capsys.readouterr().out


def test_hostile_xml_is_left_out(folder: Path, tmp_path: Path) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><annotation>&d;</annotation>'
    hostile = {'bomb': bomb, 'cut': xml()[:-5], 'other': '<html/>', 'empty': ''}
    for name, text in hostile.items():
        (folder / 'Annotations' / f'{name}.xml').write_text(text)
    assert run(folder, '--out', tmp_path / 'out') == 1
    left_out = json.loads((tmp_path / 'out' / 'mmguard.manifest').read_text())['left_out']
    assert {one['file'] for one in left_out} == {f'Annotations/{name}.xml' for name in hostile}


def test_names_are_not_mapped_by_numbers(folder: Path, tmp_path: Path, capsys: Any) -> None:
    assert run(folder, '--out', tmp_path / 'out', '--label-map', '1:2') == 2
    assert '--classes' in capsys.readouterr().err
