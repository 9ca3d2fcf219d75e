"""Situations that show in an mmseg config together with its files."""

from __future__ import annotations

from typing import Any, Dict, List

import numpy as np
from drawn_scenes import VOID, blob, save, save_photos, scene, scenes
from situation import CE, Situation, seg_config, seg_data, seg_model, write_config

FIVE = ['road', 'house', 'tree', 'car', 'sky']
LOVEDA = ['background', 'building', 'road', 'water', 'barren', 'forest', 'agricultural']
BLOBS = [blob(1, seed=seed) for seed in range(6)]
OHEM = dict(type='OhemCrossEntropy', thres=0.9, min_kept=1000)


def ade(last: int, first: int = 1) -> List[np.ndarray]:
    return [scene([0, *range(first + k, last, 12), last], k) for k in range(12)]


def wrong_suffix(root: Any) -> Any:
    """The masks are called NAME_mask.png; the config says .png."""
    save(root / 'masks/train', scenes(range(5), 6), '{:03}_mask')
    save_photos(root / 'images/train', 6)
    data = dict(batch_size=2, dataset=seg_data(root, FIVE))
    return write_config(root, default_scope='mmseg', model=seg_model(5), train_dataloader=data), dict(splits=('train',))


def other_classes_in_validation(root: Any) -> Any:
    """The names of the validation stand in another order."""
    for split in ('train', 'val'):
        save(root / f'masks/{split}', scenes(range(5), 4))
        save_photos(root / f'images/{split}', 4)
    parts = {
        'train_dataloader': dict(batch_size=2, dataset=seg_data(root, FIVE)),
        'val_dataloader': dict(batch_size=1, dataset=seg_data(root, sorted(FIVE), 'val')),
    }
    return write_config(root, default_scope='mmseg', model=seg_model(5), **parts), dict(splits=('train',))


def cascade(first: int, last: int) -> Dict[str, Any]:
    heads = [
        dict(type='FCNHead', num_classes=first, loss_decode=CE),
        dict(type='OCRHead', num_classes=last, loss_decode=CE),
    ]
    return dict(type='CascadeEncoderDecoder', num_stages=2, decode_head=heads)


SIGMOID_LEFT_OUT = dict(num_classes=2, out_channels=1, loss_decode=CE)

