"""One more instance of each kind that shows in label maps, volumes, and the configs that read them.

Written by somebody who had not read the rules, before the first run on any.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Dict

import numpy as np
from drawn_scenes import VOID, blob, save, save_photos, scene, scenes
from kinds_classes import CHECK, Asked
from kinds_maps import mostly_zero, of_ids, patched, subtracted
from PIL import Image
from situation import CE, Situation, masks, seg_config, seg_data, seg_model, write_config
from volume_sets import organs, volumes

LAND = ('building', 'road', 'water', 'barren', 'forest', 'field', 'orchard')
LANES = ('background', 'lane', 'curb', 'sign', 'pole')
OHEM = dict(type='OhemCrossEntropy', thres=0.9, min_kept=131072)


def rotated(root: Path) -> Path:
    """CamVid: 11 is void everywhere, but for what a rotation fills in."""
    data = seg_data(
        root,
        [f'class {n}' for n in range(11)],
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='LoadAnnotations'),
            dict(type='RandomRotate', prob=0.5, degree=15),
            dict(type='PackSegInputs'),
        ],
    )
    pad = dict(type='SegDataPreProcessor', seg_pad_val=11)
    model = seg_model(11, dict(ignore_index=11), data_preprocessor=pad)
    return write_config(root, default_scope='mmseg', model=model, train_dataloader=dict(batch_size=4, dataset=data))


def ddrnet(root: Path) -> Path:
    """Binary, one output channel; the losses are those that DDRNet's config has."""
    head = dict(
        type='DDRHead', num_classes=2, out_channels=1, loss_decode=[OHEM, {**OHEM, 'loss_weight': 0.4}], threshold=0.5
    )
    data = seg_data(root, ('dry', 'wet'))
    return write_config(
        root, default_scope='mmseg', model=seg_model(2, head), train_dataloader=dict(batch_size=6, dataset=data)
    )


def with_alpha(root: Path) -> Any:
    """Exported with transparency: gray and alpha."""
    save(root / 'masks', scenes(range(7), 8, keep=0.8), convert='LA')
    return root / 'masks', dict(num_classes=7)


def jpeg_of_three_channels(root: Path) -> Any:
    """cv2.imwrite('mask.jpg', mask) of a binary mask in three channels."""
    (root / 'masks').mkdir()
    for number in range(9):
        file = io.BytesIO()
        Image.fromarray(blob(VOID, seed=number)).convert('RGB').save(file, format='JPEG', quality=85)
        (root / f'masks/frame_{number:04}.jpg').write_bytes(file.getvalue())
    return root / 'masks', dict(num_classes=2)


def mapillary(root: Path) -> Any:
    """The 66 values of Mapillary Vistas under the data set class of Cityscapes."""
    save(root / 'masks/train', of_ids(range(66), 14, 12))
    save_photos(root / 'images/train', 14)
    data = seg_data(root, None, type='CityscapesDataset', img_suffix='.jpg', seg_map_suffix='.png')
    path = write_config(root, default_scope='mmseg', model=seg_model(19), train_dataloader=dict(dataset=data))
    return path, dict(splits=('train',))


