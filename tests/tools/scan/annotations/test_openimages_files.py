"""What stops mmdet's OpenImagesDataset in its other files, and in the columns behind the box."""

from __future__ import annotations

import json
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
from coco_cases import NAMES
from PIL import Image

from mmguard.findings import LabelFacts, diagnose
from mmguard.tools.scan.annotations import scan_openimages

FILES = ('boxes.csv', 'classes.csv', 'metas.pkl', 'tree.json', 'image_labels.csv')


def write_openimages(root: Path) -> None:
    rows = [f'{name},x,/m/{n},1,0.1,0.5,0.1,0.5,0,0,0,1,-1' for name in 'ab' for n in range(3)]
    (root / 'boxes.csv').write_text('\n'.join(['header' + ',' * 12, *rows, '']))
    (root / 'classes.csv').write_text(''.join(f'/m/{n},{name}\n' for n, name in enumerate(NAMES)))
    metas = [dict(filename=f'some/where/{name}.jpg', ori_shape=(30, 40, 3)) for name in 'ab']
    (root / 'metas.pkl').write_bytes(pickle.dumps(metas))
    tree = dict(LabelName='/m/root', Subcategory=[dict(LabelName='/m/0', Subcategory=[dict(LabelName='/m/1')])])
    (root / 'tree.json').write_text(json.dumps(tree))
    (root / 'image_labels.csv').write_text('ImageID,Source,LabelName,Confidence\na,x,/m/0,1\nb,x,/m/2,0.5\n')
    for name in 'ab':
        Image.new('RGB', (40, 30)).save(root / f'{name}.jpg')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_openimages(tmp_path)
    return tmp_path


def scanned(folder: Path) -> LabelFacts:
    boxes, classes, metas, tree, image_labels = (str(folder / name) for name in FILES)
    return scan_openimages(boxes, classes, metas, None, str(folder), tree, image_labels)


def loads(folder: Path) -> bool:
    from mmdet.datasets import OpenImagesDataset

    boxes, classes, metas, tree, image_labels = (str(folder / name) for name in FILES)
    more: Any = dict(ann_file=boxes, data_prefix=dict(img=''), pipeline=[], serialize_data=False)
    try:
        OpenImagesDataset(classes, metas, tree, image_labels, **more)
    except Exception:
        return False
    return True


def nested(depth: int) -> str:
    return '{"LabelName": "/m/0", "Subcategory": [' * depth + ']}' * depth


def row(place: int, value: str) -> str:
    columns = ['a', 'x', '/m/0', '1', '0.1', '0.5', '0.1', '0.5', *'00000']
    columns[place] = value
    return ','.join(columns)


@pytest.mark.parametrize(
    ('name', 'old', 'new', 'why'),
    [
        *(
            ('boxes.csv', row(0, 'a'), row(place, 'x'), 'a flag (IsOccluded, ...) is no whole number')
            for place in range(8, 13)
        ),
        ('boxes.csv', row(0, 'a'), row(8, '0.0'), 'a flag (IsOccluded, ...) is no whole number'),
        ('boxes.csv', row(0, 'a'), row(8, ''), 'a flag (IsOccluded, ...) is no whole number'),
        ('boxes.csv', row(0, 'a'), row(4, '1,5'), 'a flag (IsOccluded, ...) is no whole number'),
        ('tree.json', '', '{', 'is no JSON'),
        ('tree.json', '', '', 'is no JSON'),
        ('tree.json', '', '5', 'is no tree'),
        ('tree.json', '', '{"Subcategory": 5}', 'is no tree'),
        ('tree.json', '', '{"Subcategory": ["LabelName"]}', 'is no tree'),
        ('tree.json', '', nested(2000), 'is nested too deeply'),
        ('tree.json', '/m/1', '/m/99', 'a label of the hierarchy is not in the label file'),
        ('tree.json', '"/m/1"', '[1]', 'a label of the hierarchy is not in the label file'),
        ('image_labels.csv', '/m/2', '/m/99', 'a label of an image is not in the label file'),
        ('image_labels.csv', '0.5', 'sure', 'the confidence of a label is no number'),
        ('image_labels.csv', 'b,x,/m/2,0.5', 'b', 'a row has fewer than 4 columns'),
    ],
)
def test_what_stops_mmdet_is_a_finding(folder: Path, name: str, old: str, new: str, why: str) -> None:
    path = folder / name
    if name == 'boxes.csv':
        path.write_text('\n'.join(['header' + ',' * 12, old, old.replace('a,', 'b,', 1)]))
    assert loads(folder)
    assert all(finding.severity == 'info' for finding in diagnose(scanned(folder)) if finding.code != 'MG132')
    path.write_text(path.read_text().replace(old, new, 1) if old else new)
    assert not loads(folder)
    facts = scanned(folder)
    assert facts.annotations is not None
    assert any(what.startswith(why) for what in facts.annotations.unreadable)
    assert any(finding.severity == 'error' for finding in diagnose(facts))


def test_a_file_that_is_not_there(folder: Path) -> None:
    for name in ('tree.json', 'image_labels.csv'):
        (folder / name).unlink()
    facts = scanned(folder)
    assert facts.annotations is not None
    assert facts.annotations.unreadable['cannot be opened: No such file or directory'] == [
        'tree.json',
        'image_labels.csv',
    ]


def test_flags_that_int_takes(folder: Path) -> None:
    (folder / 'boxes.csv').write_text('\n'.join(['header', row(8, ' 1 '), row(9, '2').replace('a,', 'b,', 1)]))
    assert loads(folder)
    facts = scanned(folder)
    assert facts.annotations is not None
    assert facts.annotations.unreadable == {}
    assert facts.total == 2


def test_a_node_without_a_label_is_passed_over(folder: Path) -> None:
    tree = dict(Subcategory=[dict(Subcategory=[dict(LabelName='/m/99')]), dict(LabelName='/m/1')])
    (folder / 'tree.json').write_text(json.dumps(tree))
    assert loads(folder)
    facts = scanned(folder)
    assert facts.annotations is not None
    assert facts.annotations.unreadable == {}


def test_sixty_thousand_unknown_labels_take_seconds(folder: Path) -> None:
    rows = ['header', *(row(2, f'/u/{number}') for number in range(60_000))]
    (folder / 'boxes.csv').write_text('\n'.join(rows))
    start = time.process_time()
    facts = scanned(folder)
    diagnose(facts)
    assert facts.annotations is not None
    assert len(facts.annotations.left_out_names) == 60_000
    assert time.process_time() - start < 10
