"""One more instance of thirty kinds, of other values, sizes and formats: written down before the first run on any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
from detection_configs import NAMES, PETS
from drawn_scenes import VOID, each, save, save_photos, scene
from kinds_classes import Asked, ids_of
from kinds_logs import LogKind
from kinds_maps import COCO_STUFF_IDS, noisy, of_ids
from kinds_scans import grid
from mask_values import blobs
from situation import (
    Build,
    coco_config,
    json_alone,
    masks,
    numbered,
    seg_config,
    seg_data,
    seg_model,
    some_boxes,
    write_config,
)


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


def of_voc(files: int) -> List[np.ndarray]:
    return [scene([0, 15, *range(1 + n % 4, 21, 4)], n, border=VOID) for n in range(files)]


def drawn_as_bmp(root: Path) -> Any:
    save(root / 'masks/train', blobs(VOID, 14), ending='.bmp')
    save_photos(root / 'images/train', 14)
    data = seg_data(root, ['background', 'polyp'], img_suffix='.jpg', seg_map_suffix='.bmp')
    path = write_config(root, default_scope='mmseg', model=seg_model(2), train_dataloader=dict(dataset=data))
    return path, dict(splits=('train',))


FILES: Dict[str, Asked] = {
    'near: 33 classes of a city': Asked(
        'nothing is wrong', (), masks([scene([*range(k % 3, 33, 3), 0, 32], k) for k in range(9)], 33)
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
}

#: Written after the first run: what repairing the others brought up.
AFTER: Dict[str, Asked] = {
    'near: COCO-Stuff with an output for each id': Asked(
        'eleven outputs are never trained, nothing is displaced', (), masks(of_ids(COCO_STUFF_IDS, 24, 12, 1), 183)
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
}
