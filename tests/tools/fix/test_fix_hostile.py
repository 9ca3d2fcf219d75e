"""Whatever a file holds, `mmguard fix` writes nothing that `mmguard scan` calls wrong, and names what it leaves out."""

from __future__ import annotations

import copy
import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from mmguard.cli import main
from mmguard.formats.maps.write import correct_map

HUGE = int('9' * 400)


def run(*arguments: Any) -> int:
    return main(['fix', *map(str, arguments)])


def coco(images: List[Any], annotations: List[Any]) -> Dict[str, Any]:
    """A COCO file of one category, whose first image and annotation are right."""
    image = dict(id=1, file_name='1.jpg', width=640, height=480)
    annotation = dict(image_id=1, category_id=1, bbox=[1, 2, 30, 40], area=1200, iscrowd=0)
    return dict(
        images=[image, *(dict(image, **{'id': n, 'file_name': f'{n}.jpg', **new}) for n, new in enumerate(images, 2))],
        categories=[dict(id=1, name='cat')],
        annotations=[dict(annotation, **{'id': n, **new}) for n, new in enumerate([{}, *annotations])],
    )


def fixed(record: Dict[str, Any], folder: Path, *options: Any) -> Any:
    """What becomes of a COCO file; ``None`` where it is left out."""
    source = folder / 'in' / 'train.json'
    source.parent.mkdir(exist_ok=True)
    source.write_text(json.dumps(record))
    code = run(source, '--out', folder / 'out', *options)
    written = folder / 'out' / 'train.json'
    assert code == (0 if written.exists() else 1)
    return json.loads(written.read_text()) if written.exists() else None


@pytest.mark.parametrize(
    'area', [{}, {'area': '9'}, {'area': float('nan')}, {'area': -1}, {'area': [9]}, {'area': True}]
)
@pytest.mark.parametrize('box', [['1', '2', '3', '4'], [1, 2, '3', 4.0], [1, 2, 3, 4]])
def test_a_box_written_as_text_becomes_numbers_and_has_an_area(box: Any, area: Any, tmp_path: Path) -> None:
    record = coco([], [dict(bbox=box)])
    del record['annotations'][1]['area']
    record['annotations'][1].update(area)
    found = fixed(record, tmp_path)['annotations'][1]
    assert (found['bbox'], found['area']) == ([1, 2, 3, 4], 12)


@pytest.mark.parametrize(
    'box', [[1, 2, 3, HUGE], [HUGE, 2, 3, 4], [-HUGE, 0, HUGE, 9], [True, 1, 2, 3], '1234', {'0': 1}, [[1], 2, 3, 4]]
)
def test_an_annotation_without_a_box_of_numbers_is_dropped(box: Any, tmp_path: Path) -> None:
    assert [one['id'] for one in fixed(coco([], [dict(bbox=box)]), tmp_path)['annotations']] == [0]


@pytest.mark.parametrize(
    'wrong',
    [dict(width=float('nan')), dict(height=HUGE), dict(width=0), dict(width=None), dict(height=[9]), dict(file_name=7)],
)
def test_an_image_that_no_loader_can_use_is_left_out_with_its_annotations(wrong: Any, tmp_path: Path) -> None:
    record = coco([wrong], [dict(image_id=2)])
    found = fixed(record, tmp_path)
    assert [image['id'] for image in found['images']] == [1]
    assert [one['image_id'] for one in found['annotations']] == [1]


def test_sizes_that_are_written_as_text_become_numbers(tmp_path: Path) -> None:
    found = fixed(coco([dict(width='640', height='480.0')], []), tmp_path)['images'][1]
    assert (found['width'], found['height']) == (640, 480)


