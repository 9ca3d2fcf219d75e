"""One more instance of thirty kinds, of other values, sizes and formats: written down before the first run on any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import torch
from detection_configs import NAMES, PETS
from drawn_scenes import VOID, each, save, save_photos, scene
from kinds_batches import OPENMMLAB, Batch, batch, call, channel, regions
from kinds_boxes import turned, voc_boxes
from kinds_classes import CHECK, Asked, ids_of, rt_detr
from kinds_logs import LogKind, watchdog
from kinds_maps import COCO_STUFF_IDS, mostly_zero, noisy, of_ids, patched, subtracted
from kinds_scans import IGNORED, grid
from mask_values import CITYSCAPES_IDS, blobs
from segmentation_configs import FIVE
from situation import (
    Boxes,
    Build,
    Situation,
    coco_config,
    coco_data,
    faster,
    json_alone,
    masks,
    numbered,
    retina,
    seg_config,
    seg_data,
    seg_model,
    some_boxes,
    voc_config,
    with_options,
    write_config,
)
from volume_sets import ct, organs, volumes


def own_of_cityscapes(root: Path) -> Path:
    """A data set type with a list of its own, a head of four classes, no metainfo."""
    data = seg_data(root, None, type='CityscapesDataset')
    return write_config(root, default_scope='mmseg', model=seg_model(4), train_dataloader=dict(dataset=data))


def mosaic(root: Path) -> Path:
    """The class list at MultiImageMixDataset, as for YOLOX."""
    data = dict(type='MultiImageMixDataset', dataset=coco_data(root, None), pipeline=[], metainfo=dict(classes=NAMES))
    val = dict(dataset=coco_data(root, NAMES, 'val'))
    return write_config(
        root, default_scope='mmdet', model=retina(3), train_dataloader=dict(dataset=data), val_dataloader=val
    )


def images_alone(root: Path) -> Path:
    """A data set of mmseg that names no folder of label maps."""
    data = seg_data(root, FIVE, data_prefix=dict(img_path='images/train'))
    return write_config(root, default_scope='mmseg', model=seg_model(5), train_dataloader=dict(dataset=data))


def two_files(root: Path) -> Path:
    """MMDetection 2.x: a list of data sets, and a head of COCO."""
    data = dict(type='CocoDataset', classes=('crack', 'rust'), pipeline=[])
    parts = [{**data, 'ann_file': str(root / f'{name}.json')} for name in 'ab']
    splits = dict(train=parts, val={**data, 'ann_file': str(root / 'val.json')})
    return write_config(root, model=faster(80), data=dict(samples_per_gpu=4, workers_per_gpu=2, **splits))


def as_corners(boxes: List[Boxes]) -> List[Boxes]:
    return [[(i, [x, y, x + w, y + h]) for i, (x, y, w, h) in image] for image in boxes]


def crowds(alone_in: int, beside: int = 0) -> Build:
    """A file in which all objects of some images are crowds; the config leaves empty images out."""
    drawn = some_boxes([1, 2, 3], 20)

    def build(root: Path) -> Any:
        path, options = coco_config(PETS, NAMES, grid(), drawn)(root)
        file = root / 'train/ann.json'
        data = json.loads(file.read_text())
        for one in data['annotations']:
            first = all(
                one['id'] <= other['id'] for other in data['annotations'] if other['image_id'] == one['image_id']
            )
            if one['image_id'] <= alone_in or (one['image_id'] <= alone_in + beside and first):
                one['iscrowd'] = 1
        file.write_text(json.dumps(data))
        return path, options

    return build


def rle_masks(height: int, width: int) -> Build:
    """Masks as RLE of one size in a config that loads masks."""
    loads = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True, with_mask=True)]
    counts = [height * 10, height * 30, height * (width - 40)]
    rle = dict(segmentation=dict(size=[height, width], counts=counts))
    return coco_config(PETS, NAMES, faster(3), settings=dict(pipeline=loads), annotation=rle)


def auxiliary_dice() -> Dict[str, Any]:
    loss = dict(type='DiceLoss', loss_name='loss_dice', ignore_index=255)
    return seg_model(5, auxiliary_head=dict(type='FCNHead', num_classes=5, loss_decode=loss))


def shifted_cityscapes(root: Path) -> Any:
    drawn = [scene([0, *CITYSCAPES_IDS, 4, 5], n) - np.uint8(1) for n in range(7)]
    save(root / 'masks', drawn)
    return root / 'masks', dict(num_classes=19)


def lip(root: Path) -> Any:
    """A person on a background, 0; the last of 19 parts, a shoe, in a third of the files."""
    drawn = [scene([0, 0, 0, *range(1 + n % 3, 19, 2), 19 if n % 3 == 0 else 1], n, regions=40) for n in range(18)]
    save(root / 'masks', drawn)
    return root / 'masks', dict(num_classes=19)


def of_voc(files: int) -> List[np.ndarray]:
    return [scene([0, 15, *range(1 + n % 4, 21, 4)], n, border=VOID) for n in range(files)]


def drawn_as_bmp(root: Path) -> Any:
    save(root / 'masks/train', blobs(VOID, 14), ending='.bmp')
    save_photos(root / 'images/train', 14)
    data = seg_data(root, ['background', 'polyp'], img_suffix='.jpg', seg_map_suffix='.bmp')
    path = write_config(root, default_scope='mmseg', model=seg_model(2), train_dataloader=dict(dataset=data))
    return path, dict(splits=('train',))


FILES: Dict[str, Asked] = {
    'fall back: CityscapesDataset with four outputs': Asked(
        'CityscapesDataset goes on with its 19 classes',
        ('MG201',),
        own_of_cityscapes,
        CHECK,
        ('CityscapesDataset',),
        never=('num_classes=19',),
    ),
    'fall back: metainfo at MultiImageMixDataset': Asked(
        'the wrapper takes none', ('MG203',), mosaic, CHECK, never=('person',)
    ),
    'slip: behind reduce_zero_label': Asked(
        '9 in two files of sixteen, eight classes stored as 1..8',
        ('MG127',),
        seg_config(
            each(patched(8, 8, 16, (2, 9), (12, 20)), lambda label: label + np.uint8(1)),
            [f'c{n}' for n in range(8)],
            seg_model(8),
            reduce_zero_label=True,
        ),
        says=('002.png', '009.png'),
        never=('num_classes=9',),
    ),
    'shifted: nine classes, nothing is ignored': Asked(
        '0..8 stored as 255, 0..7; the loss ignores -100',
        ('MG133',),
        with_options(masks(subtracted(mostly_zero(9, 16)), 9), ignore_index=-100),
        says=('subtract',),
        never=('ignore_index=255',),
    ),
    'ids: Cityscapes minus one': Asked(
        'labelIds, 1 subtracted', ('MG101',), shifted_cityscapes, says=('Cityscapes',), never=('num_classes=33',)
    ),
    'near: 33 classes of a city': Asked(
        'nothing is wrong', (), masks([scene([*range(k % 3, 33, 3), 0, 32], k) for k in range(9)], 33)
    ),
    'remap: categories from 91': Asked(
        'KeyError 91 in the table of COCO',
        ('MG162',),
        rt_detr(numbered('car', 'bus', 'van', start=91), 3, True),
        says=('91',),
    ),
    'black and white: BMP in a config': Asked(
        '255 is the object, and is ignored', ('MG103',), drawn_as_bmp, first=('255: 1',), never=('255: 0',)
    ),
    'wanted: person of VOC': Asked(
        'two classes wanted of twenty-one, 15 is one of them',
        ('MG107',),
        seg_config(of_voc(12), ['background', 'person'], seg_model(2)),
        first=('255',),
        never=('num_classes=21', 'num_classes=16'),
    ),
    'ranks: crowds alone in five images of twenty': Asked(
        'loss_grid is missing for a batch of such images: crowds are no targets',
        ('MG146',),
        crowds(5),
        says=('crowd',),
    ),
    'near: crowds beside objects': Asked('every image has a target', (), crowds(0, 6)),
    'boxes: -1 in VOC': Asked(
        'below 0 in the file: no habit of VOC',
        ('MG152',),
        voc_config(voc_boxes((-1, 12, 90, 60), (40, -1, 99, 80)), ('cat',), faster(1)),
        says=('000000.xml', '000001.xml'),
        never=('minus-one',),
    ),
    'old: a list of data sets, heads of COCO': Asked(
        'the head kept 80', ('MG201',), two_files, CHECK, first=('num_classes=2',)
    ),
    'ordinary: transformers counts from 0': Asked(
        '5 is out of range for num_labels=5',
        ('MG138',),
        ids_of(json_alone(numbered('a', 'b', 'c', 'd', 'e'), 5), 'transformers'),
        says=('5',),
        never=('num_classes=5',),
    ),
    'near: transformers, ids from 0': Asked(
        'as it is meant', (), ids_of(json_alone(numbered(*'abcde', start=0), 5), 'transformers')
    ),
    'two peaks: PNG after a poor JPEG, in a config': Asked(
        'compressed once, 0 and 255',
        ('MG136', 'MG106', 'MG103'),
        seg_config(each(blobs(VOID, 10), lambda label: noisy(label, 40)), ['background', 'crack'], seg_model(2)),
        first=('threshold',),
        never=(': 255}',),
    ),
    'masks: RLE turned by a quarter': Asked(
        'the RLE is 320 x 240, the image 240 x 320', ('MG179',), rle_masks(320, 240), says=('RLE', '0000.jpg')
    ),
    'formats: corners in a config': Asked(
        'x1, y1, x2, y2 in COCO',
        ('MG172',),
        coco_config(PETS, NAMES, faster(3), as_corners(some_boxes([1, 2, 3], 15, 4, seed=5))),
        says=('corners',),
        never=('leaves them out', 'clamps'),
    ),
    'inputs: no folder of label maps': Asked(
        'mmseg reads no label', ('MG245',), images_alone, CHECK, ('seg_map_path',)
    ),
    'exif: VOC': Asked(
        'loaders turn the image, the boxes stay',
        ('MG175',),
        turned(voc_config([[('cat', [40 + k, 30, 200, 180])] for k in range(9)], ('cat',), faster(1)), 6),
        says=('EXIF',),
    ),
    'ignored: DiceLoss in the auxiliary head': Asked(
        'its ignore_index does nothing',
        ('MG243',),
        seg_config(IGNORED, FIVE, auxiliary_dice()),
        says=('auxiliary_head', 'DiceLoss'),
    ),
}

#: Written after the first run: what repairing the others brought up.
AFTER: Dict[str, Asked] = {
    'ids: Cityscapes minus one, its table': Asked(
        'sidewalk, 8, is 7 in the files',
        ('MG101',),
        shifted_cityscapes,
        first=('6: 0, 7: 1',),
        never=('7: 0',),
    ),
    'ids: LIP without its background': Asked(
        '19 is the right shoe, 0 the background', ('MG102',), lip, first=('num_classes=20',)
    ),
    'ids: Mapillary 2.0, 123 classes': Asked(
        '123 is unlabelled',
        ('MG102',),
        masks([scene([*range(k % 6, 123, 6), 123], k) for k in range(12)], 123),
        first=('123: 255',),
    ),
    'near: numbers of 192 objects': Asked(
        'instances',
        ('MG170', 'MG106', 'MG107'),
        masks([np.arange(192, dtype=np.uint8).reshape(12, 16).repeat(5, 0).repeat(5, 1) for _ in range(6)], 2),
    ),
    'near: COCO-Stuff with an output for each id': Asked(
        'eleven outputs are never trained, nothing is displaced', (), masks(of_ids(COCO_STUFF_IDS, 24, 12, 1), 183)
    ),
    'near: COCO-Stuff minus one with an output for each id': Asked(
        'the same', (), masks(of_ids(COCO_STUFF_IDS, 24, 12), 182)
    ),
}

VOLUMES: Dict[str, Situation] = {
    'nnU-Net: three CTs of nine among the labels': Situation(
        'images lie in labelsTr',
        ('MG196',),
        volumes({'background': 0, 'spleen': 1}, organs(1), 9, drawn=dict.fromkeys((0, 4, 8), ct)),
        says=('labelsTr/case_004.nii.gz', '3 of 9'),
    ),
    'nnU-Net: two of the gray levels of CHAOS': Situation(
        'liver 63 and left kidney 189, declared as 2 and 1',
        ('MG185',),
        volumes({'background': 0, 'left kidney': 1, 'liver': 2}, organs(63, 189)),
        says=('{63: 2, 189: 1}',),
        never=('{63: 1',),
    ),
}

BATCHES: Dict[str, Batch] = {
    'fresh: weights of VOC, labels from one, a channel': Batch(
        '21 weights for ten outputs, labels 1..10, and a channel too many',
        batch(10, channel(regions(range(1, 11), (2, 32, 32))), weight=torch.ones(21)),
        'raises',
        ('21', 'MG115'),
        OPENMMLAB,
    ),
    'fresh: volumes of 0/255 for one channel': Batch(
        'masks in three dimensions for a sigmoid',
        call(torch.zeros(2, 1, 4, 8, 8), (torch.arange(512).view(2, 1, 4, 8, 8) % 2) * 255.0),
        'raises',
        ('(target > 0).float()',),
        ('softmax(1)',),
    ),
}

LOGS: Dict[str, LogKind] = {
    'fresh: Dice of segmentation_models_pytorch makes one-hot of 255': LogKind(
        'the ignored label goes through one_hot',
        'MG407',
        'Traceback (most recent call last):\n  File "train.py", line 88, in <module>\n    loss = criterion(out, mask)\n'
        '  File "/opt/lib/python3.10/site-packages/segmentation_models_pytorch/losses/dice.py", line 83, in forward\n'
        '    y_true = F.one_hot(y_true, num_classes)\n'
        'RuntimeError: Class values must be smaller than num_classes.\n',
        says=('255',),
    ),
    'fresh: nnU-Net, one class is nan in every epoch': LogKind(
        'no training case holds the class, or none of the validation',
        'MG400',
        ''.join(
            f'2025-03-0{1 + e // 9} 10:1{e % 9}:11.201: Epoch {e}\n2025-03-01 10:11:12.300: train_loss -0.{40 + e}\n'
            f'2025-03-01 10:11:12.301: val_loss -0.{30 + e}\n'
            f'2025-03-01 10:11:12.302: Pseudo dice [np.float32(0.8{e}), nan, np.float32(0.5{e})]\n'
            for e in range(9)
        ),
        says=('every epoch',),
    ),
    'fresh: rank 5 of eight is absent': LogKind(
        'rank 5 skipped an all_gather of the evaluation',
        'MG454',
        ''.join(watchdog(rank, 2077, 'ALLGATHER') for rank in range(8) if rank != 5),
        says=('rank 5',),
    ),
    'fresh: a quota': LogKind(
        'the quota of the home folder is full',
        'MG468',
        'Traceback (most recent call last):\n  File "save.py", line 31, in save_checkpoint\n    torch.save(x, f)\n'
        'OSError: [Errno 122] Disk quota exceeded\n',
        'Checkpoints fill the disk',
    ),
}
