"""VOC: counts equal mmdet's, and no XML ends the scan."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Sequence

import numpy as np
import pytest
from pictures import picture
from PIL import Image
from put_file import put
from voc_cases import obj, xml

from mmguard.facts.labels import LabelFacts
from mmguard.findings import diagnose
from mmguard.formats.options import FixOptions
from mmguard.formats.voc import scan_voc
from mmguard.formats.voc.records import NotCorrected, correct_voc
from mmguard.scanning.config_instances import scan_detection_config

pytest.importorskip('mmseg')

NAMES = ['cat', 'dog', 'bird']


def write(root: Path, files: Dict[str, Any]) -> str:
    for stem, text in files.items():
        put(root / 'Annotations' / f'{stem}.xml', text)
        put(root / 'JPEGImages' / f'{stem}.jpg', picture(100, 80))
    put(root / 'ImageSets' / 'Main' / 'train.txt', '\n'.join(files))
    return str(root)


def voc(root: str, names: Sequence[str], split: str = 'train', **filters: Any) -> Dict[str, Any]:
    dataset = dict(type='XMLDataset', data_root=root, ann_file=f'ImageSets/Main/{split}.txt', filter_cfg=filters)
    return {**dataset, 'data_prefix': dict(sub_data_root=''), 'metainfo': dict(classes=tuple(names))}


def scan_split(root: str, **options: Any) -> LabelFacts:
    return scan_detection_config(dict(train_dataloader=dict(dataset=voc(root, NAMES, **options))))


def trained_by_mmdet(root: str, names: Sequence[str], **filters: Any) -> Dict[int, int]:
    from mmdet.registry import DATASETS

    dataset = DATASETS.build({**voc(root, names, **filters), 'pipeline': [], 'serialize_data': False})
    labels = [i['bbox_label'] for image in dataset.data_list for i in image['instances'] if not i['ignore_flag']]
    return dict(sorted(Counter(labels).items()))


@pytest.mark.parametrize('seed', range(4))
def test_the_histogram_is_what_mmdet_trains(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    files, boxes = {}, []
    for number in range(12):
        objects = []
        for _ in range(int(random.integers(0, 6))):
            box = [str(random.choice([-5, 0, 1, 1.9, 20, 60.5, 99, 100, 101, 150])) for _ in range(4)]
            name, difficult = str(random.choice([*NAMES, 'fish'])), int(random.random() < 0.2)
            part = '<part><name>head</name><bndbox><xmin>1</xmin></bndbox></part>'
            objects.append(obj(name, box, difficult, part if random.random() < 0.3 else ''))
            if name != 'fish':
                boxes.append([int(float(value)) - 1 for value in box])
        files[f'{number:03d}'] = xml(*objects)
    root = write(tmp_path, files)
    facts = scan_split(root)
    assert facts.histogram == trained_by_mmdet(root, NAMES)
    expected: Counter = Counter()
    for left, top, right, bottom in boxes:
        if right <= left or bottom <= top:
            expected['box_no_area'] += 1
        elif right <= 0 or bottom <= 0 or left >= 100 or top >= 80:
            expected['box_outside'] += 1
    assert facts.reasons == dict(expected)
    assert facts.boxes.negative_boxes == sum(min(box) < 0 for box in boxes)
    assert facts.annotations.unreadable == {}
    small = scan_split(root, bbox_min_size=30)
    assert small.histogram == trained_by_mmdet(root, NAMES, bbox_min_size=30)


@pytest.mark.parametrize(
    ('box', 'fault'),
    [
        ((260, 17, 260, 37), 'box_no_area'),
        ((130.5, 2, 150.5, 9), 'box_outside'),
        ((0, 5, 20, 30), 'negative'),
        ((5, 5, 120, 30), 'over_edge'),
        (('nan', 5, 20, 30), 'box_not_finite'),
        ((1, 1, 'inf', 3), 'box_not_finite'),
        ((1, 1, '1e400', 3), 'box_not_finite'),
    ],
)
def test_a_box_is_named_by_the_numbers_in_its_file(box: Sequence[Any], fault: str, tmp_path: Path) -> None:
    facts = scan_voc(write(tmp_path, {'a': xml(obj(), obj(box=box))}))
    numbers = ', '.join(map(str, box)).replace('1e400', 'inf')
    assert facts.boxes.box_examples == {fault: [f'Annotations/a.xml: {numbers}']}


def test_names_beside_the_class_list(tmp_path: Path) -> None:
    root = write(tmp_path, {'a': xml(obj('Cat'), obj('dog')), 'b': xml()})
    facts = scan_voc(root, class_names=NAMES)
    assert facts.histogram == {1: 1}
    assert list(facts.annotations.left_out.values()) == [1]
    assert facts.annotations.left_out_names == {'Cat': 1}
    assert facts.annotations.left_out_files == ['Annotations/a.xml']
    assert facts.annotations.images_without_target == 1
    assert scan_voc(root).class_names == ['Cat', 'dog']


@pytest.mark.parametrize('place', ['0--Parade', 'img', ''])
def test_images_that_are_elsewhere_are_not_missing(place: str, tmp_path: Path) -> None:
    root = write(tmp_path, {'a': xml(obj()), 'b': xml(obj())})
    for image in (tmp_path / 'JPEGImages').iterdir():
        (tmp_path / place).mkdir(exist_ok=True)
        image.rename(tmp_path / place / image.name)
    (tmp_path / 'JPEGImages').rmdir()
    facts = scan_voc(root)
    assert (facts.total, facts.annotations.missing, facts.annotations.unreadable) == (2, 0, {})
    assert facts.annotations.sizes_compared == 0


def test_lists_and_missing_images(tmp_path: Path) -> None:
    root = write(tmp_path, {'a': xml(obj()), 'b': xml(obj())})
    os.rename(tmp_path / 'JPEGImages' / 'b.jpg', tmp_path / 'JPEGImages' / 'b.png')
    (tmp_path / 'ImageSets' / 'Main' / 'val.txt').write_text('a\nb\na\nc\n')
    facts = scan_split(root, split='val')
    assert facts.files == 3
    assert facts.annotations.duplicate_files == ['JPEGImages/a.jpg']
    missing = [re.findall(r'\w\.\w+', file) for file in facts.annotations.missing_files]
    assert missing == [['b.jpg', 'b.png'], ['c.jpg']]
    assert list(facts.annotations.unreadable.values()) == [['Annotations/c.xml']]


def test_without_a_size_the_image_tells_it(tmp_path: Path) -> None:
    root = write(tmp_path, {'a': xml(obj(box=(150, 10, 160, 20)), size='')})
    facts = scan_voc(root)
    assert facts.reasons == {'box_outside': 1}
    assert facts.annotations.unreadable == {}
    write(tmp_path, {'a': xml(obj(box=(85, 10, 95, 20)), size='')})
    assert scan_voc(root).reasons == {}
    exif = Image.Exif()
    exif[0x0112] = 6  # stored lying, shown upright: 80 wide
    Image.new('RGB', (100, 80)).save(tmp_path / 'JPEGImages' / 'a.jpg', exif=exif)
    assert scan_voc(root).reasons == {'box_outside': 1}
    (tmp_path / 'JPEGImages' / 'a.jpg').write_bytes(b'no image')
    assert len(scan_voc(root).annotations.unreadable) == 1


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + ''.join(
    f'<!ENTITY {name} "{f"&{chr(ord(name) - 1)};" * 10}">' for name in 'bcdefghij'
)
DAMAGED: Dict[str, bytes] = {
    'empty': b'',
    'blank': b'\n \n',
    'text': b'hello',
    'JSON': b'{"a": 1}',
    'zeros': b'\0' * 100,
    'JPEG': b'\xff\xd8\xff\xe0' + b'\x01' * 300,
    'cut off': xml(obj())[:-30].encode(),
    'tags crossed': b'<annotation><object></annotation></object>',
    'two roots': (xml() + xml()).encode(),
    'wrong encoding': xml(obj('größe')).encode('latin-1'),
    'unknown encoding': b'<?xml version="1.0" encoding="klingon"?>' + xml().encode(),
    'bomb': (BOMB + ']>' + xml(obj('&j;'))).encode(),
    'bomb in UTF-16': (BOMB + ']>' + xml(obj('&j;'))).encode('utf-16'),
    'quadratic bomb': f'<!DOCTYPE x [<!ENTITY a "{"a" * 9999}">]>{xml(obj("&a;" * 9999))}'.encode(),
    'file entity': f'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>{xml(obj("&a;"))}'.encode(),
    'unknown entity': xml(obj('&a;')).encode(),
    'no name': xml('<object><bndbox/></object>').encode(),
    'empty name': xml(obj('')).encode(),
    'no box': xml('<object><name>cat</name></object>').encode(),
    'no corner': xml('<object><name>cat</name><bndbox><xmin>1</xmin></bndbox></object>').encode(),
    'empty corner': xml(obj(box=('', 1, 2, 3))).encode(),
    'corner of text': xml(obj(box=('1,5', 1, 2, 3))).encode(),
    'difficult as text': xml(obj(difficult='Unspecified')).encode(),
    'size of fractions': xml(size='<size><width>640.0</width><height>480</height></size>').encode(),
    'size without width': xml(size='<size><height>480</height></size>').encode(),
    'size of 0': xml(size='<size><width>0</width><height>0</height></size>').encode(),
    'size of many digits': xml(size=f'<size><width>{"9" * 9999}</width></size>').encode(),
}


def test_damaged_files_are_reported_and_the_others_are_read(tmp_path: Path, snapshot: Any) -> None:
    lines = []
    for kind, data in DAMAGED.items():
        facts = scan_split(write(tmp_path, {'broken': data, 'good': xml(obj())}))
        assert facts.histogram[0] >= 1, kind
        unreadable = facts.annotations.unreadable
        assert unreadable, kind
        assert all('Annotations/broken.xml' in place for places in unreadable.values() for place in places), kind
        lines.append(f'{kind}: {"; ".join(unreadable)}')
    snapshot('scan_faults', 'VOC files that are damaged', '\n'.join(lines))


def test_deep_and_wide_files(tmp_path: Path) -> None:
    # Deep enough for a reader that copies its path at each tag to run into the time limit of tests.
    deep = xml(obj(), '<a>' * 500_000 + '</a>' * 500_000)
    wide = xml(*[obj()] * 2000, '<x>' + 'y' * 1_000_000 + '</x>')
    facts = scan_voc(write(tmp_path, {'a': deep, 'b': wide}))
    assert facts.histogram == {0: 2001}


@pytest.mark.parametrize('make', [lambda path: None, Path.mkdir, os.mkfifo, Path.touch])
def test_a_folder_that_is_none(tmp_path: Path, make: Any) -> None:
    make(tmp_path / 'set')
    facts = scan_voc(str(tmp_path / 'set'))
    assert facts.total == 0
    assert facts.annotations.unreadable


def test_xml_files_without_the_usual_folders(tmp_path: Path) -> None:
    (tmp_path / 'a.xml').write_text(xml(obj()))
    (tmp_path / 'a.jpg').touch()
    facts = scan_voc(str(tmp_path))
    assert (facts.histogram, facts.annotations.missing, facts.annotations.unreadable) == ({0: 1}, 0, {})
    (tmp_path / 'b.xml').mkdir()
    os.mkfifo(tmp_path / 'c.xml')
    assert len(scan_voc(str(tmp_path)).annotations.unreadable) == 2


@pytest.mark.parametrize(
    'text',
    [
        xml(obj()).replace('<annotation>', '<annotation xmlns="http://x">'),
        xml(obj()).replace('<annotation>', '<annotation xmlns:v="http://x">').replace('object>', 'v:object>'),
        xml(obj().replace('name>', 'v:name>')).replace('<annotation>', '<annotation xmlns:v="http://x">'),
        xml(obj()).replace('<annotation>', '<annotation xmlns:v="http://x">').replace('ymax>', 'v:ymax>'),
    ],
)
def test_tags_in_a_namespace_are_none_to_mmdet(tmp_path: Path, text: str) -> None:
    root = write(tmp_path, {'a': text})
    facts = scan_split(root)
    assert all(places[0].startswith('Annotations/a') for places in facts.annotations.unreadable.values())
    assert 'MG176' in {finding.code for finding in diagnose(facts)}
    try:
        assert trained_by_mmdet(root, NAMES) == {}
    except AttributeError:  # an object without a name or a corner
        assert facts.histogram == {}


def test_a_namespace_that_no_reader_asks_about(tmp_path: Path) -> None:
    more = '<v:source xmlns:v="http://x"><v:name>me</v:name></v:source>'
    root = write(tmp_path, {'a': xml(obj(more='<v:name xmlns:v="http://x">boat</v:name>'), more)})
    assert trained_by_mmdet(root, NAMES) == {0: 1}
    facts = scan_split(root)
    assert facts.histogram == {0: 1}
    root = write(tmp_path, {'a': xml(obj(), more)})
    assert scan_split(root).annotations.unreadable == {}


@pytest.mark.parametrize('root', ['', 'data', 'data/voc/', 'elsewhere'])
def test_a_config_may_have_its_images_outside_of_its_data_root(root: str, tmp_path: Path) -> None:
    (tmp_path / 'elsewhere').mkdir()
    place = write(tmp_path / 'data' / 'voc' / 'VOC2007', {'a': xml(obj()), 'b': xml(obj())})
    (tmp_path / 'data' / 'voc' / 'VOC2007' / 'JPEGImages' / 'b.jpg').unlink()
    dataset = {**voc(str(tmp_path / root) if root else '', ['cat']), 'type': 'VOCDataset'}
    dataset.update(ann_file=f'{place}/ImageSets/Main/train.txt', data_prefix=dict(sub_data_root=place))
    found = scan_detection_config(dict(default_scope='mmdet', train_dataloader=dict(dataset=dataset))).annotations
    assert (found.missing, found.sizes_compared, found.size_mismatches) == (1, 1, [])


@pytest.mark.parametrize('entity', ['a "b"', '% a "b"', 'a SYSTEM "file:///etc/hostname"'])
@pytest.mark.parametrize('encoding', ['utf-8', 'utf-16'])
def test_nothing_is_corrected_where_an_entity_is_declared(entity: str, encoding: str) -> None:
    text = f'<!DOCTYPE x [<!ENTITY {entity}>]>{xml(obj("cat", (1, 1, 200, 200)))}'
    with pytest.raises(NotCorrected):
        correct_voc(text.encode(encoding), FixOptions())