@pytest.mark.parametrize('found', ['size', 'annotation', 'crowd'])
def test_a_file_of_which_nothing_would_be_left_is_left_out(found: str, tmp_path: Path) -> None:
    record = coco([], [dict(iscrowd=1)])
    if found == 'size':
        del record['images'][0]['width']
    elif found == 'crowd':
        record['annotations'][0]['bbox'] = [1, 2, 0, 0]
    else:
        record['annotations'] = [{**record['annotations'][0], 'category_id': 9}]
    assert fixed(record, tmp_path) is None


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 700),
        st.floats(-3, 700),
        st.sampled_from([float('nan'), float('inf'), 1e308, HUGE, '5', '-1', 'x', '\ud800', '']),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(['id', '0']), inner, max_size=2)
    ),
    max_leaves=4,
)
KEYS = {
    'images': ('id', 'width', 'height', 'file_name', 'coco_url'),
    'annotations': ('id', 'image_id', 'category_id', 'bbox', 'area', 'iscrowd', 'ignore', 'segmentation'),
    'categories': ('id', 'name'),
}
CHANGES = st.lists(
    st.sampled_from([(part, key) for part, keys in KEYS.items() for key in keys]).flatmap(
        lambda place: st.tuples(st.just(place), st.integers(0, 2), VALUES)
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES, number=st.integers(0, 10**9))
def test_what_is_written_a_scan_does_not_call_wrong(changes: Any, number: int, tmp_path: Path, capsys: Any) -> None:
    record = coco([{}, {}], [dict(image_id=2), dict(image_id=3, bbox=['1', 1, 50, 5])])
    for (part, key), place, value in changes:
        record[part][place % len(record[part])][key] = value
    folder = tmp_path / str(number)
    folder.mkdir(exist_ok=True)
    if fixed(record, folder) is None:
        return
    capsys.readouterr()
    main(['scan', str(folder / 'out' / 'train.json'), '--json', '-'])
    (found,) = json.loads(capsys.readouterr().out)['datasets']
    # Images that are small are left out of a training, whatever their labels are.
    errors = {one['code'] for one in found['findings'] if one['severity'] == 'error'} - {'MG174'}
    assert not errors, (errors, record)


# ---- the same of VOC

PLACES = (
    *('filename', 'size', 'size/width', 'size/height'),
    *('object', 'object/name', 'object/difficult', 'object/bndbox'),
    *(f'object/bndbox/{side}' for side in ('xmin', 'ymin', 'xmax', 'ymax')),
)
NUMBERS = ('-1', '0', '1', '7.5', '99', '101', '1e3', '1e999', 'nan', 'inf', '1_0', '\u0665', '9' * 30)
TEXTS = st.sampled_from(['', ' 5 ', 'cat ', 'x', *NUMBERS])
XML_CHANGES = st.lists(
    st.tuples(st.sampled_from(PLACES), st.integers(0, 2), st.one_of(TEXTS, st.sampled_from(['removed', 'doubled']))),
    min_size=1,
    max_size=5,
)


def with_change(root: ET.Element, place: str, number: int, change: str) -> None:
    found = root.findall(place)
    if not found:
        return
    item = found[number % len(found)]
    parent = next(other for other in root.iter() if item in other)
    if change == 'removed':
        parent.remove(item)
    elif change == 'doubled':
        parent.append(copy.deepcopy(item))
    else:
        item.text = change


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=XML_CHANGES, classes=st.booleans(), number=st.integers(0, 10**9))
def test_what_is_written_of_voc_a_scan_does_not_call_wrong(
    changes: Any, classes: bool, number: int, tmp_path: Path, capsys: Any
) -> None:
    box = '<bndbox><xmin>5</xmin><ymin>6</ymin><xmax>50</xmax><ymax>60</ymax></bndbox>'
    thing = f'<object><name>cat</name><difficult>0</difficult>{box}</object>'
    size = '<size><width>100</width><height>80</height><depth>3</depth></size>'
    text = f'<annotation><filename>0.jpg</filename>{size}{thing * 3}</annotation>'
    root = ET.fromstring(text)
    for change in changes:
        with_change(root, *change)
    folder = tmp_path / str(number)
    for name in ('Annotations', 'ImageSets/Main', 'JPEGImages'):
        (folder / 'in' / name).mkdir(parents=True, exist_ok=True)
    (folder / 'in/ImageSets/Main/train.txt').write_text('0\n1\n')
    for stem in ('0', '1'):
        Image.new('RGB', (100, 80)).save(folder / f'in/JPEGImages/{stem}.jpg')
    (folder / 'in/Annotations/1.xml').write_text(text)
    ET.ElementTree(root).write(folder / 'in/Annotations/0.xml', encoding='utf-8')
    if run(folder / 'in', '--out', folder / 'out', *(['--classes', 'cat'] if classes else [])) == 1:
        return
    capsys.readouterr()
    main(['scan', str(folder / 'out'), '--json', '-'])
    (found,) = json.loads(capsys.readouterr().out)['datasets']
    # Which size is right, that of the file or that of the image, the user must say.
    errors = {one['code'] for one in found['findings'] if one['severity'] == 'error'} - {'MG130'}
    assert not errors, (errors, ET.tostring(root))


# ---- names, and manifests


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    folder = tmp_path / 'labels'
    folder.mkdir()
    Image.fromarray(np.array([[0, 7], [1, 255]], np.uint8)).save(folder / 'a.png')
    return folder


