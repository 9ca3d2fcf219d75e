"""Situations that show in an mmseg config, alone or together with its files."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

import numpy as np
from drawn_scenes import VOID, save, save_photos, scene, scenes
from situation import CE, CHECK, Build, Situation, old, seg_config, seg_data, seg_model, train_config

from mmguard.config.changes import REMOVED

FIVE = ['road', 'house', 'tree', 'car', 'sky']
LOVEDA = ['background', 'building', 'road', 'water', 'barren', 'forest', 'agricultural']
OHEM = dict(type='OhemCrossEntropy', thres=0.9, min_kept=1000)
SAMPLER = dict(type='OHEMPixelSampler', thresh=0.7, min_kept=10000)
SIGMOID = {**CE, 'use_sigmoid': True}


def ade(last: int, first: int = 1) -> List[np.ndarray]:
    return [scene([0, *range(first + k, last, 12), last], k) for k in range(12)]


def wrong_suffix(root: Any) -> Any:
    """The masks are called NAME_mask.png; the config says .png."""
    save(root / 'masks/train', scenes(range(5), 6), '{:03}_mask')
    save_photos(root / 'images/train', 6)
    return train_config(root, seg_model(5), seg_data(root, FIVE))


def other_classes_in_validation(root: Any) -> Any:
    """The names of the validation stand in another order."""
    for split in ('train', 'val'):
        save(root / f'masks/{split}', scenes(range(5), 4))
        save_photos(root / f'images/{split}', 4)
    val = dict(batch_size=1, dataset=seg_data(root, sorted(FIVE), 'val'))
    return train_config(root, seg_model(5), seg_data(root, FIVE), val_dataloader=val)


def of_ade(names: Sequence[str], **settings: Any) -> Build:
    """A config that trains some classes of ADE20K: the data set makes a label map, and shifts."""
    ids = [1, 2, 3, 5, 7, 12, 13, 21, 0, 40, 120]
    drawn = [scene([*ids, 22 + 9 * n], n) for n in range(8)]
    return seg_config(drawn, names, seg_model(len(names)), type='ADE20KDataset', **settings)


def of_voc(files: int) -> List[np.ndarray]:
    return [scene([0, 15, *range(1 + n % 4, 21, 4)], n, border=VOID) for n in range(files)]


def augmented(classes: Sequence[str], model: Any, step: Dict[str, Any]) -> Build:
    """A config that changes its label maps in one step after loading."""
    steps = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), step, dict(type='PackSegInputs')]
    return lambda root: train_config(root, model, seg_data(root, classes, pipeline=steps))


def camvid() -> Any:
    pad = dict(type='SegDataPreProcessor', seg_pad_val=11)
    return seg_model(11, dict(ignore_index=11), data_preprocessor=pad)


def one_channel(head: Dict[str, Any], auxiliary: Any = None) -> Build:
    """A config of two classes and one output channel."""
    model = seg_model(2, dict(out_channels=1, **head))
    if auxiliary is not None:
        model['auxiliary_head'] = [dict(type='FCNHead', num_classes=2, out_channels=1, **auxiliary)]
    return lambda root: train_config(root, model, seg_data(root, ('background', 'road')))


SITUATIONS: Dict[str, Situation] = {
    'open-mmlab/mmsegmentation#855': Situation(
        '0 is void, seven classes 1..7, reduce_zero_label=True, but num_classes was set to 8',
        ('MG201',),
        seg_config(scenes(range(8), 8, keep=0.9), list('abcdefg'), seg_model(8), reduce_zero_label=True),
        first=dict(num_classes=7),
        never=dict(reduce_zero_label=[False]),
    ),
    'open-mmlab/mmsegmentation#1553': Situation(
        'IndexError: Target 15 is out of bounds: iSAID has 16 classes with its background, 15 were counted',
        ('MG102', 'MG108', 'MG201'),
        seg_config(scenes(range(16), 6), [f'c{i}' for i in range(16)], seg_model(15)),
        first=dict(num_classes=16),
    ),
    'class weights of Cityscapes kept': Situation(
        'class_weight has 19 entries, the head five classes',
        ('MG207',),
        seg_config(scenes(range(5), 6), FIVE, seg_model(5, dict(loss_decode={**CE, 'class_weight': [1.0] * 19}))),
        first=dict(class_weight=[1.0] * 5),
    ),
    'the -1 workaround': Situation(
        'ignore_index=-1 against the crash of class weights',
        ('MG214', 'MG208'),
        seg_config(
            scenes(range(5), 6),
            FIVE,
            seg_model(5, dict(ignore_index=-1, loss_decode={**CE, 'class_weight': [1.0] * 5})),
        ),
        first=dict(ignore_index=255),
    ),
    'ignore_index is a class': Situation(
        'ignore_index=0 in the head to leave out the background',
        ('MG209', 'MG208'),
        seg_config(scenes(range(5), 6), FIVE, seg_model(5, dict(ignore_index=0))),
        first=dict(ignore_index=255),
    ),
    'a part of the classes, another ignored label': Situation(
        'three of the nine classes of Synapse are trained; the six others are loaded as 255, and 100 is ignored',
        ('MG380',),
        seg_config(
            scenes(range(9), 6),
            ['background', 'aorta', 'liver'],
            seg_model(3, dict(ignore_index=100)),
            type='SynapseDataset',
        ),
        first=dict(ignore_index=255),
        never=dict(ignore_index=[100], seg_pad_val=[100]),
    ),
    'padding is a class': Situation(
        'seg_pad_val=0 although 255 is ignored: padding is trained as road',
        ('MG208',),
        seg_config(
            scenes(range(5), 6), FIVE, seg_model(5, data_preprocessor=dict(type='SegDataPreProcessor', seg_pad_val=0))
        ),
        first=dict(seg_pad_val=255),
    ),
    'ADE20K, reduce_zero_label forgotten': Situation(
        'a data set class of ones own with the 150 names; 0..150 in the files, nothing is reduced',
        ('MG119',),
        seg_config(ade(150), [f'class {i}' for i in range(150)], seg_model(150)),
        first=dict(reduce_zero_label=True),
    ),
    'training fine, validation counts from 1': Situation(
        'the validation was exported by another script: 1..5',
        ('MG115',),
        seg_config(scenes(range(5), 5), FIVE, seg_model(5), val=scenes(range(1, 6), 5), look_at='val'),
        first=dict(label_map={value: value - 1 for value in range(1, 6)}),
    ),
    'names in another order for the validation': Situation(
        'the class lists of training and validation differ in order',
        ('MG204',),
        other_classes_in_validation,
        first=dict(classes=tuple(FIVE)),
        seen=('val_dataloader.dataset.metainfo',),
    ),
    'wrong seg_map_suffix': Situation(
        'the masks end in _mask.png, the config says .png: no label file is found',
        ('MG129',),
        wrong_suffix,
        first=dict(seg_map_suffix='_mask.png'),
    ),
    'auxiliary head of another ignore_index': Situation(
        'ignore_index=0 in the auxiliary head alone',
        ('MG209', 'MG208'),
        seg_config(
            scenes([0, 1, 2, 3, 4, VOID], 5),
            FIVE,
            seg_model(5, auxiliary_head=dict(type='FCNHead', num_classes=5, ignore_index=0, loss_decode=CE)),
        ),
        first=dict(ignore_index=255),
        seen=('model.auxiliary_head',),
    ),
    'wanted: person of VOC': Situation(
        'two classes wanted of twenty-one, 15 is one of them',
        ('MG107',),
        seg_config(of_voc(12), ['background', 'person'], seg_model(2)),
        first=dict(label_map=dict.fromkeys(range(2, 21), VOID)),
        never=dict(num_classes=[16, 21]),
    ),
    'open-mmlab/mmsegmentation#2500': Situation(
        'some classes of ADE20K: which comes first, the shift or the map, depends on the version',
        ('MG100',),
        of_ade(['sky', 'tree', 'person', 'car']),
    ),
    'fills: a rotation, CamVid': Situation(
        'RandomRotate fills with 255, ignored is 11',
        ('MG208',),
        augmented([f'class {n}' for n in range(11)], camvid(), dict(type='RandomRotate', prob=0.5, degree=15)),
        first=dict(seg_pad_val=11),
        never=dict(ignore_index=[255]),
        seen=('pipeline[2].seg_pad_val',),
        command=CHECK,
    ),
    'one channel: OHEM of DDRNet': Situation(
        'OhemCrossEntropy takes a softmax of a single channel',
        ('MG215', 'MG240'),
        one_channel(dict(type='DDRHead', threshold=0.5, loss_decode=[OHEM, {**OHEM, 'loss_weight': 0.4}])),
        first=dict(out_channels=REMOVED),
        command=CHECK,
    ),
    'sampler, one channel, softmax': Situation(
        'the softmax of the sampler has one column; with use_sigmoid=True alone it still dies',
        ('MG240',),
        one_channel(dict(sampler=SAMPLER)),
        first=dict(sampler=REMOVED, use_sigmoid=True),
        seen=('sampler.thresh',),
        command=CHECK,
    ),
    'sampler in one auxiliary head': Situation(
        'the same, one head of two',
        ('MG240',),
        one_channel(dict(loss_decode=SIGMOID), dict(sampler=SAMPLER, loss_decode=SIGMOID)),
        first=dict(sampler=REMOVED),
        seen=('auxiliary_head[0].sampler',),
        command=CHECK,
    ),
    'near: a sampler by loss': Situation(
        'without thresh no softmax is taken',
        (),
        one_channel(dict(loss_decode=SIGMOID, sampler=dict(type='OHEMPixelSampler'))),
        command=CHECK,
    ),
    'MMSegmentation 0.x: weights': Situation(
        'five classes, four weights',
        ('MG207',),
        old(
            seg_model(5, dict(loss_decode={**CE, 'class_weight': [1.0] * 4})),
            scope='mmseg',
            classes=('a', 'b', 'c', 'd', 'e'),
        ),
        first=dict(class_weight=[1.0] * 5),
        command=CHECK,
    ),
}
