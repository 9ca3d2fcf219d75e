"""A second round, written after the first had been sanitized, and again before any scan was run on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

from annotation_files import VOC_GOOD, rewritten
from detection_configs import NAMES, PETS
from drawn_scenes import VOID, scenes
from mask_values import blobs
from situation import (
    Situation,
    coco_config,
    coco_data,
    coco_json,
    masks,
    retina,
    seg_config,
    seg_model,
    some_boxes,
    voc_xml,
    with_options,
    write_config,
)

TEN = [f'c{i}' for i in range(10)]


def loader_alone_reduces(root: Path) -> Any:
    """LoadAnnotations(reduce_zero_label=True) was copied from ADE20K, the data set does not say so."""
    names = ['background', 'A', 'B', 'C']
    return seg_config(scenes(range(4), 6), names, seg_model(4), loader=dict(reduce_zero_label=True))(root)


def windows_paths(data: Dict[str, Any]) -> None:
    for one in data['images']:
        one['file_name'] = 'images\\train\\' + one['file_name']


def config_of(change: Any, classes: Any = NAMES, categories: Any = None) -> Any:
    """A detection config whose JSON was changed."""

    def build(root: Path) -> Any:
        known = PETS if categories is None else categories
        data = coco_json(root / 'train/ann.json', known, some_boxes(list(known)))
        change(data)
        (root / 'train/ann.json').write_text(json.dumps(data), encoding='utf-8')
        loader = dict(dataset=coco_data(root, classes))
        parts = dict(default_scope='mmdet', model=retina(len(classes)), train_dataloader=loader)
        return write_config(root, **parts), dict(splits=('train',))

    return build


def no_boxes(data: Dict[str, Any]) -> None:
    for one in data['annotations']:
        x, y, w, h = one.pop('bbox')
        one['segmentation'] = [[x, y, x + w, y, x + w, y + h, x, y + h]]


def voc_with_sizes(root: Path) -> Any:
    """xmax and ymax hold width and height."""
    drawn = [[('cat', [120, 90, 40, 60]), ('dog', [30, 120, 150, 70])] for _ in range(6)]
    return voc_xml(root / 'VOC', drawn), {}


def water(root: Path) -> Any:
    """classes=('water') without its comma, as reported."""
    build = seg_config(blobs(1, 6), None, seg_model(1), reduce_zero_label=True, metainfo=dict(classes='water'))
    return build(root)


FINE = ('MG100',)

SITUATIONS: Dict[str, Situation] = {
    'open-mmlab/mmsegmentation#789': Situation(
        'reduce_zero_label=True in LoadAnnotations alone: the last class is never seen',
        ('MG124',),
        loader_alone_reduces,
        ('reduce_zero_label=False',),
    ),
    'open-mmlab/mmsegmentation#3505': Situation(
        "classes=('water') is a string", ('MG140', 'MG201', 'MG204'), water, ("('water',)",)
    ),
    'kornia/kornia#839': Situation(
        'VOC with 255 borders is right; the dice loss makes one-hot vectors of 255',
        FINE,
        masks(scenes([0, 5, 12, 15, 20], 6, border=VOID), 21),
        ('one-hot',),
    ),
    'Lightning-AI/torchmetrics#2849': Situation(
        'six classes and 255: right; the metric does not know the ignored value',
        FINE,
        masks(scenes([*range(6), VOID], 6), 6),
        ('ignore_index=255',),
    ),
    'meetps/pytorch-semseg#67': Situation(
        'void is 250, and 250 is ignored: right',
        FINE,
        with_options(masks(scenes([*range(19), 250], 5), 19), ignore_index=250),
    ),
    'pytorch-semseg, void is 255': Situation(
        'ignore_index=250 of the code, 255 in the files',
        ('MG104',),
        with_options(masks(scenes([*range(19), VOID], 5), 19), ignore_index=250),
        ('255',),
    ),
    'the head is two short of the list': Situation(
        'ten names, ten classes, head of eight',
        ('MG108', 'MG201'),
        seg_config(scenes(range(10), 10, keep=0.8), TEN, seg_model(8)),
        ('num_classes=10',),
    ),
    'pytorch/vision#1128': Situation(
        'xmax and ymax hold width and height', ('MG109',), voc_with_sizes, ('two corners',)
    ),
    'paths of Windows': Situation(
        'file_name holds backslashes and folders', ('MG150',), config_of(windows_paths), ('file_name',)
    ),
    'polygons alone': Situation('no bbox, only segmentation', ('MG153',), rewritten(no_boxes), ('bbox',)),
    'divergence': Situation(
        'the loss is nan because of the learning rate: the labels are fine',
        FINE,
        coco_config(PETS, NAMES, retina(3)),
        ('learning rate',),
    ),
    'VOC: an XML is cut off': Situation(
        'one XML is empty, one ends in the middle', ('MG132',), lambda root: (_cut(root), {}), ('Copy or export',)
    ),
}


def _cut(root: Path) -> Path:
    voc_xml(root / 'VOC', VOC_GOOD)
    (root / 'VOC/Annotations/000002.xml').write_text('')
    path = root / 'VOC/Annotations/000005.xml'
    path.write_text(path.read_text()[:120])
    return root / 'VOC'
