"""One more instance of each kind that shows in label maps, volumes, and the configs that read them.

Written by somebody who had not read the rules, before the first run on any.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

from drawn_scenes import save, scene, scenes
from kinds_classes import CHECK, Asked
from situation import seg_data, seg_model, write_config

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


MAPS: Dict[str, Asked] = {
    'fills: a rotation, CamVid': Asked(
        'RandomRotate fills with 255, ignored is 11',
        ('MG208',),
        rotated,
        CHECK,
        ('RandomRotate',),
        ('seg_pad_val=11',),
        never=('ignore_index=255',),
    ),
    'one channel: OHEM of DDRNet': Asked(
        'OhemCrossEntropy takes a softmax of a single channel', ('MG215', 'MG240'), ddrnet, CHECK, ('decode_head',)
    ),
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