MAPS: Dict[str, Asked] = {
    'slip: 12 in two files of thirty': Asked(
        'twelve classes; twenty pixels of 12 in two files, drawn by mistake',
        ('MG127',),
        masks(patched(12, 12, 30, (7, 19), (5, 4)), 12),
        says=('007.png', '019.png'),
        never=('num_classes=13',),
    ),
    'shifted: the background became 255': Asked(
        '1 was subtracted from 0..4 in 8 bits: 255 is the background, and 4 never occurs',
        ('MG133',),
        seg_config(subtracted(scenes(range(5), 12)), LANES, seg_model(5)),
        first=('255: 0',),
    ),
    'ids: Mapillary for the 19 of Cityscapes': Asked(
        'ids of Mapillary Vistas, which mean other classes below 19, too',
        ('MG101', 'MG107', 'MG117', 'MG106', 'MG102'),
        mapillary,
        says=('Mapillary',),
        never=('num_classes=66',),
    ),
    'fills: a rotation, CamVid': Asked(
        'RandomRotate fills with 255, ignored is 11',
        ('MG208',),
        rotated,
        CHECK,
        ('RandomRotate',),
        ('seg_pad_val=11',),
        never=('ignore_index=255',),
    ),
    'modes: gray and alpha': Asked(
        'two channels: a class and its opacity',
        ('MG120',),
        with_alpha,
        says=('alpha',),
        never=('label[(rgb', '(0, 0, 0)'),
    ),
    'wanted: road and sidewalk': Asked(
        'two classes of the nineteen train ids are wanted',
        ('MG107',),
        seg_config(scenes(range(19), 10, keep=0.7), ('road', 'sidewalk'), seg_model(2)),
        first=('255',),
        never=('num_classes=19', 'num_classes=3'),
    ),
    'ignored: files of 0 alone, reduced': Asked(
        'three tiles hold 0 alone, which reduce_zero_label ignores: nothing is left of them',
        ('MG128',),
        seg_config(
            [*scenes(range(8), 9), *[np.zeros((60, 80), np.uint8)] * 3],
            LAND,
            seg_model(7, dict(loss_decode={**CE, 'avg_non_ignore': True})),
            reduce_zero_label=True,
        ),
        says=('009.png', '3'),
        never=('reduce_zero_label=False',),
    ),
    'one channel: OHEM of DDRNet': Asked(
        'OhemCrossEntropy takes a softmax of a single channel', ('MG215', 'MG240'), ddrnet, CHECK, ('decode_head',)
    ),
    'two peaks: JPEG of three channels': Asked(
        'binary masks, compressed',
        ('MG136', 'MG106', 'MG103', 'MG120'),
        jpeg_of_three_channels,
        first=('127',),
        never=('label[(rgb', ': 255}'),
    ),
}

#: Written after the first run: what repairing the others brought up.
AFTER: Dict[str, Asked] = {
    'gray of Cityscapes': Asked(
        'colours made gray: 90 is the road, 120 the sidewalk, 0 nothing',
        ('MG121',),
        masks([scene([90, *range_of, 0], n) for n, range_of in enumerate(((120, 70), (119, 118), (16, 76)) * 3)], 19),
        first=('0: 255', '90: 0', '120: 1', '16: 13'),
    ),
    'near: a background of 0 that is reduced': Asked(
        '0 fills most of every file, no file is of 0 alone',
        ('MG124',),
        seg_config(mostly_zero(8, 9), LAND, seg_model(7), reduce_zero_label=True),
        first=('reduce_zero_label=False',),
    ),
}

VOLUMES: Dict[str, Situation] = {
    'nnU-Net: hippocampi of FreeSurfer, declared the other way round': Situation(
        '17 is the left hippocampus, 53 the right one; declared are right as 1, left as 2',
        ('MG185',),
        volumes({'background': 0, 'right hippocampus': 1, 'left hippocampus': 2}, organs(17, 53), 7),
        says=('17', '53'),
        never=('{17: 1', '53: 2}'),
    )
}


def palette_one_short(root: Path) -> Any:
    """Palette PNGs of 13 values, as labelme2voc writes them."""
    colours = [(20 * n, 255 - 20 * n, 7 * n) for n in range(13)]
    save(root / 'SegmentationClassPNG', scenes(range(13), 8, keep=0.9), palette=colours)
    return root / 'SegmentationClassPNG'


def few_of_many(root: Path) -> Path:
    """Raw values of which the user knows four."""
    save(root / 'annotations', scenes([0, 3, 5, 8, 11, 19], 9, keep=0.9))
    return root / 'annotations'


def train_ids(root: Path) -> Path:
    """Cityscapes as mmseg's converter writes it."""
    save(root / 'gtFine', [scene([*range(n % 3, 19, 2), 0, 1], n) for n in range(10)])
    return root / 'gtFine'
