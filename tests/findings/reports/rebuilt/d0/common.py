"""Pictures, label maps and annotations for the reports of this folder: run ``PYTHONPATH=.. python gen.py`` in one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
from PIL import Image


def save(path: str, array: np.ndarray, palette: bool = False) -> None:
    """Save an image or a label map, with the palette of VOC if wanted."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(array)
    if palette:
        colors = [
            sum(((i >> (3 * bit + c)) & 1) << (7 - bit) for bit in range(3)) for i in range(256) for c in range(3)
        ]
        image.putpalette(colors)
    image.save(path)


def draw_labels(rng: np.random.Generator, shape: Tuple[int, ...], values: Sequence[int], count: int = 8) -> np.ndarray:
    """Draw ellipsoids of the values over the first of them."""
    labels = np.full(shape, values[0], np.uint8)
    grid = np.indices(shape)
    for _ in range(count):
        centre = [int(rng.integers(0, size)) for size in shape]
        radius = [int(rng.integers(size // 8 + 1, size // 3)) for size in shape]
        inside = sum(((axis - c) / r) ** 2 for axis, c, r in zip(grid, centre, radius)) < 1
        labels[inside] = rng.choice(values[1:])
    return labels


def draw_image(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """Draw a picture that goes with a label map."""
    colors = np.random.default_rng(3).integers(30, 220, (256, 3))
    return np.clip(colors[labels] + rng.normal(0, 12, (*labels.shape, 3)), 0, 255).astype(np.uint8)


def write_coco(
    path: str, images: str, categories: Dict[int, str], count: int = 10, boxes: Optional[Dict[int, List[Any]]] = None
) -> None:
    """Write images of 160 x 120 and a COCO JSON; ``boxes`` (image -> boxes) come after the drawn ones."""
    rng = np.random.default_rng(len(path) + count)
    ids = list(categories)
    data: Dict[str, Any] = dict(
        images=[], annotations=[], categories=[dict(id=i, name=n) for i, n in categories.items()]
    )
    for image_id in range(1, count + 1):
        name, labels = f'{image_id:06d}.jpg', np.zeros((120, 160), np.uint8)
        drawn = []
        for _ in range(int(rng.integers(1, 4))):
            w, h = int(rng.integers(20, 60)), int(rng.integers(20, 50))
            drawn.append([int(rng.integers(0, 160 - w)), int(rng.integers(0, 120 - h)), w, h])
        for box in [*drawn, *(boxes or {}).get(image_id, ())]:
            number = len(data['annotations']) + 1
            x, y, w, h = box
            outline = [x, y, x + w, y, x + w, y + h, x, y + h]
            data['annotations'].append(
                dict(id=number, image_id=image_id, category_id=ids[number % len(ids)], bbox=box, area=w * h, iscrowd=0)
            )
            data['annotations'][-1]['segmentation'] = [outline]
            labels[max(y, 0) : max(y + h, 0), max(x, 0) : max(x + w, 0)] = 1 + number % len(ids)
        save(f'{images}/{name}', draw_image(rng, labels))
        data['images'].append(dict(id=image_id, file_name=name, width=160, height=120))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(data))


def write_masks(values: Sequence[int], shape: Tuple[int, int] = (96, 128), palette: bool = False) -> None:
    """Write label maps and images of two splits, as BaseSegDataset reads them."""
    rng = np.random.default_rng(sum(values))
    for split, count in (('train', 10), ('val', 4)):
        for index in range(count):
            labels = draw_labels(rng, shape, values)
            save(f'data/masks/{split}/{index:04d}.png', labels, palette)
            save(f'data/images/{split}/{index:04d}.jpg', draw_image(rng, labels))


#: The data set of the training in a config of mmdet.
TRAIN = "metainfo=metainfo, data_root='data/', ann_file='train.json', data_prefix=dict(img='train/')"


def write_detection_config(base: str, classes: Sequence[str], model: str = '', train: str = TRAIN) -> None:
    """Write config.py over a config of mmdet, for the JSON files data/train.json and data/val.json."""
    Path('config.py').write_text(f"""_base_ = ['mmdet::{base}.py']
metainfo = dict(classes={tuple(classes)!r})
model = dict(backbone=dict(init_cfg=None){model})
train_dataloader = dict(dataset=dict({train}))
val_dataloader = dict(dataset=dict(
    data_root='data/', metainfo=metainfo, ann_file='val.json', data_prefix=dict(img='val/')))
test_dataloader = val_dataloader
val_evaluator = dict(ann_file='data/val.json')
test_evaluator = val_evaluator
""")


def write_segmentation_config(base: str, classes: Sequence[str], rest: str, zero: bool = False) -> None:
    """Write config.py over a config of mmseg, for what write_masks writes."""
    Path('config.py').write_text(f"""_base_ = ['mmseg::{base}.py']
crop_size = (96, 96)
data_preprocessor = dict(size=crop_size)
{rest}
train_pipeline = [
    dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', reduce_zero_label={zero}),
    dict(type='RandomResize', scale=(128, 96), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size, cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5), dict(type='PackSegInputs')]
test_pipeline = [
    dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', reduce_zero_label={zero}), dict(type='PackSegInputs')]
dataset = dict(_delete_=True, type='BaseSegDataset', data_root='data', reduce_zero_label={zero},
    metainfo=dict(classes={tuple(classes)!r}), img_suffix='.jpg', seg_map_suffix='.png')
train_dataloader = dict(batch_size=2, num_workers=0, persistent_workers=False, dataset=dict(
    **dataset, data_prefix=dict(img_path='images/train', seg_map_path='masks/train'), pipeline=train_pipeline))
val_dataloader = dict(batch_size=1, num_workers=0, persistent_workers=False, dataset=dict(
    **dataset, data_prefix=dict(img_path='images/val', seg_map_path='masks/val'), pipeline=test_pipeline))
test_dataloader = val_dataloader
""")
