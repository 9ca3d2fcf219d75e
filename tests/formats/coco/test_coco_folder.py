"""Folders of COCO: each file is read with its images, and folders of label maps stay such."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from coco_cases import ann, coco
from pictures import picture
from PIL import Image
from put_file import put

from mmguard.cli import main

LAYOUTS = {
    'coco': ('annotations/instances_{}.json', 'images/{}'),
    'coco 2017': ('annotations/instances_{}2017.json', '{}2017'),
    'roboflow': ('{}/_annotations.coco.json', '{}'),
    'one': ('annotations.json', 'images'),
}


def make(root: Path, layout: str, category: int = 1) -> Path:
    """Writes a training and a validation set; ``category``: of the first annotation."""
    file, images = LAYOUTS[layout]
    for split in ('train', 'val') if '{}' in file else ('train',):
        names = [f'{split}_{number}.jpg' for number in range(6)]
        for name in names:
            put(root / images.format(split) / name, picture())
        boxes = [ann(n, n, n % 2 if n else category, (5, 5, 9, 9)) for n in range(6)]
        record = coco(boxes, 6, ['cat', 'dog'], 0, (64, 48))
        for image, name in zip(record['images'], names):
            image['file_name'] = name
        put(root / file.format(split), json.dumps(record))
    return root


def scanned(target: Path, out: Path, *options: str) -> Dict[str, Any]:
    """Name -> codes of findings; under ``''`` the exit code."""
    out.unlink() if out.exists() else None
    found: Dict[str, Any] = {'': main(['scan', str(target), '--json', str(out), *options])}
    for one in json.loads(out.read_text())['datasets'] if out.exists() else ():
        found[one['name']] = [finding['code'] for finding in one['findings'] if finding['severity'] != 'info']
    return found


@pytest.mark.parametrize('layout', sorted(LAYOUTS))
def test_each_file_is_read_with_its_images(layout: str, tmp_path: Path) -> None:
    root = make(tmp_path / 'set', layout)
    file, images = LAYOUTS[layout]
    (root / 'README.json').write_text('{"name": "mine"}')
    splits = ('train', 'val') if '{}' in file else ('train',)
    names = [file.format(split) for split in splits]
    assert scanned(root, tmp_path / 'scan.json') == {'': 0, **{name: [] for name in names}}
    (root / images.format('train') / 'train_3.jpg').unlink()
    assert scanned(root, tmp_path / 'scan.json') == {'': 1, **{name: [] for name in names}, names[0]: ['MG150']}
    if 'annotations/' in file:
        inside = {Path(name).name: ['MG150'] * (name == names[0]) for name in names}
        assert scanned(root / 'annotations', tmp_path / 'scan.json') == {'': 1, **inside}
    if layout == 'roboflow':
        assert scanned(root, tmp_path / 'scan.json', '--split', 'val') == {'': 0, names[1]: []}
        (root / 'val').rename(root / 'valid')
        assert scanned(root, tmp_path / 'scan.json', '--split', 'val') == {'': 0, names[1].replace('val', 'valid'): []}
        assert scanned(root, tmp_path / 'scan.json', '--split', 'test') == {'': 2}


def test_a_file_that_is_damaged_is_not_passed_over(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', 'coco')
    file = root / 'annotations/instances_train.json'
    for content in (b'', file.read_text().encode('utf-16'), bytes(90)):
        file.write_bytes(content)
        found = scanned(root, tmp_path / 'scan.json')
        assert 'MG132' in found['annotations/instances_train.json'], content[:9]
        assert found['annotations/instances_val.json'] == []


def test_the_only_folder_of_a_folder(tmp_path: Path) -> None:
    make(tmp_path / 'archive/set', 'coco')
    found = scanned(tmp_path / 'archive', tmp_path / 'scan.json', '--framework', 'mmdet')
    assert found == {'': 0, 'set/annotations/instances_train.json': [], 'set/annotations/instances_val.json': []}


def test_an_edit_of_one_of_the_files(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', 'roboflow', category=7)
    found = scanned(root, tmp_path / 'scan.json', '--framework', 'mmdet')
    assert [found[f'{split}/_annotations.coco.json'][0] for split in ('train', 'val')] == ['MG149', 'MG149']
    datasets = json.loads((tmp_path / 'scan.json').read_text())['datasets']
    edit = next(edit for edit in datasets[0]['findings'][0]['edits'] if edit['files'])
    (file,) = edit['files']
    assert file == str(root / 'train/_annotations.coco.json')
    words = ['fix', str(root), '--framework', 'mmdet', '--edit', str(edit['number'])]
    assert main([*words, '--out', str(tmp_path / 'fixed')]) == 0
    copy = tmp_path / 'fixed/_annotations.coco.json'
    found = scanned(copy, tmp_path / 'again.json', '--framework', 'mmdet')
    assert 'MG149' not in found[str(copy)]


def test_label_maps_beside_json_are_label_maps(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', 'coco')
    for number in range(6):
        Image.new('L', (64, 48), 1).save(root / f'annotations/{number}.png')
    assert scanned(root, tmp_path / 'scan.json', '--num-classes', '2')[''] == 1  # of the splits no image is found
    (dataset,) = json.loads((tmp_path / 'scan.json').read_text())['datasets']
    assert dataset['facts']['kind'] == 'pixels'


@pytest.mark.parametrize(
    'content', ['', '[]', '{"items": [], "dm_format_version": "1.0", "annotations": []}', '{"a": 1}']
)
def test_other_json_is_none(content: str, tmp_path: Path) -> None:
    put(tmp_path / 'annotations/train.json', content)
    assert scanned(tmp_path, tmp_path / 'out.txt') == {'': 2}


#: Categories of a validation file -> codes: without a framework, with ids as labels, with positions as labels.
NUMBERED: Dict[str, Tuple[List[Tuple[int, str]], List[bool]]] = {
    'the same': ([(1, 'van'), (2, 'bus'), (3, 'cab')], [False, False, False]),
    'other ids': ([(1, 'bus'), (2, 'cab'), (3, 'van')], [True, True, True]),
    'another order': ([(2, 'bus'), (1, 'van'), (3, 'cab')], [True, False, True]),
    'fewer names': ([(1, 'van'), (3, 'cab')], [True, False, True]),
    'other names': ([(7, 'kid'), (8, 'dog')], [False, False, False]),
}


@pytest.mark.parametrize('name', NUMBERED)
def test_the_categories_of_all_files_are_compared(name: str, tmp_path: Path) -> None:
    root = make(tmp_path / 'set', 'coco')
    categories, expected = NUMBERED[name]
    for split, listed in (('train', NUMBERED['the same'][0]), ('val', categories)):
        file = root / f'annotations/instances_{split}.json'
        data = json.loads(file.read_text())
        data['categories'] = [dict(id=number, name=word) for number, word in listed]
        for box in data['annotations']:
            box['category_id'] = listed[box['id'] % len(listed)][0]
        file.write_text(json.dumps(data))
    options: List[List[str]] = [[], ['--labels', 'ids'], ['--labels', 'positions']]
    found = [scanned(root, tmp_path / 'scan.json', *words) for words in options]
    assert [any('MG158' in codes for codes in one.values() if isinstance(codes, list)) for one in found] == expected
