"""Edits that leave out objects: the question says how many, and what is more than slips stays."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import pytest
from coco_cases import ann, coco
from label_files import BLOCKS, write, write_copies
from texts import add, make

from mmguard.cli import main


def findings_of(target: Path, *options: str) -> Dict[str, Dict[str, Any]]:
    """Code -> finding of the first data set."""
    out = target.parent / 'scan.json'
    main(['scan', str(target), '--processes', '1', '--json', str(out), *options])
    return {one['code']: one for one in json.loads(out.read_text())['datasets'][0]['findings']}


def write_coco(path: Path, slips: Dict[int, Dict[str, Any]], number: int = 60) -> Path:
    """A COCO file of boxes of two categories; ``slips``: what some annotations say instead."""
    boxes = [{**ann(n, n, 3 + n % 2, (8, 9, 30, 20)), **slips.get(n, {})} for n in range(number)]
    path.write_text(json.dumps(coco(boxes, number, ['van', 'bus'], 3, (90, 70), 'png')))
    return path


#: Rows with corners swapped: the sign of a side is wrong, no coordinate is outside.
TURNED = [['1 .4 .5 -.2 .3'], ['0 .61 .3 .2 -.15', '2 .5 .5 -.1 -.1'], ['2 .7 .25 -.4 .02'] * 9]


#: A size of the other side was the divisor: x of a wide image, y of a tall one; some rows are inside all the same.
DIVIDED = {
    'x': ['0 1.4 .5 .1 .1', '1 1.7 .3 .2 .1', '2 1.2 .6 .3 .2', '1 .9 .4 .4 .1', '0 1.9 .2 .1 .3'] * 3,
    'y': ['0 .3 1.3 .1 .1', '2 .6 1.1 .1 .2', '1 .2 .9 .1 .3', '1 .5 1.25 .4 .1', '0 .7 1.6 .1 .1'] * 3,
}


@pytest.mark.parametrize(
    ('rows', 'axis', 'turned'),
    [*((rows, '', len(rows)) for rows in TURNED), *((rows, axis, 0) for axis, rows in DIVIDED.items())],
)
def test_turned_rows_and_those_divided_by_a_wrong_size_get_no_edit(
    rows: List[str], axis: str, turned: int, tmp_path: Path
) -> None:
    root = make(tmp_path / 'set')
    add(root, 4, *rows)
    found = findings_of(root)
    assert found['MG164']['edits'] == []
    assert 'MG152' not in found  # nothing offers to clamp them
    about = json.loads((tmp_path / 'scan.json').read_text())['datasets'][0]['facts']['annotations']
    assert (about.get('off_axis', ''), about['yolo'].get('turned', 0)) == (axis, turned)


def test_a_slip_in_one_axis_is_no_divisor(tmp_path: Path) -> None:
    root = make(tmp_path / 'set')
    add(root, 4, *DIVIDED['x'][:3])
    assert [edit['applicability'] for edit in findings_of(root)['MG164']['edits']] == ['asks']


LOSSES = {
    'a row without area': ('yolo', {2: ['1 .5 .5 0 .2']}, 'MG109', '1 of 43'),
    'rows of an unknown class': ('yolo', {1: ['9 .5 .5 .1 .1'], 6: ['9 .4 .4 .1 .1']}, 'MG107', '2 of 44'),
    'a row outside': ('yolo', {8: ['0 1.4 .5 .1 .1']}, 'MG164', '1 of 43'),
    'a box without area in COCO': ('coco', {7: {'bbox': [4, 4, 0, 9]}}, 'MG109', '1 of 60'),
    'ids without a category': ('coco', {n: {'category_id': 8} for n in (5, 6, 20)}, 'MG149', '3 of 60'),
}


@pytest.mark.parametrize('name', LOSSES)
def test_an_edit_that_leaves_out_objects_asks_and_counts_them(name: str, tmp_path: Path) -> None:
    kind, slips, code, count = LOSSES[name]
    if kind == 'yolo':
        root = make(tmp_path / 'set')
        for number, rows in slips.items():
            add(root, number, *rows)
    else:
        root = write_coco(tmp_path / 'train.json', slips)
    edits = [edit for edit in findings_of(root)[code]['edits'] if edit['files']]
    assert [(edit['applicability'], count in edit['question']) for edit in edits] == [('asks', True)]


def test_a_question_about_one_box_names_what_else_is_left_out(tmp_path: Path) -> None:
    slips: Dict[int, Dict[str, Any]] = {7: {'bbox': [4, 4, 0, 9]}, 5: {'category_id': 8}, 6: {'category_id': 8}}
    (edit,) = findings_of(write_coco(tmp_path / 'train.json', slips))['MG109']['edits']
    assert list(map(int, re.findall(r'\d+', edit['question']))) == [3, 60, 1, 2]


#: Edits of `fix --edit` -> ids of the categories, and the annotations that are left.
EDITS: Dict[Tuple[str, ...], Tuple[List[int], int]] = {
    ('1',): ([1, 2], 60),
    ('safe',): ([1, 2], 60),
    ('2',): ([0, 1], 58),
    ('1', '2'): ([1, 2], 58),
    ('2', '1'): ([1, 2], 58),
}


@pytest.mark.parametrize('numbers', EDITS)
def test_an_edit_of_categories_leaves_boxes_to_their_own_finding(numbers: Tuple[str, ...], tmp_path: Path) -> None:
    slips: Dict[int, Dict[str, Any]] = {n: {'image_id': n // 3, 'category_id': n % 2} for n in range(60)}
    slips[7]['bbox'], slips[8]['bbox'] = [4, 4, 0, 9], [95, 4, 9, 9]
    path = write_coco(tmp_path / 'train.json', slips)
    data = json.loads(path.read_text())
    categories = [dict(id=0, name='van'), dict(id=1, name='bus')]
    path.write_text(json.dumps(dict(data, images=data['images'][:20], categories=categories)))
    options = ('--framework', 'torchvision', '--num-classes', '2')
    found = findings_of(path, *options)
    offered = [(code, edit['number'], edit['question']) for code in found for edit in found[code]['edits']]
    assert [entry for entry in offered if entry[1]] == [
        ('MG581', 1, ''),
        ('MG109', 2, 'Can 2 of 60 objects be dropped (1 box without area, 1 box outside the image)?'),
    ]
    chosen = [word for number in numbers for word in ('--edit', number)]
    assert main(['fix', str(path), '--out', str(tmp_path / 'fixed'), *options, *chosen]) == 0
    written = json.loads((tmp_path / 'fixed/train.json').read_text())
    ids = [category['id'] for category in written['categories']]
    assert (ids, len(written['annotations'])) == EDITS[numbers]


@pytest.mark.parametrize(('names', 'label', 'rows'), [(3, 3, 5), (3, 8, 20), (2, 2, 0)])
def test_a_share_that_is_no_slip_is_not_left_out(names: int, label: int, rows: int, tmp_path: Path) -> None:
    root = make(tmp_path / 'set')
    add(root, 5, *[f'{label} .5 .5 .1 .1'] * rows)
    said = json.loads((root / 'data.yaml').read_text())
    (root / 'data.yaml').write_text(json.dumps(dict(said, names=said['names'][:names])))
    found = findings_of(root)
    assert {'MG102', 'MG107'} & set(found)
    assert not any(edit['files'] for one in found.values() for edit in one['edits'])


@pytest.mark.parametrize(('count', 'labels'), [(4, [3]), (6, [3, 5]), (20, [17])])
def test_names_are_completed_where_nc_counts_the_classes(count: int, labels: List[int], tmp_path: Path) -> None:
    root = make(tmp_path / 'set', nc=count)
    add(root, 9, *(f'{label} .5 .5 .1 .1' for label in labels))
    found = findings_of(root / 'data.yaml')
    assert 'MG168' in found
    assert not any(edit['files'] for one in found.values() for edit in one['edits'])


def write_rows(root: Path) -> Path:
    add(make(root), 5, *['31 .5 .5 .1 .1'] * 7)
    return root


@pytest.mark.parametrize(
    ('target', 'options', 'is_openmmlab'),
    [
        (write_rows, (), False),
        (lambda path: write_copies(path, BLOCKS), ('--num-classes', '4'), False),
        (lambda path: write_coco(path.with_suffix('.json'), {}), ('--framework', 'mmdet', '--num-classes', '1'), True),
        (
            lambda path: write_coco(path.with_suffix('.json'), {}),
            ('--framework', 'torchvision', '--num-classes', '2'),
            False,
        ),
    ],
)
def test_the_advice_is_that_of_the_framework(target: Any, options: Any, is_openmmlab: bool, tmp_path: Path) -> None:
    found = [one for one in findings_of(target(tmp_path / 'set'), *options).values() if one['severity'] == 'error']
    assert found
    assert any('metainfo' in one['advice'] for one in found) is is_openmmlab


@pytest.mark.parametrize(('size', 'share'), [(8, 2), (5, 3), (11, 7)])
def test_two_values_and_one_class_may_be_a_sigmoid(size: int, share: int, tmp_path: Path) -> None:
    label = np.arange(size * size).reshape(size, size) % share == 0
    write_copies(tmp_path / 'set', label.astype(np.uint8), 3)
    (edit,) = findings_of(tmp_path / 'set', '--num-classes', '1')['MG215']['edits']
    assert (edit['options'], edit['applicability']) == ({'num_classes': 2}, 'asks')
    assert '--num-classes 2' in edit['if_not']


@pytest.mark.parametrize(
    ('said', 'named', 'others'),
    [
        (dict(nc=7), ['`names`'], ['`train`', 'kpt_shape', 'images']),
        (dict(val=None), ['`train`'], ['`names`', 'kpt_shape', 'images']),
        (dict(kpt_shape=[4]), ['kpt_shape'], ['`train`', '`names`', 'images']),
        (dict(kpt_shape=[4], names=['a', 'a', 'b']), ['kpt_shape', '`names`'], ['`train`', 'images']),
    ],
)
def test_only_what_applies_to_a_data_yaml_is_advised(
    said: Dict[str, Any], named: List[str], others: List[str], tmp_path: Path
) -> None:
    root = make(tmp_path / 'set')
    (root / 'data.yaml').write_text(json.dumps({**json.loads((root / 'data.yaml').read_text()), **said}))
    advice = findings_of(root / 'data.yaml')['MG168']['advice']
    assert [word in advice for word in (*named, *others)] == [True] * len(named) + [False] * len(others)


@pytest.mark.parametrize(('flips', 'is_found'), [([0, 1, 2], True), ([1, 0, 2], False), (None, False)])
def test_keypoints_that_no_flip_swaps(flips: Optional[List[int]], is_found: bool, tmp_path: Path) -> None:
    root = make(tmp_path / 'set')
    for file in root.rglob('*.txt'):
        file.write_text('0 .5 .5 .2 .2 .4 .4 2 .6 .4 2 .5 .6 2\n')
    yaml = root / 'data.yaml'
    declared = dict(json.loads(yaml.read_text()), kpt_shape=[3, 3], **({'flip_idx': flips} if flips else {}))
    yaml.write_text(json.dumps(declared))
    assert ('MG159' in findings_of(yaml)) == is_found


@pytest.mark.parametrize(
    ('names', 'ids', 'code'),
    [(['plate'], [15], 'MG107'), (['cup', 'jug'], [4, 9], 'MG107'), (['a', 'b'], [0, 7], 'MG116')],
)
def test_as_many_ids_as_names_are_numbered_from_0(names: List[str], ids: List[int], code: str, tmp_path: Path) -> None:
    root = tmp_path / 'set'
    (root / 'labels/train').mkdir(parents=True)
    for place in range(8):
        write(root / f'images/train/{place}.png', np.full((48, 64, 3), place, np.uint8))
        rows = [f'{number} 0.5 0.4 0.2 0.1' for number in ids]
        (root / f'labels/train/{place}.txt').write_text('\n'.join(rows), encoding='utf-8')
    (root / 'data.yaml').write_text(json.dumps(dict(train='images/train', val='images/train', names=names)))
    found = findings_of(root / 'data.yaml')
    edits = [edit for edit in found[code]['edits'] if edit['number']]
    assert [dict(change['label_map']) for edit in edits for change in edit['files'].values()] == [
        {str(number): label for label, number in enumerate(ids) if number != label}
    ]
    assert (
        main(['fix', str(root / 'data.yaml'), '--out', str(tmp_path / 'out'), '--edit', str(edits[0]['number'])]) == 0
    )
    written = next((tmp_path / 'out').rglob('0.txt')).read_text().split('\n')
    assert [int(row.split()[0]) for row in written if row] == list(range(len(ids)))