SITUATIONS: Dict[str, Situation] = {
    'open-mmlab/mmsegmentation#1609': Situation(
        'label 0 and 255, two classes, dice loss: IoU 0, Acc nan; 255 is ignored',
        ('MG103',),
        seg_config([blob(255, seed=s) for s in range(6)], ['ground', 'object'], seg_model(2)),
        ('label_map={255: 1}',),
    ),
    'open-mmlab/mmsegmentation#855': Situation(
        '0 is void, seven classes 1..7, reduce_zero_label=True, but num_classes was set to 8',
        ('MG201',),
        seg_config(scenes(range(8), 8, keep=0.9), list('abcdefg'), seg_model(8), reduce_zero_label=True),
        ('num_classes=7',),
        ('reduce_zero_label=False',),
    ),
    'open-mmlab/mmsegmentation#2245': Situation(
        'last class nan: reduce_zero_label=True came with the base config, 0 is a class',
        ('MG124',),
        seg_config(scenes(range(5), 6), FIVE, seg_model(5), reduce_zero_label=True),
        ('reduce_zero_label=False',),
    ),
    'open-mmlab/mmsegmentation#1553': Situation(
        'IndexError: Target 15 is out of bounds: iSAID has 16 classes with its background, 15 were counted',
        ('MG102', 'MG108', 'MG201'),
        seg_config(scenes(range(16), 6), [f'c{i}' for i in range(16)], seg_model(15)),
        ('num_classes=16',),
    ),
    'InternImage#78': Situation(
        'two labels, num_classes=2 with out_channels=1, use_sigmoid forgotten',
        ('MG215',),
        seg_config(BLOBS, ['ground', 'house'], seg_model(2, SIGMOID_LEFT_OUT)),
        ('use_sigmoid=True',),
    ),
    'class weights of Cityscapes kept': Situation(
        'class_weight has 19 entries, the head five classes',
        ('MG207',),
        seg_config(scenes(range(5), 6), FIVE, seg_model(5, dict(loss_decode={**CE, 'class_weight': [1.0] * 19}))),
        ('[1.0] * 5',),
    ),
    'class weights meet the borders of VOC': Situation(
        'right labels with 255, class_weight: mmseg looks up class_weight[255]',
        ('MG214',),
        seg_config(
            scenes(range(5), 6, border=VOID), FIVE, seg_model(5, dict(loss_decode={**CE, 'class_weight': [1.0] * 5}))
        ),
        ('GuardedCrossEntropyLoss', 'labels are right'),
    ),
    'the -1 workaround': Situation(
        'ignore_index=-1 against the crash of class weights',
        ('MG216', 'MG208'),
        seg_config(
            scenes(range(5), 6),
            FIVE,
            seg_model(5, dict(ignore_index=-1, loss_decode={**CE, 'class_weight': [1.0] * 5})),
        ),
        ('ignore_index=255',),
    ),
    'ignore_index is a class': Situation(
        'ignore_index=0 in the head to leave out the background',
        ('MG209', 'MG208'),
        seg_config(scenes(range(5), 6), FIVE, seg_model(5, dict(ignore_index=0))),
        ('ignore_index=255',),
    ),
    'padding is a class': Situation(
        'seg_pad_val=0 although 255 is ignored: padding is trained as road',
        ('MG208',),
        seg_config(
            scenes(range(5), 6),
            FIVE,
            seg_model(5, data_preprocessor=dict(type='SegDataPreProcessor', seg_pad_val=0)),
        ),
        ('seg_pad_val',),
    ),
    'ADE20K, reduce_zero_label forgotten': Situation(
        'a data set class of ones own with the 150 names; 0..150 in the files, nothing is reduced',
        ('MG119',),
        seg_config(ade(150), [f'class {i}' for i in range(150)], seg_model(150)),
        ('reduce_zero_label=True',),
    ),
    'ADE20K, a few files, not reduced': Situation(
        'ADE20KDataset with reduce_zero_label=False; 150 does not occur in these files',
        ('MG119',),
        seg_config(ade(137), None, seg_model(150), type='ADE20KDataset', reduce_zero_label=False),
        ('reduce_zero_label=True',),
    ),
    'training fine, validation counts from 1': Situation(
        'the validation was exported by another script: 1..5',
        ('MG115',),
        seg_config(scenes(range(5), 5), FIVE, seg_model(5), val=scenes(range(1, 6), 5), look_at='val'),
        ('label_map=',),
    ),
    'names in another order for the validation': Situation(
        'the class lists of training and validation differ in order',
        ('MG204',),
        other_classes_in_validation,
        ('metainfo',),
    ),
    'wrong seg_map_suffix': Situation(
        'the masks end in _mask.png, the config says .png: no label file is found',
        ('MG129',),
        wrong_suffix,
        ('seg_map_suffix',),
        ('git lfs pull',),
    ),
    'palette PNGs read by OpenCV': Situation(
        "imdecode_backend='cv2' on palette PNGs",
        ('MG121',),
        seg_config(
            scenes(range(5), 5),
            FIVE,
            seg_model(5),
            files=dict(palette=[(0, 0, 0), (220, 20, 60), (0, 60, 100), (107, 142, 35), (70, 130, 180)]),
            loader=dict(imdecode_backend='cv2'),
        ),
        ("imdecode_backend='pillow'",),
    ),
    'OHEM and void tiles': Situation(
        'OHEM with files that hold no valid pixel',
        ('MG128',),
        seg_config(
            scenes(range(5), 4) + [np.full((60, 80), VOID, np.uint8)] * 2, FIVE, seg_model(5, dict(loss_decode=OHEM))
        ),
        ('attached 0',),
    ),
}
