"""YOLO label files beside the COCO file that they were converted from: the tables of both must agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from put_file import put
from texts import picture

from mmguard.cli import main
from mmguard.labels.numbering import COCO_IDS

TOOLS = ['hammer', 'saw', 'drill', 'file', 'chisel', 'plane', 'level', 'wrench', 'clamp', 'vice', 'awl', 'rasp', 'adze']
FRUIT = ['fig', 'apple', 'lime', 'kiwi']


def write_both(
    root: Path, categories: Dict[int, str], label_of: Callable[[int], int], names: List[str], place: str, skip: int = 0
) -> Path:
    """Write a COCO file, and label files with one row per annotation; ``skip``: of the first so many images none."""
    ids = list(categories)
    data: Dict[str, Any] = dict(images=[], annotations=[])
    data['categories'] = [dict(id=number, name=name) for number, name in categories.items()]
    for image in range(14):
        data['images'].append(dict(id=image, file_name=f'{image:03d}.jpg', width=100, height=100))
        of_image = [ids[(image + n) % len(ids)] for n in range(1 + image % 3)]
        rows = []
        for number in of_image:
            left = 10 * len(rows)
            data['annotations'].append(
                dict(id=len(data['annotations']), image_id=image, category_id=number, bbox=[left, 20, 20, 40], area=800)
            )
            rows.append(f'{label_of(number)} {left / 100 + 0.1:.2f} 0.4 0.2 0.4\n')
        put(root / f'yolo/images/{image:03d}.jpg', picture())
        put(root / f'yolo/labels/{image:03d}.txt', ''.join(rows) if image >= skip else '')
    put(root / place / 'train.json', json.dumps(data))
    return put(root / 'yolo/data.yaml', json.dumps(dict(train='images', val='images', names=names)))


def by_id(names: List[str], first: int = 1) -> Dict[int, str]:
    return dict(enumerate(names, first))


# The converter stops at id 12, which COCO does not have: nothing is called so here.
SEWN = {number: name for number, name in by_id(TOOLS).items() if number != 12}


@pytest.mark.parametrize(
    ('categories', 'label_of', 'names', 'place', 'skip', 'classes'),
    [
        (SEWN, COCO_IDS.index, TOOLS, 'annotations', 0, ['rasp', 'adze']),  # cls91to80
        (
            by_id(FRUIT, 0),
            lambda number: number,
            sorted(FRUIT),
            'yolo/annotations',
            0,
            ['apple', 'fig', 'kiwi', 'lime'],
        ),
        ({7: 'cup', 3: 'jug'}, lambda number: int(number == 7), ['cup', 'jug'], '.', 0, ['cup', 'jug']),  # sorted ids
        (by_id(TOOLS), lambda number: number - 1, TOOLS, 'annotations', 0, []),
        (by_id(FRUIT, 0), lambda number: number, FRUIT, '.', 0, []),
        (by_id(FRUIT, 0), lambda number: number, sorted(FRUIT), 'annotations', 3, []),  # not of the same objects
        (by_id(FRUIT, 0), lambda number: number, list('abcd'), 'annotations', 0, []),  # not of these classes
    ],
)
def test_label_files_that_name_other_classes_than_their_original(
    categories: Dict[int, str],
    label_of: Callable[[int], int],
    names: List[str],
    place: str,
    skip: int,
    classes: List[str],
    tmp_path: Path,
) -> None:
    target = write_both(tmp_path, categories, label_of, names, place, skip)
    code = main(['scan', str(target), '--json', str(tmp_path / 'scan.json')])
    (dataset,) = json.loads((tmp_path / 'scan.json').read_text())['datasets']
    found = [one for one in dataset['findings'] if one['code'] == 'MG162']
    assert (code, len(found)) == ((1, 1) if classes else (0, 0))
    original = dataset['facts']['annotations']['yolo'].get('original')
    assert sorted(original['counts'] if original else []) == sorted(classes)