def test_names_that_are_no_utf_8_are_kept_and_shown_as_escapes(maps: Path, tmp_path: Path, capsys: Any) -> None:
    names = [b'caf\xe9.png', b'\x1b[31mred\n.png']
    for name in names:
        os.link(maps / 'a.png', os.path.join(os.fsencode(maps), name))
    (maps / 'broken\x1b[2J.png').write_bytes(b'')
    assert run(maps, '--out', tmp_path / 'out\x1b[1m', '--num-classes', 2) == 1
    said = capsys.readouterr().out
    assert '\x1b' not in said
    assert r'caf\xe9.png' in said
    assert r'\x1b[31mred\n.png' in said
    assert r'broken\x1b[2J.png' in said
    out = os.fsencode(tmp_path / 'out\x1b[1m')
    # A name with a control character is left out.
    assert sorted(os.listdir(out)) == [b'a.png', names[0], b'manifest.json']
    manifest = json.loads(Path(os.fsdecode(out), 'manifest.json').read_text(encoding='utf-8'))
    assert sorted(os.fsencode(entry['file']) for entry in manifest['files']) == [b'a.png', names[0]]


@pytest.mark.parametrize('files', ['5', '[5, {"sha256_after": 5}]', 'null', '[' * 100_000 + ']' * 100_000])
def test_an_odd_manifest_in_the_target_is_no_hindrance(files: str, maps: Path, tmp_path: Path) -> None:
    assert run(maps, '--out', tmp_path / 'first', '--num-classes', 2) == 0
    whole = (tmp_path / 'first' / 'manifest.json').read_text()
    (maps / 'manifest.json').write_text(
        json.dumps({**json.loads(whole), 'files': 0}).replace('"files": 0', f'"files": {files}')
    )
    assert run(maps, '--out', tmp_path / 'out', '--num-classes', 2) == 0
    assert (tmp_path / 'out' / 'a.png').read_bytes() == (tmp_path / 'first' / 'a.png').read_bytes()


def test_xml_that_is_nested_a_thousand_deep_is_left_out(tmp_path: Path) -> None:
    (tmp_path / 'in').mkdir()
    box = '<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>0</xmax><ymax>9</ymax></bndbox>'
    deep = '<a>' * 5000 + '</a>' * 5000
    (tmp_path / 'in' / 'a.xml').write_text(f'<annotation><object><name>cat</name>{box}</object>{deep}</annotation>')
    assert run(tmp_path / 'in', '--out', tmp_path / 'out') == 1
    (left_out,) = json.loads((tmp_path / 'out' / 'manifest.json').read_text())['left_out']
    assert left_out['file'] == 'a.xml'


@pytest.mark.parametrize(('left', 'top', 'right'), [('1.2', '1', '1.9'), ('1', '5', '12345678')])
def test_boxes_of_voc_are_what_mmdet_reads(left: str, top: str, right: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / 'in').mkdir()
    size = '<size><width>16000000</width><height>100</height></size>'
    box = f'<bndbox><xmin>{left}</xmin><ymin>{top}</ymin><xmax>{right}</xmax><ymax>200</ymax></bndbox>'
    (tmp_path / 'in' / 'a.xml').write_text(f'<annotation>{size}<object><name>cat</name>{box}</object></annotation>')
    assert run(tmp_path / 'in', '--out', tmp_path / 'out') == 0
    written = (tmp_path / 'out' / 'a.xml').read_text()
    assert ('<object>' not in written) if right == '1.9' else '<xmax>12345678</xmax><ymax>101</ymax>' in written


def test_what_is_left_out_now_is_not_there_from_an_earlier_run(maps: Path, tmp_path: Path) -> None:
    (maps / 'b.tif').write_bytes((maps / 'a.png').read_bytes())
    assert run(maps, '--out', tmp_path / 'out', '--num-classes', 2) == 0
    for path in maps.iterdir():
        path.write_bytes(b'')
    assert run(maps, '--out', tmp_path / 'out', '--num-classes', 2) == 1
    assert os.listdir(tmp_path / 'out') == ['manifest.json']


def test_a_fault_of_our_own_leaves_a_file_out_and_is_no_finding(
    maps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """One file never ends the run; but a NameError is not a damaged file."""
    (maps / 'b.png').write_bytes((maps / 'a.png').read_bytes() + b'\0')

    def faulty(data: bytes, *more: Any) -> Any:
        if data.endswith(b'\0'):
            raise NameError('name "labels" is not defined')
        return correct_map(data, *more)

    monkeypatch.setattr('mmguard.formats.maps.write.correct_map', faulty)
    assert main(['--debug', 'fix', str(maps), '--out', str(tmp_path / 'out'), '--num-classes', '2']) == 2
    said = capsys.readouterr()
    assert 'b.png: NameError: name "labels" is not defined' in said.out
    assert 'in faulty' in said.err
    assert sorted(os.listdir(tmp_path / 'out')) == ['a.png', 'manifest.json']
