"""Data sets and heads without a fault, written down before any scan was run on them: heads of other shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

from detection_configs import NAMES, PETS, cascade, detr, dino, mask_rcnn
from drawn_scenes import VOID, blob, save, save_photos, scenes
from segmentation_configs import FIVE
from situation import (
    CE,
    Build,
    coco_config,
    coco_data,
    coco_json,
    faster,
    retina,
    seg_config,
    seg_data,
    seg_model,
    some_boxes,
    voc_config,
    write_config,
)

BLOBS = [blob(1, seed=s) for s in range(6)]
GROUND = ['ground', 'house']

POLYGON = dict(segmentation=[[10, 10, 60, 10, 60, 60]])


def sigmoid(weights: Any, **loss: Any) -> Dict[str, Any]:
    """A binary head of one output."""
    config = dict(type='CrossEntropyLoss', use_sigmoid=True, class_weight=weights, **loss)
    return seg_model(2, dict(num_classes=2, out_channels=1, threshold=0.3, loss_decode=config))


def weighted_boxes(root: Path) -> Any:
    """A softmax box head has an output for the background: four weights for three classes."""
    model = faster(3)
    model['roi_head']['bbox_head']['loss_cls'] = {**CE, 'class_weight': [1.0, 2.0, 2.0, 0.5]}
    return coco_config(PETS, NAMES, model)(root)


def ignored_is_250(root: Path) -> Any:
    """Everywhere the same."""
    loss = {**CE, 'avg_non_ignore': True}
    model = seg_model(
        5,
        dict(ignore_index=250, loss_decode=loss),
        data_preprocessor=dict(type='SegDataPreProcessor', seg_pad_val=250),
    )
    return seg_config(scenes([0, 1, 2, 3, 4, 250], 5), FIVE, model)(root)


def class_balanced(root: Path) -> Any:
    """metainfo where it belongs: in the inner data set."""
    coco_json(root / 'train/ann.json', PETS, some_boxes([1, 2, 3]))
    outer = dict(type='ClassBalancedDataset', oversample_thr=0.1, dataset=coco_data(root, NAMES))
    parts = dict(default_scope='mmdet', model=retina(3), train_dataloader=dict(batch_size=2, dataset=outer))
    return write_config(root, **parts), dict(splits=('train',))


def repeated_maps(root: Path) -> Any:
    save(root / 'masks/train', scenes(range(5), 5))
    save_photos(root / 'images/train', 5)
    outer = dict(type='RepeatDataset', times=20, dataset=seg_data(root, FIVE))
    parts = dict(default_scope='mmseg', model=seg_model(5), train_dataloader=dict(batch_size=2, dataset=outer))
    return write_config(root, **parts), dict(splits=('train',))


def joined_maps(root: Path) -> Any:
    """A second data set, whose files hold void, too."""
    leaves = []
    for name, values in (('a', range(5)), ('b', [0, 1, 2, 3, 4, VOID])):
        save(root / name / 'masks/train', scenes(values, 4))
        save_photos(root / name / 'images/train', 4)
        leaves.append(seg_data(root / name, FIVE))
    joined = dict(type='ConcatDataset', datasets=leaves)
    parts = dict(default_scope='mmseg', model=seg_model(5), train_dataloader=dict(batch_size=2, dataset=joined))
    return write_config(root, **parts), dict(splits=('train',))


def difficult_in_some(root: Path) -> Any:
    path, options = voc_config(
        [[('cat', [10 + k, 20, 90, 110]), ('dog', [100, 50, 200, 180 - k])] for k in range(9)],
        ('cat', 'dog'),
        faster(2),
    )(root)
    file = root / 'VOC2007/Annotations/000003.xml'
    file.write_text(file.read_text().replace('<difficult>0', '<difficult>1', 1))
    return path, options


def two_losses() -> Dict[str, Any]:
    dice = dict(type='DiceLoss', loss_weight=3.0)
    return seg_model(5, dict(loss_decode=[{**CE, 'loss_name': 'loss_ce'}, {**dice, 'loss_name': 'loss_dice'}]))


def two_stages() -> Dict[str, Any]:
    heads = [dict(type=name, num_classes=5, loss_decode=CE) for name in ('FCNHead', 'OCRHead')]
    preprocessor = dict(type='SegDataPreProcessor', seg_pad_val=255)
    return dict(type='CascadeEncoderDecoder', num_stages=2, decode_head=heads, data_preprocessor=preprocessor)


def agnostic_masks() -> Dict[str, Any]:
    """One mask for all classes."""
    model = mask_rcnn(3, 3)
    model['roi_head']['mask_head']['class_agnostic'] = True
    return model


CLEAN_HEADS: Dict[str, Build] = {
    'sigmoid of one channel, weighted': seg_config(BLOBS, GROUND, sigmoid([3.0])),
    'sigmoid of one channel, weighted, void': seg_config(
        [blob(1, seed=s) for s in range(4)] + scenes([0, 1, VOID], 4), GROUND, sigmoid(None, avg_non_ignore=True)
    ),
    'sigmoid of one channel, guarded weights': seg_config(
        BLOBS,
        GROUND,
        seg_model(
            2,
            dict(
                out_channels=1,
                loss_decode=dict(type='GuardedCrossEntropyLoss', use_sigmoid=True, class_weight=[3.0]),
            ),
        ),
    ),
    'sigmoid of five channels': seg_config(
        scenes(range(5), 6), FIVE, seg_model(5, dict(loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=True)))
    ),
    'two losses': seg_config(scenes([0, 1, 2, 3, 4], 5), FIVE, two_losses()),
    'two stages': seg_config(scenes([0, 1, 2, 3, 4, VOID], 5), FIVE, two_stages()),
    'void is 250 everywhere': ignored_is_250,
    'maps repeated': repeated_maps,
    'maps joined': joined_maps,
    'OHEM, void in some': seg_config(
        scenes([0, 1, 2, 3, 4, VOID], 6), FIVE, seg_model(5, dict(loss_decode=dict(type='OhemCrossEntropy')))
    ),
    'Pascal Context 60': seg_config(
        scenes(range(60), 6), None, seg_model(60), type='PascalContextDataset', ann_file=''
    ),
    'train ids of Cityscapes, its data set': seg_config(
        scenes([*range(19), VOID], 4),
        None,
        seg_model(19),
        type='CityscapesDataset',
        img_suffix='.jpg',
        seg_map_suffix='.png',
    ),
    'box head with weights': weighted_boxes,
    'DETR, one weight for all': coco_config(PETS, NAMES, detr(3, 1.0)),
    'DINO': coco_config(PETS, NAMES, dino(3)),
    'three equal stages': coco_config(PETS, NAMES, cascade(3, 3, 3)),
    'boxes and masks': coco_config(PETS, NAMES, mask_rcnn(3, 3), annotation=POLYGON),
    'one mask for all classes': coco_config(PETS, NAMES, agnostic_masks(), annotation=POLYGON),
    'class balanced': class_balanced,
    'some images without object, filtered': coco_config(PETS, NAMES, retina(3), [*some_boxes([1, 2, 3], 20), [], []]),
    'VOC, difficult in some': difficult_in_some,
}
