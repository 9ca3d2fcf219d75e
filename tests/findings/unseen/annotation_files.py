"""Situations that show in COCO files and in VOC folders, without a config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

from situation import Boxes, Situation, coco_json, json_alone, numbered, some_boxes, voc_xml, with_options

COCO_IDS = [i for i in range(1, 91) if i not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)]
GOOD = some_boxes([0, 1, 2])
NAMES = {0: 'cat', 1: 'dog', 2: 'cow'}


def rewritten(change: Callable[[Dict[str, Any]], None], num_classes: Any = 3, ids: Any = None, **more: Any) -> Any:
    """A sound file in which something is changed."""

    def build(root: Path) -> Any:
        names = NAMES if ids is None else ids
        path = root / 'coco/train.json'
        data = coco_json(path, names, some_boxes(list(names)), **more)
        change(data)
        path.write_text(json.dumps(data), encoding='utf-8')
        return path, dict(num_classes=num_classes)

    return build


def corners(boxes: List[Boxes]) -> List[Boxes]:
    return [[(i, [x, y, x + w, y + h]) for i, (x, y, w, h) in image] for image in boxes]


def normalised(boxes: List[Boxes]) -> List[Boxes]:
    return [[(i, [x / 320, y / 240, w / 320, h / 240]) for i, (x, y, w, h) in image] for image in boxes]


def texts(data: Dict[str, Any]) -> None:
    for one in data['annotations']:
        one['category_id'] = str(one['category_id'])


def counts_from_zero(data: Dict[str, Any]) -> None:
    for one in data['annotations']:
        one['category_id'] -= 1


def text_boxes(data: Dict[str, Any]) -> None:
    for one in data['annotations']:
        one['bbox'] = [str(part) for part in one['bbox']]


def two_outside(data: Dict[str, Any]) -> None:
    data['annotations'][4]['bbox'] = [330, 40, 20, 20]
    data['annotations'][9]['bbox'] = [40, 260, 20, 20]


def no_categories(data: Dict[str, Any]) -> None:
    data['categories'] = []


def no_annotations(data: Dict[str, Any]) -> None:
    data['annotations'] = []


def voc(drawn: Any, num_classes: Any = None, **more: Any) -> Callable[[Path], Any]:
    return lambda root: (voc_xml(root / 'VOC', drawn, **more), dict(num_classes=num_classes))


VOC_GOOD = [[('cat', [10 + k, 20, 90, 110]), ('dog', [100, 50, 200, 180 - k])] for k in range(8)]

SITUATIONS: Dict[str, Situation] = {
    'dbolya/yolact#333': Situation(
        'ids count from 1: cat 1 .. cow 3, num_classes=3',
        ('MG138', 'MG115'),
        json_alone(numbered('cat', 'dog', 'cow'), 3),
        ('num_classes=4',),
    ),
    'ids of a labelling tool': Situation(
        'ids such as 8823411',
        ('MG137',),
        with_options(json_alone({8823411: 'cat', 8823412: 'dog'}, 2), labels='ids'),
        ('Renumber',),
    ),
    'roboflow: a parent category 0': Situation(
        'id 0 names the project and is never used; the labels are 1 and 2 of num_classes=2',
        ('MG102', 'MG138', 'MG115'),
        with_options(json_alone({0: 'pets', 1: 'cat', 2: 'dog'}, 2, some_boxes([1, 2])), labels='ids'),
        ('num_classes=3',),
    ),
    'annotations count from 0, categories from 1': Situation(
        'category_id is one less than the id that is named: 0 is named by nobody',
        ('MG149',),
        rewritten(counts_from_zero, None, numbered('cat', 'dog', 'cow')),
        ('category_id',),
    ),
    'no categories': Situation('"categories" is empty', ('MG149',), rewritten(no_categories, None), ('"categories"',)),
    'no annotations': Situation(
        'the JSON of a test set, without annotations', ('MG174',), rewritten(no_annotations), (), ('labels are fine',)
    ),
    'category_id is text': Situation(
        '"1" is not 1: no annotation has a category', ('MG176', 'MG149'), rewritten(texts), ("'1'",), ('lfs',)
    ),
    'boxes are corners': Situation(
        'bbox holds x1, y1, x2, y2 instead of x, y, width, height',
        ('MG172',),
        json_alone(NAMES, 3, corners(GOOD)),
        ('x2 - x1',),
    ),
    'boxes are normalised': Situation(
        'bbox is divided by the size of the image', ('MG173',), json_alone(NAMES, 3, normalised(GOOD)), ('width',)
    ),
    'two boxes outside': Situation(
        'two boxes lie outside of their images', ('MG109',), rewritten(two_outside), ('outside',)
    ),
    'boxes of texts': Situation(
        'bbox holds texts: ["10", "20", ...]', ('MG176', 'MG153'), rewritten(text_boxes), ('bbox',), ('lfs',)
    ),
    'every annotation is a crowd': Situation(
        'a converter wrote iscrowd=1 for every RLE mask: nothing is trained on',
        ('MG174',),
        json_alone(NAMES, 3, GOOD, annotation=dict(iscrowd=1)),
        ('iscrowd',),
        ('labels are fine',),
    ),
    'area and iscrowd are missing': Situation(
        'a JSON written by hand', ('MG153',), json_alone(NAMES, 3, GOOD, without=('area', 'iscrowd')), ('area',)
    ),
    'many empty images': Situation(
        'a third of the images has no object', ('MG146',), json_alone(NAMES, 3, GOOD + [[]] * 6), ('filter_empty_gt',)
    ),
    'VOC: corners count from 0': Situation(
        'a 0 in the file becomes -1', ('MG152',), voc([[('cat', [0, 0, 80, 90])], *VOC_GOOD]), ('minus-one',)
    ),
    'VOC: normalised corners': Situation(
        'corners are 0.1 .. 0.9: int() makes 0 of them, minus one',
        ('MG173',),
        voc([[('cat', [0.1, 0.2, 0.5, 0.7]), ('dog', [0.3, 0.1, 0.9, 0.8])]] * 6),
        ('width',),
    ),
    'VOC: size is 0': Situation(
        'width and height are written as 0', ('MG176',), voc(VOC_GOOD, size=(0, 0)), ('size',), ('lfs',)
    ),
}
