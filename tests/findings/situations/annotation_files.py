"""Situations that show in COCO files and in VOC folders, without a config."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy as np
from situation import Boxes, Build, Situation, json_alone, numbered, some_boxes, voc_xml, with_options

COCO_IDS = [i for i in range(1, 91) if i not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)]
GOOD = some_boxes([0, 1, 2])
NAMES = {0: 'cat', 1: 'dog', 2: 'cow'}
BY_TEXT = {1: 'a', 10: 'j', 11: 'k', 2: 'b', 3: 'c', 4: 'd', 5: 'e', 6: 'f', 7: 'g', 8: 'h', 9: 'i'}
FOUR = numbered('bolt', 'nut', 'pin', 'rod')


def rewritten(change: Callable[[Dict[str, Any]], None], num_classes: Any = 3, ids: Any = None) -> Build:
    """A sound file in which something is changed."""
    return json_alone(NAMES if ids is None else ids, num_classes, change=change)


def corners(boxes: List[Boxes]) -> List[Boxes]:
    return [[(i, [x, y, x + w, y + h]) for i, (x, y, w, h) in image] for image in boxes]


def normalised(boxes: List[Boxes]) -> List[Boxes]:
    return [[(i, [x / 320, y / 240, w / 320, h / 240]) for i, (x, y, w, h) in image] for image in boxes]


def with_key(key: str, value: Any, every: int = 1) -> Callable[[Dict[str, Any]], None]:
    """Set a key of every so many annotation; a function makes the value of what was there."""

    def change(data: Dict[str, Any]) -> None:
        for one in data['annotations'][::every]:
            one[key] = value(one[key]) if callable(value) else value

    return change


def minus_one(label: int) -> int:
    return label - 1


def voc(drawn: Any, num_classes: Any = None, **more: Any) -> Callable[[Path], Any]:
    return lambda root: (voc_xml(root / 'VOC', drawn, **more), dict(num_classes=num_classes))


VOC_GOOD = [[('cat', [10 + k, 20, 90, 110]), ('dog', [100, 50, 200, 180 - k])] for k in range(8)]


def no_boxes(data: Dict[str, Any]) -> None:
    for one in data['annotations']:
        x, y, w, h = one.pop('bbox')
        one['segmentation'] = [[x, y, x + w, y, x + w, y + h, x, y + h]]


def cut_off(root: Path) -> Any:
    voc_xml(root / 'VOC', VOC_GOOD)
    (root / 'VOC/Annotations/000002.xml').write_text('')
    path = root / 'VOC/Annotations/000005.xml'
    path.write_text(path.read_text()[:120])
    return root / 'VOC', {}


def ids_of(build: Build, framework: str) -> Build:
    return with_options(build, framework=framework)


def small_boxes() -> List[List[Any]]:
    """Corners in 320 x 240; only some of them reach outside when they are read as x, y, width, height."""
    random = np.random.default_rng(1)
    drawn = []
    for _ in range(12):
        boxes = []
        for _ in range(4):
            left, top = (170, 5) if random.random() < 0.3 else (4, 4)
            x, y = left + int(random.integers(0, 30)), top + int(random.integers(0, 50))
            boxes.append((1, [x, y, x + int(random.integers(15, 80)), y + int(random.integers(15, 60))]))
        drawn.append(boxes)
    return drawn


def two_without(data: Dict[str, Any]) -> None:
    for number in (5, 11):
        data['annotations'][number]['segmentation'] = []


SITUATIONS: Dict[str, Situation] = {
    'roboflow: a parent category 0': Situation(
        'id 0 names the project and is never used; the labels are 1 and 2 of num_classes=2',
        ('MG102', 'MG138', 'MG115'),
        with_options(json_alone({0: 'pets', 1: 'cat', 2: 'dog'}, 2, some_boxes([1, 2])), labels='ids'),
        first=dict(classes=('cat', 'dog'), renumber=0),
    ),
    'annotations count from 0, categories from 1': Situation(
        'category_id is one less than the id that is named: 0 is named by nobody',
        ('MG149',),
        rewritten(with_key('category_id', minus_one), None, numbered('cat', 'dog', 'cow')),
        first=dict(label_map={0: 1, 1: 2, 2: 3}),
    ),
    'no categories': Situation(
        '"categories" is empty', ('MG149',), rewritten(lambda data: data.update(categories=[]), None)
    ),
    'no annotations': Situation(
        'the JSON of a test set, without annotations', ('MG174',), rewritten(lambda data: data.update(annotations=[]))
    ),
    'category_id is text': Situation(
        '"1" is not 1: no annotation has a category', ('MG176', 'MG149'), rewritten(with_key('category_id', str))
    ),
    'boxes of texts': Situation(
        'bbox holds texts: ["10", "20", ...]',
        ('MG176', 'MG153'),
        rewritten(with_key('bbox', lambda box: [*map(str, box)])),
    ),
    'area and iscrowd are missing': Situation(
        'a JSON written by hand', ('MG153',), json_alone(NAMES, 3, GOOD, without=('area', 'iscrowd'))
    ),
    'VOC: corners count from 0': Situation(
        'a 0 in the file becomes -1',
        ('MG152',),
        voc([[('cat', [0, 0, 80, 90])], *VOC_GOOD]),
        seen=('000000.xml: 0, 0, 80, 90',),
    ),
    'VOC: normalised corners': Situation(
        'corners are 0.1 .. 0.9: int() makes 0 of them, minus one',
        ('MG172',),
        voc([[('cat', [0.1, 0.2, 0.5, 0.7]), ('dog', [0.3, 0.1, 0.9, 0.8])]] * 6),
        first=dict(boxes='fractions'),
    ),
    'VOC: size is 0': Situation('width and height are written as 0', ('MG176',), voc(VOC_GOOD, size=(0, 0))),
    'pytorch/vision#1128': Situation(
        'xmax and ymax hold width and height',
        ('MG109',),
        voc([[('cat', [120, 90, 40, 60]), ('dog', [30, 120, 150, 70])]] * 6),
        seen=('000000.xml: 120, 90, 40, 60',),
    ),
    'polygons alone': Situation('no bbox, only segmentation', ('MG153',), rewritten(no_boxes)),
    'VOC: an XML is cut off': Situation(
        'one XML is empty, one ends in the middle', ('MG132',), cut_off, seen=('000002.xml', '000005.xml')
    ),
    'a category of the file': Situation(
        'nothing has it',
        ('MG160',),
        json_alone({0: 'background', 1: 'cat', 2: 'dog'}, 3, some_boxes([1, 2])),
        first=dict(num_classes=2, classes=('cat', 'dog')),
    ),
    'ids in the order of texts, file alone': Situation(
        'who numbers by the file and who by ids differ', ('MG141',), json_alone(BY_TEXT, 11)
    ),
    'the second half of a list, detectron2': Situation(
        'ids 5..9 of 10 become 0..4, in the other file 5..9',
        ('MG141',),
        ids_of(json_alone(numbered(*'fghij', start=5), 10), 'detectron2'),
        never=dict(num_classes=...),
    ),
    'COCO: below 0': Situation(
        'a slip',
        ('MG152',),
        json_alone({0: 'cat'}, 1, [[(0, [-7, 20, 50, 50])], *some_boxes([0])]),
        seen=('0000.jpg: -7, 20, 50, 50',),
    ),
    'corners, a third visible': Situation(
        'x1, y1, x2, y2', ('MG172',), json_alone(FOUR, 5, small_boxes()), first=dict(boxes='corners')
    ),
    'masks: few are missing': Situation(
        'two objects of 36 have no mask: they are slips',
        ('MG396',),
        with_options(
            json_alone(
                numbered('scratch', 'dent', 'spot'),
                3,
                annotation=dict(segmentation=[[20, 20, 90, 22, 88, 70, 25, 64]]),
                change=two_without,
            ),
            masks=True,
        ),
        never=dict(masks=...),
        seen=('0001.jpg: annotation 6',),
    ),
}
