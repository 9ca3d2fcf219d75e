"""Data sets without a fault, of every kind, odd ones among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict

import numpy as np
from annotation_files import VOC_GOOD
from drawn_scenes import VOID, blob, each, save, save_photos, scene, scenes
from mask_files import VOC_COLOURS
from situation import (
    CE,
    coco_config,
    coco_data,
    coco_json,
    faster,
    json_alone,
    masks,
    numbered,
    retina,
    seg_config,
    seg_model,
    some_boxes,
    voc_config,
    voc_xml,
    with_options,
    write_config,
)

Build = Callable[[Path], Any]
FIVE = ['road', 'house', 'tree', 'car', 'sky']
PETS = numbered('cat', 'dog', 'cow')
NAMES = ('cat', 'dog', 'cow')
CITYSCAPES_TRAIN_IDS = scenes([*range(19), VOID], 4, keep=0.8)


def cityscapes_folders(root: Path) -> Any:
    """The layout of Cityscapes: all kinds of label files side by side, photographs elsewhere."""
    ids = [7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33]
    for number, label in enumerate(CITYSCAPES_TRAIN_IDS):
        stem = f'ulm_{number:06}_000019'
        raw = np.array([*ids, *[0] * 237], np.uint8)[label]
        save(root / 'gtFine/train/ulm', [label], f'{stem}_gtFine_labelTrainIds')
        save(root / 'gtFine/train/ulm', [raw], f'{stem}_gtFine_labelIds')
        save(root / 'gtFine/train/ulm', [raw.astype(np.uint16) * 1000], f'{stem}_gtFine_instanceIds')
        save_photos(root / 'leftImg8bit/train/ulm', 1, f'{stem}_leftImg8bit', '.png')
    return root, dict(num_classes=19)


def rare_class(files: int = 120) -> Any:
    """Five classes, the last one in two files."""
    drawn = scenes(range(4), files, keep=0.8)
    for label in drawn[3:5]:
        label[20:30, 20:40] = 4
    return drawn


def background_only(root: Path) -> Any:
    """Binary masks of defects; many parts have none, whose mask is 0 alone."""
    return masks([blob(1, seed=s) for s in range(6)] + [np.zeros((60, 80), np.uint8)] * 14, 2)(root)


def with_borders_in_some(root: Path) -> Any:
    """Two classes; a void border in some files, none in others."""
    drawn = [scene([0, 1], s, border=VOID if s % 2 else None) for s in range(12)]
    return masks(drawn, 2)(root)


def unlabelled_parts(root: Path) -> Any:
    """Two classes; a corner of some files is void."""
    drawn = [blob(1, seed=s) for s in range(12)]
    for label in drawn[::3]:
        label[:20, :20] = VOID
    return masks(drawn, 2)(root)


def classes_sorted_by_frequency(root: Path) -> Any:
    """Ten classes, the later the rarer: not numbers of objects."""
    drawn = [scene(range(2 + s % 9), s) for s in range(27)]
    return masks(drawn, 10)(root)


def many_in_validation(root: Path) -> Any:
    return seg_config(scenes(range(5), 4), FIVE, seg_model(5), val=scenes(range(5), 3), look_at='val')(root)


def repeat_and_concat(root: Path) -> Any:
    """Two data sets joined, one of them repeated."""
    coco_json(root / 'a/ann.json', PETS, some_boxes([1, 2, 3]))
    coco_json(root / 'b/ann.json', PETS, some_boxes([1, 2, 3], seed=1))
    first, second = coco_data(root, NAMES, 'a'), coco_data(root, NAMES, 'b')
    joined = dict(type='ConcatDataset', datasets=[dict(type='RepeatDataset', times=3, dataset=first), second])
    config = write_config(root, default_scope='mmdet', model=retina(3), train_dataloader=dict(dataset=joined))
    return config, dict(splits=('train',))


def ade20k(root: Path) -> Any:
    drawn = [scene([0, *range(1 + k, 151, 12), 150], k) for k in range(12)]
    return seg_config(drawn, None, seg_model(150), type='ADE20KDataset')(root)


def ade20k_shifted_by_hand(root: Path) -> Any:
    drawn = [scene([0, *range(1 + k, 150, 12), VOID], k) for k in range(12)]
    return seg_config(drawn, None, seg_model(150), type='ADE20KDataset', reduce_zero_label=False)(root)


def loveda(root: Path) -> Any:
    return seg_config(scenes(range(8), 6), None, seg_model(7), type='LoveDADataset', img_suffix='.jpg')(root)


def two_classes_of_loveda(root: Path) -> Any:
    """metainfo names two of the seven classes: the others are mapped to 255."""
    settings = dict(type='LoveDADataset', reduce_zero_label=True, img_suffix='.jpg')
    return seg_config(scenes(range(8), 6), ['background', 'building'], seg_model(2), **settings)(root)


def sigmoid(root: Path) -> Any:
    head = dict(
        num_classes=2, out_channels=1, threshold=0.5, loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=True)
    )
    return seg_config([blob(1, seed=s) for s in range(5)], ['ground', 'house'], seg_model(2, head))(root)


def weighted(root: Path) -> Any:
    loss = dict(type='GuardedCrossEntropyLoss', class_weight=[1.0] * 5)
    return seg_config(scenes([0, 1, 2, 3, 4, VOID], 5), FIVE, seg_model(5, dict(loss_decode=loss)))(root)


def mapped_by_guard(root: Path) -> Any:
    """0 and 255 are mapped directly after loading."""
    steps = [
        dict(type='LoadImageFromFile'),
        dict(type='LoadAnnotations'),
        dict(type='GuardSegLabels', num_classes=2, label_map={255: 1}),
    ]
    return seg_config([blob(255, seed=s) for s in range(5)], ['ground', 'house'], seg_model(2), pipeline=steps)(root)


def with_crowds(root: Path) -> Any:
    """A few crowds, as COCO has them."""
    path = root / 'coco/train.json'
    data = coco_json(path, {0: 'cat', 1: 'dog'}, some_boxes([0, 1]))
    for one in data['annotations'][::9]:
        one.update(iscrowd=1, segmentation=dict(counts=[1, 2], size=[240, 320]))
    path.write_text(json.dumps(data), encoding='utf-8')
    return path, dict(num_classes=2)


def upper_left(root: Path) -> Any:
    """Small objects near the origin: every box would be one as corners, too."""
    drawn = [[(0, [2, 3, 40 + k, 50 + k]), (1, [5, 1, 60, 44 + k])] for k in range(8)]
    return json_alone({0: 'a', 1: 'b'}, 2, drawn)(root)


def fractional_boxes(root: Path) -> Any:
    """Boxes with fractions of pixels, some a fraction over the edge."""
    drawn = [[(0, [10.25, 20.5, 300.1, 200.0]), (1, [290.6, 100.2, 29.9, 139.9])] for _ in range(8)]
    return json_alone({0: 'a', 1: 'b'}, 2, drawn)(root)


CLEAN: Dict[str, Build] = {
    'train ids of Cityscapes': masks(CITYSCAPES_TRAIN_IDS, 19),
    'Cityscapes, its folders': cityscapes_folders,
    'binary': masks([blob(1, seed=s) for s in range(8)], 2),
    'binary, most masks empty': background_only,
    'binary, borders in some files': with_borders_in_some,
    'binary, void corners in some files': unlabelled_parts,
    'binary, with photographs': masks([blob(1, seed=s) for s in range(8)], 2, with_photos=True),
    'VOC palette with borders': masks(
        scenes(range(5), 6, border=VOID), 21, files=dict(palette=VOC_COLOURS + [(0, 0, 0)] * 250 + [(224, 224, 192)])
    ),
    'palette of one tool': masks(scenes(range(4), 5), 4, files=dict(palette=[(9, 9, 9), (250, 50, 83), (1, 2, 3)])),
    'a rare class': masks(rare_class(), 5),
    'classes sorted by frequency': classes_sorted_by_frequency,
    'void is 11, reported': with_options(masks(scenes(range(12), 6), 11), ignore_index=11),
    'void is 0, reported': with_options(masks(scenes(range(8), 6), 7), reduce_zero_label=True),
    'raw ids, mapped': with_options(masks(scenes([7, 8, 11], 6), 3), label_map=((7, 0), (8, 1), (11, 2))),
    '19 classes, five seen': masks(scenes([0, 2, 8, 10, 13], 5), 19),
    '151 classes': masks([scene([0, *range(1 + k, 151, 12)], k) for k in range(12)], 151),
    '200 classes': masks([scene(range(200))], 200),
    'one file': masks([scene(range(5))], 5),
    'bmp': masks(scenes(range(5), 4), 5, files=dict(ending='.bmp')),
    'tiff, 8 bits': masks(scenes(range(5), 4), 5, files=dict(ending='.tif')),
    'tiff, floats that are whole': masks(
        each(scenes(range(5), 4), lambda label: label.astype(np.float32)), 5, files=dict(ending='.tif')
    ),
    'PNG of 1 bit': masks([blob(1, seed=s).astype(bool) for s in range(4)], 2),
    'no number of classes': lambda root: (save(root / 'labels', scenes(range(7), 5)), {}),
    'config': seg_config(scenes([0, 1, 2, 3, 4, VOID], 5), FIVE, seg_model(5)),
    'config, validation': many_in_validation,
    'config, palette': seg_config(scenes(range(5), 5), FIVE, seg_model(5), files=dict(palette=VOC_COLOURS)),
    'config, auxiliary head': seg_config(
        scenes(range(5), 5),
        FIVE,
        seg_model(5, auxiliary_head=dict(type='FCNHead', num_classes=5, loss_decode=CE)),
    ),
    'config, sigmoid of one channel': sigmoid,
    'config, guarded class weights': weighted,
    'config, mapped by the guard': mapped_by_guard,
    'ADE20K': ade20k,
    'ADE20K shifted by hand': ade20k_shifted_by_hand,
    'LoveDA': loveda,
    'two classes of LoveDA': two_classes_of_loveda,
    'JSON': json_alone({0: 'cat', 1: 'dog'}, 2),
    'JSON, as torchvision counts': json_alone(numbered('cat', 'dog'), 3),
    'JSON of COCO ids, renumbered': with_options(json_alone({1: 'a', 18: 'b', 90: 'c'}, None), framework='mmdet'),
    'JSON of ids from 1, renumbered': with_options(json_alone(numbered('cat', 'dog'), 2), framework='detectron2'),
    'JSON with crowds': with_crowds,
    'JSON, boxes at the upper left': upper_left,
    'JSON, fractions of pixels': fractional_boxes,
    'JSON, one image without object in 60': json_alone({0: 'a'}, 1, [*some_boxes([0], 60), []]),
    'detection config': coco_config(PETS, NAMES, retina(3)),
    'detection config, validation': coco_config(PETS, NAMES, retina(3), val=PETS, look_at='val'),
    'detection config, ids with gaps': coco_config({3: 'cat', 9: 'dog', 70: 'cow'}, NAMES, faster(3)),
    'detection config, one class': coco_config({1: 'cat'}, ('cat',), faster(1)),
    'detection config, classes a, b, c': coco_config(numbered('a', 'b', 'c'), ('a', 'b', 'c'), retina(3)),
    'detection config, joined and repeated': repeat_and_concat,
    'VOC folder': lambda root: (voc_xml(root / 'VOC', VOC_GOOD), {}),
    'VOC config': voc_config(VOC_GOOD, ('cat', 'dog'), faster(2)),
}
