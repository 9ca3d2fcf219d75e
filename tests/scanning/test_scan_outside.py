"""What a record names outside of its data set is not looked at, and counts as missing; honest layouts are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pictures import picture
from PIL import Image
from put_file import put

from mmguard.facts.labels import AnnotationFacts
from mmguard.files.containment import OUTSIDE_REASON
from mmguard.formats.coco import find_coco_files
from mmguard.formats.coco.read import scan_coco
from mmguard.formats.yolo import find_yolo_sets
from mmguard.scanning.config_instances import scan_detection_config

#: In a folder two below the one of the test; there a picture of another size lies at the end of each.
NAMES = [
    '../../../key.jpg',
    '{tmp}/key.jpg',
    r'..\..\..\key.jpg',
    r'C:\key.jpg',
    r'\\host\key.jpg',
    'a\nkey.jpg',
    'a\0key.jpg',
]
#: A folder of settings may lie anywhere on this machine.
FOREIGN = NAMES[3:]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    Image.new('RGB', (9, 9)).save(tmp_path / 'key.jpg')
    return str(request.param).replace('{tmp}', str(tmp_path))


def coco(root: Path, name: str, **more: Any) -> AnnotationFacts:
    put(root / 'images' / 'a.jpg', picture(48, 32))
    images = [dict(id=n, file_name=file, width=48, height=32) for n, file in enumerate(('a.jpg', name), 1)]
    boxes = [dict(id=n, image_id=n, category_id=1, bbox=[1, 1, 9, 9], area=81, iscrowd=0) for n in (1, 2)]
    path = root / 'train.json'
    path.write_text(json.dumps(dict(images=images, annotations=boxes, categories=[dict(id=1, name='x')])))
    return found_in(scan_coco(str(path), images=str(root / 'images'), **more))


def found_in(facts: Any) -> AnnotationFacts:
    assert isinstance(facts.annotations, AnnotationFacts)
    return facts.annotations


def test_coco(name: str, tmp_path: Path) -> None:
    found = coco(tmp_path / 'one' / 'two', name)
    assert (found.missing, found.sizes_compared, found.size_mismatches) == (1, 1, [])
    # What is no folder on this system is looked for in the listing of the folder, in vain.
    assert (OUTSIDE_REASON in found.missing_files[0]) == ('/' in name)


def test_label_maps_of_coco(name: str, tmp_path: Path) -> None:
    found = coco(tmp_path / 'one' / 'two', name, maps=(str(tmp_path / 'one' / 'two' / 'images'), '.jpg'))
    assert [len(places) for places in found.unreadable.values()] == [1]


def test_the_folder_of_the_images_of_coco_is_not_found_outside(name: str, tmp_path: Path) -> None:
    root = tmp_path / 'one' / 'two'
    coco(root, name)
    record = json.loads((root / 'train.json').read_text())
    (root / 'train.json').write_text(json.dumps({**record, 'images': record['images'][1:]}))
    (root / 'images' / 'a.jpg').unlink()
    assert [file.images for file in find_coco_files(str(root))] == ['']


def test_panoptic(name: str, tmp_path: Path) -> None:
    root = tmp_path / 'one' / 'two'
    (root / 'train').mkdir(parents=True)
    (tmp_path / 'key.jpg').unlink()
    Image.new('RGB', (9, 9), (5, 0, 0)).save(tmp_path / 'key.png')
    name = name.replace('.jpg', '.png')
    one = dict(
        image_id=1, file_name=name, segments_info=[dict(id=1, category_id=1, area=9, bbox=[0, 0, 3, 3], iscrowd=0)]
    )
    images = [dict(id=1, file_name=name, width=48, height=32)]
    categories = [dict(id=1, name='x', isthing=1)]
    (root / 'train.json').write_text(json.dumps(dict(images=images, annotations=[one], categories=categories)))
    assert scan_coco(str(root / 'train.json')).coco.mask_faults == {}


def test_lists_of_voc(name: str, tmp_path: Path) -> None:
    root = tmp_path / 'one' / 'two'
    put(root / 'JPEGImages' / 'a.jpg', picture(48, 32))
    xml = '<annotation><object><name>{}</name></object></annotation>'
    put(root / 'Annotations' / 'a.xml', xml.format('x'))
    for place in (tmp_path, tmp_path / 'one'):
        (place / 'key.xml').write_text(xml.format('private'))
    put(root / 'ImageSets' / 'Main' / 'train.txt', f'a\n{name[:-4]}\n')
    dataset = dict(type='XMLDataset', data_root=str(root), ann_file='ImageSets/Main/train.txt')
    dataset.update(data_prefix=dict(sub_data_root=''), metainfo=dict(classes=('x',)))
    found = found_in(scan_detection_config(dict(default_scope='mmdet', train_dataloader=dict(dataset=dataset))))
    assert list(found.instances_of) == ['x']
    if '\n' not in name:
        assert (found.missing, len(found.unreadable)) == (0, 2)


@pytest.mark.parametrize('name', FOREIGN)
def test_lists_of_yolo_and_its_data_yaml_name_no_other_host(name: str, tmp_path: Path) -> None:
    put(tmp_path / 'images' / 'a.jpg', picture(48, 32))
    (tmp_path / 'train.txt').write_text(f'./images/a.jpg\n{name}\n')
    (tmp_path / 'data.yaml').write_text(json.dumps(dict(train='train.txt', val=name, path=name, names=['x'])))
    (train,) = find_yolo_sets(str(tmp_path / 'data.yaml'))
    listing = train.list_files()
    assert listing.images == 1
    assert len(listing.missing) == 1
    assert len(train.declared.faults) == 1


@pytest.mark.parametrize('way', ['../elsewhere/images', '{tmp}/elsewhere/images', 'link/images', 'list.txt'])
def test_a_data_yaml_leads_to_another_folder(way: str, tmp_path: Path) -> None:
    put(tmp_path / 'elsewhere' / 'images' / 'a.jpg', picture(48, 32))
    put(tmp_path / 'set' / 'list.txt', f'{tmp_path}/elsewhere/images/a.jpg\n')
    (tmp_path / 'set' / 'link').symlink_to(tmp_path / 'elsewhere')
    said = dict(train=way.replace('{tmp}', str(tmp_path)), val='', names=['x'])
    (tmp_path / 'set' / 'data.yaml').write_text(json.dumps(said))
    (train,) = find_yolo_sets(str(tmp_path / 'set' / 'data.yaml'))
    assert (train.list_files().images, train.list_files().missing) == (1, [])
