"""Official configs on small data sets: their heads, losses, pipelines and metrics stay as they are."""

from __future__ import annotations

import functools
import json
import os.path as osp
import tempfile
from pathlib import Path
from typing import Any, Dict, Sequence

import numpy as np
from label_files import write
from mmengine.config import Config
from put_file import put, put_config
from small_det_data import make_coco
from small_runs import write_pair
from this_stack import base_line

from mmguard.config.tree import walk

#: Pixels; Cityscapes' proportions.
HEIGHT, WIDTH = 96, 192


def tree_of(name: str) -> Dict[str, Any]:
    """Return an official config, whose data sets read small ones, as plain dicts and lists.

    Args:
        name (str): As ``'mmseg::fcn/....py'``.
    """
    config = Config.fromstring(base_line(name), '.py')
    if config.default_scope == 'mmseg':
        reduced = "'reduce_zero_label': True" in repr(config.train_dataloader)
        _point_to_maps(config, num_classes_of(config), reduced)
    else:
        for split in ('train', 'val', 'test'):
            for _, node in walk(config[f'{split}_dataloader']):
                if 'ann_file' in node:
                    node['data_root'] = coco_root()
                if 'proposal_file' in node:
                    node['proposal_file'] = None
            for _, node in walk(config.get(f'{split}_evaluator')):
                if 'ann_file' in node:
                    node['ann_file'] = osp.join(coco_root(), 'annotations', 'instances_val2017.json')
    return config.to_dict()


def write_config(folder: Path, tree: Dict[str, Any]) -> str:
    return str(put_config(folder / 'mine.py', **tree))


def num_classes_of(config: Any) -> int:
    heads = config.model.decode_head
    last = heads[-1] if isinstance(heads, (list, tuple)) else heads
    return next(node['num_classes'] for _, node in walk(last) if 'num_classes' in node)


def _point_to_maps(config: Any, num_classes: int, reduced: bool) -> None:
    for split in ('train', 'val', 'test'):
        for _, node in walk(config[f'{split}_dataloader']):
            if 'data_prefix' in node:
                node.update(
                    type='BaseSegDataset',
                    data_root=maps_root(num_classes, reduced),
                    data_prefix=dict(img_path='img', seg_map_path='ann'),
                    img_suffix='.png',
                    seg_map_suffix='.png',
                    reduce_zero_label=reduced,
                    metainfo=dict(classes=tuple(f'class {label}' for label in range(num_classes))),
                )
                node.pop('ann_file', None)


@functools.lru_cache(maxsize=None)
def maps_root(num_classes: int, reduced: bool) -> str:
    """Write images and label maps of blocks of all classes, with some ignored pixels."""
    root = tempfile.mkdtemp(prefix='maps')
    for number in range(6):
        rng = np.random.default_rng(number)
        blocks = rng.integers(0, num_classes, (6, 12))
        label = np.kron(blocks, np.ones((HEIGHT // 6, WIDTH // 12), int))
        label = np.where(rng.random(label.shape) < 0.02, 255, label)
        if reduced:
            label = np.where(label == 255, 0, label + 1)
        write_pair(
            osp.join(root, 'img', f'{number}.png'), osp.join(root, 'ann', f'{number}.png'), label.astype('u1'), number
        )
    return root


@functools.lru_cache(maxsize=None)
def coco_root() -> str:
    """Write COCO's layout, with the names of its classes, crowds and images without objects."""
    from mmdet.datasets import CocoDataset

    root = make_coco(tempfile.mkdtemp(prefix='coco'), 80, 80, faults=())
    names = CocoDataset.METAINFO['classes']
    for split in ('train', 'val'):
        path = Path(root, 'annotations', f'instances_{split}2017.json')
        record = json.loads(path.read_text())
        for category, name in zip(record['categories'], names):
            category['name'] = name
        put(path, json.dumps(record))
        for image in record['images']:
            path = Path(root, 'stuffthingmaps', f'{split}2017', image['file_name'].replace('jpg', 'png'))
            write(path, np.full((96, 96), 3, np.uint8))
    return root


def coco_file(split: str, shift: int = 0, empty: Sequence[int] = ()) -> str:
    """Write an annotation file with other ids of images, or with images whose objects are left out."""
    record = json.loads(Path(coco_root(), 'annotations', f'instances_{split}2017.json').read_text())
    record['annotations'] = [one for one in record['annotations'] if one['image_id'] not in empty]
    for image in record['images']:
        image['id'] += shift
    for annotation in record['annotations']:
        annotation['image_id'] += shift
    return str(put(Path(tempfile.mkdtemp(prefix='coco'), 'instances.json'), json.dumps(record)))
