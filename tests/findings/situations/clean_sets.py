"""Data sets and heads without a fault, of every kind, odd ones among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import numpy as np
from annotation_files import VOC_GOOD, ids_of
from detection_configs import NAMES, PETS, crowds, detr, dino, mask_rcnn, with_masks
from detr_configs import FIFTEEN, rt_detr
from drawn_scenes import VOID, each, save, save_photos, scene, scenes
from mask_values import CITYSCAPES_IDS, COCO_STUFF_IDS, blobs, mostly_zero, of_ids
from segmentation_configs import FIVE, ade
from situation import (
    CE,
    Build,
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
    train_config,
    voc_config,
    voc_xml,
    with_options,
)

CITYSCAPES_TRAIN_IDS = scenes([*range(19), VOID], 4, keep=0.8)
BLOBS = blobs(1, 6)
GROUND = ['ground', 'house']
POLYGON = dict(segmentation=[[10, 10, 60, 10, 60, 60]])


def cityscapes_folders(root: Path) -> Any:
    """The layout of Cityscapes: all kinds of label files side by side, photographs elsewhere."""
    for number, label in enumerate(CITYSCAPES_TRAIN_IDS):
        stem = f'ulm_{number:06}_000019'
        raw = np.array([*CITYSCAPES_IDS, *[0] * 237], np.uint8)[label]
        save(root / 'gtFine/train/ulm', [label], f'{stem}_gtFine_labelTrainIds')
        save(root / 'gtFine/train/ulm', [raw], f'{stem}_gtFine_labelIds')
        save(root / 'gtFine/train/ulm', [raw.astype(np.uint16) * 1000], f'{stem}_gtFine_instanceIds')
        save_photos(root / 'leftImg8bit/train/ulm', 1, f'{stem}_leftImg8bit', '.png')
    return root, dict(num_classes=19)


def patched(drawn: Any, where: slice, part: Any, value: int) -> Any:
    """Label maps with another value in a part of some of them."""
    for label in drawn[where]:
        label[part] = value
    return drawn


def repeat_and_concat(root: Path) -> Any:
    """Two data sets joined, one of them repeated."""
    coco_json(root / 'a/ann.json', PETS, some_boxes([1, 2, 3]))
    coco_json(root / 'b/ann.json', PETS, some_boxes([1, 2, 3], seed=1))
    first, second = coco_data(root, NAMES, 'a'), coco_data(root, NAMES, 'b')
    joined = dict(type='ConcatDataset', datasets=[dict(type='RepeatDataset', times=3, dataset=first), second])
    return train_config(root, retina(3), joined, 'mmdet')


def mapped_by_guard() -> Build:
    """0 and 255 are mapped directly after loading."""
    guard = dict(type='GuardSegLabels', num_classes=2, label_map={255: 1})
    steps = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), guard]
    return seg_config(blobs(255, 5), GROUND, seg_model(2), pipeline=steps)


def sigmoid(weights: Any, **loss: Any) -> Dict[str, Any]:
    """A binary head of one output."""
    config = dict(type='CrossEntropyLoss', use_sigmoid=True, class_weight=weights, **loss)
    return seg_model(2, dict(num_classes=2, out_channels=1, threshold=0.3, loss_decode=config))


def two_stages() -> Dict[str, Any]:
    heads = [dict(type=name, num_classes=5, loss_decode=CE) for name in ('FCNHead', 'OCRHead')]
    preprocessor = dict(type='SegDataPreProcessor', seg_pad_val=255)
    return dict(type='CascadeEncoderDecoder', num_stages=2, decode_head=heads, data_preprocessor=preprocessor)


def agnostic_masks() -> Dict[str, Any]:
    """One mask for all classes."""
    model = mask_rcnn(3, 3)
    model['roi_head']['mask_head']['class_agnostic'] = True
    return model


CLEAN: Dict[str, Build] = {
    'train ids of Cityscapes': masks(CITYSCAPES_TRAIN_IDS, 19),
    'Cityscapes, its folders': cityscapes_folders,
    'binary': masks(BLOBS, 2),
    'binary, most masks empty': masks(BLOBS + [np.zeros((60, 80), np.uint8)] * 14, 2),
    'binary, borders in some files': masks([scene([0, 1], s, border=VOID if s % 2 else None) for s in range(12)], 2),
    'a rare class': masks(patched(scenes(range(4), 120, keep=0.8), slice(3, 5), np.s_[20:30, 20:40], 4), 5),
    'void is 11, reported': with_options(masks(scenes(range(12), 6), 11), ignore_index=11),
    'void is 0, reported': with_options(masks(scenes(range(8), 6), 7), reduce_zero_label=True),
    'raw ids, mapped': with_options(masks(scenes([7, 8, 11], 6), 3), label_map=((7, 0), (8, 1), (11, 2))),
    '19 classes, five seen': masks(scenes([0, 2, 8, 10, 13], 5), 19),
    '151 classes': masks([scene([0, *range(1 + k, 151, 12)], k) for k in range(12)], 151),
    'tiff, floats that are whole': masks(
        each(scenes(range(5), 4), lambda label: label.astype(np.float32)), 5, files=dict(ending='.tif')
    ),
    'PNG of 1 bit': masks(each(BLOBS, lambda label: label.astype(bool)), 2),
    'no number of classes': lambda root: (save(root / 'labels', scenes(range(7), 5)), {}),
    'config': seg_config(scenes([0, 1, 2, 3, 4, VOID], 5), FIVE, seg_model(5)),
    'config, validation': seg_config(scenes(range(5), 4), FIVE, seg_model(5), val=scenes(range(5), 3), look_at='val'),
    'config, auxiliary head': seg_config(
        scenes(range(5), 5), FIVE, seg_model(5, auxiliary_head=dict(type='FCNHead', num_classes=5, loss_decode=CE))
    ),
    'config, guarded class weights': seg_config(
        scenes([0, 1, 2, 3, 4, VOID], 5),
        FIVE,
        seg_model(5, dict(loss_decode=dict(type='GuardedCrossEntropyLoss', class_weight=[1.0] * 5))),
    ),
    'config, mapped by the guard': mapped_by_guard(),
    'ADE20K': seg_config(ade(150), None, seg_model(150), type='ADE20KDataset'),
    'ADE20K shifted by hand': seg_config(
        [scene([0, *range(1 + k, 150, 12), VOID], k) for k in range(12)],
        None,
        seg_model(150),
        type='ADE20KDataset',
        reduce_zero_label=False,
    ),
    'LoveDA': seg_config(scenes(range(8), 6), None, seg_model(7), type='LoveDADataset', img_suffix='.jpg'),
    'JSON': ids_of(json_alone({0: 'cat', 1: 'dog'}, 2), 'detectron2'),
    'JSON, as torchvision counts': ids_of(json_alone(numbered('cat', 'dog'), 3), 'torchvision'),
    'JSON of COCO ids, renumbered': with_options(json_alone({1: 'a', 18: 'b', 90: 'c'}, None), framework='mmdet'),
    'JSON, boxes at the upper left, which could be corners': ids_of(
        json_alone({0: 'a', 1: 'b'}, 2, [[(0, [2, 3, 40 + k, 50 + k]), (1, [5, 1, 60, 44 + k])] for k in range(8)]),
        'detectron2',
    ),
    'JSON, one image without object in 60': ids_of(json_alone({0: 'a'}, 1, [*some_boxes([0], 60), []]), 'yolox'),
    'detection config': coco_config(PETS, NAMES, retina(3)),
    'detection config, validation': coco_config(PETS, NAMES, retina(3), val=PETS, look_at='val'),
    'detection config, joined and repeated': repeat_and_concat,
    'VOC folder': lambda root: (voc_xml(root / 'VOC', VOC_GOOD), {}),
    'VOC config': voc_config(VOC_GOOD, ('cat', 'dog'), faster(2)),
    'sigmoid of one channel, weighted, void': seg_config(
        BLOBS[:4] + scenes([0, 1, VOID], 4), GROUND, sigmoid(None, avg_non_ignore=True)
    ),
    'two stages': seg_config(scenes([0, 1, 2, 3, 4, VOID], 5), FIVE, two_stages()),
    'OHEM, void in some': seg_config(
        scenes([0, 1, 2, 3, 4, VOID], 6), FIVE, seg_model(5, dict(loss_decode=dict(type='OhemCrossEntropy')))
    ),
    'Pascal Context 60': seg_config(
        scenes(range(60), 6), None, seg_model(60), type='PascalContextDataset', ann_file=''
    ),
    'DETR, one weight for all': coco_config(PETS, NAMES, detr(3, 1.0)),
    'DINO': coco_config(PETS, NAMES, dino(3)),
    'one mask for all classes': coco_config(PETS, NAMES, agnostic_masks(), annotation=POLYGON),
    'some images without object, filtered': coco_config(PETS, NAMES, retina(3), [*some_boxes([1, 2, 3], 20), [], []]),
    'void and a class that is rare': masks([scene(range(5), n, border=VOID) for n in range(8)], 6),
    'much void, all classes there': masks(
        [np.where(label == 0, VOID, label - 1).astype(np.uint8) for label in mostly_zero(6)], 5
    ),
    'all others are ignored': with_options(
        masks(scenes([7, 8, 11, 12], 8), 2), label_map=((7, 0), (8, 1), ('*', VOID))
    ),
    'COCO-Stuff with an output for each id': masks(of_ids(COCO_STUFF_IDS, 24, 12, 1), 183),
    'category 0 for torchvision': ids_of(
        json_alone({0: 'background', 1: 'cat', 2: 'dog'}, 3, some_boxes([1, 2])), 'torchvision'
    ),
    'ids 1..5 in the table of COCO': rt_detr(numbered(*'abcde'), 5, True),
    **{
        f'JSON of ids from 1, {name}': ids_of(json_alone(FIFTEEN, 15), name)
        for name in ('mmdet', 'detectron2', 'yolox')
    },
    'transformers, ids from 0': ids_of(json_alone(numbered(*'abcde', start=0), 5), 'transformers'),
    'detectron2, ids with gaps and out of order': ids_of(
        json_alone({17: 'cat', 3: 'car', 44: 'bottle'}, 3), 'detectron2'
    ),
    'ids with gaps, positions are trained': with_options(
        json_alone({3: 'a', 7: 'b', 8: 'c', 12: 'd'}, 4), labels='positions'
    ),
    'polygons for masks': with_masks(faster(3), **POLYGON),
    'crowds beside objects': crowds(0, 6),
}
