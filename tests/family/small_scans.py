"""Small data sets of mmdet3d as its own classes read them, under its own configs: labels of points, and objects."""

from __future__ import annotations

import copy
import pickle
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
from mmdet3d.datasets import Seg3DDataset
from mmdet3d.registry import DATASETS
from mmengine.config import Config

from mmguard.compat.stack import config_file

POINTS = 40
SAMPLES = 4
_OF_KITTI = (0, 1, 10, 11, 15, 18, 30, 40, 48, 70, 252, 259)


class TwoClasses(Seg3DDataset):
    """A data set of one's own, with labels of bytes."""

    METAINFO = {  # noqa: RUF012  as mmdet3d has it
        'classes': ('ground', 'tree'),
        'palette': [[0, 0, 0], [1, 1, 1]],
        'seg_valid_class_ids': (2, 5),
        'seg_all_class_ids': tuple(range(8)),
    }


DATASETS.register_module(module=TwoClasses, force=True)


def points(kind: str, root: Path) -> Config:
    """A config that trains on labels of points; the files of sample n are ``points/n.bin`` and ``labels/n.*``."""
    base, numbers, dtype, ids, ending = {
        'semantickitti': ('cylinder3d/cylinder3d_4xb4-3x_semantickitti', 4, np.uint32, _OF_KITTI, '.label'),
        's3dis': ('pointnet2/pointnet2_ssg_2xb16-cosine-50e_s3dis-seg', 6, np.int64, range(14), '.bin'),
        'scannet': ('pointnet2/pointnet2_ssg_2xb16-cosine-200e_scannet-seg', 6, np.int64, range(41), '.bin'),
        'own': ('pointnet2/pointnet2_ssg_2xb16-cosine-50e_s3dis-seg', 6, np.uint8, range(9), '.bin'),
    }[kind]  # type: Tuple[str, int, Any, Any, str]
    listed = []
    for sample in range(SAMPLES):
        random = np.random.RandomState(sample)
        labels = random.choice(list(ids), POINTS).astype(dtype)
        if ending == '.label':
            labels |= random.randint(0, 1 << 16, POINTS).astype(dtype) << 16  # numbers of objects
        write(root / 'points' / f'{sample}.bin', random.rand(POINTS, numbers).astype(np.float32))
        write(root / 'labels' / f'{sample}{ending}', labels)
        listed.append(
            {
                'lidar_points': {'lidar_path': f'{sample}.bin', 'num_pts_feats': numbers},
                'pts_semantic_mask_path': f'{sample}{ending}',
                'sample_idx': str(sample),
            }
        )
    write_infos(root, listed, {'dataset': kind})
    np.save(root / 'scenes.npy', np.array([0, 1, 2, 2, 3]))
    config = _shipped(base)
    dataset = dict(config.train_dataloader.dataset)
    dataset.pop('ann_files', None)
    dataset.update(
        data_root=str(root),
        ann_file='infos.pkl',
        data_prefix=dict(pts='points', pts_semantic_mask='labels', pts_instance_mask=''),
        scene_idxs=None if kind in ('semantickitti', 'own') else 'scenes.npy',
    )
    dataset['pipeline'] = [step for step in dataset['pipeline'] if step.type not in ('IndoorPatchPointSample',)]
    if kind == 's3dis':
        dataset['ann_files'] = [dataset.pop('ann_file')]
        dataset['scene_idxs'] = [dataset['scene_idxs']]
    if kind == 'own':
        dataset.update(type='TwoClasses', metainfo=dict(classes=('ground', 'tree')), ignore_index=2)
        dataset['pipeline'][1]['seg_3d_dtype'] = 'np.uint8'
        config.model.decode_head.update(num_classes=2, ignore_index=2)
    return _trained_alone(config, dataset)


def objects(kind: str, root: Path) -> Config:
    """A config that trains on objects in space; sample n has ``points/n.bin`` and ``images/n.png``."""
    base, numbers, sides = {
        'kitti': ('pointpillars/pointpillars_hv_secfpn_8xb6-160e_kitti-3d-3class', 4, 7),
        'nuscenes': ('pointpillars/pointpillars_hv_fpn_sbn-all_8xb4-2x_nus-3d', 5, 7),
    }[kind]
    listed = []
    for sample in range(SAMPLES):
        write(root / 'points' / f'{sample}.bin', np.zeros((POINTS, numbers), np.float32))
        eye = np.eye(4).tolist()
        instances = [
            {
                'bbox': [0.0, 0.0, 10.0, 10.0],
                'bbox_label': label,
                'bbox_label_3d': label,
                'bbox_3d': [1.0 + label, 2.0, 5.0, 3.9, 1.5 + label, 1.6, 0.3][:sides],
                'velocity': [float('nan'), 0.0],
                'num_lidar_pts': 3,
                'bbox_3d_isvalid': True,
            }
            for label in (0, 1, 2, -1)
        ]
        camera = {'img_path': f'{sample}.png', 'lidar2cam': eye, 'cam2img': eye}
        lidar = {'lidar_path': f'{sample}.bin', 'num_pts_feats': numbers}
        listed.append({'sample_idx': sample, 'images': {'CAM2': camera}, 'lidar_points': lidar, 'instances': instances})
        write(root / 'images' / f'{sample}.png', np.zeros(1, np.uint8))
    config = _shipped(base)
    dataset = config.train_dataloader.dataset
    dataset = dict(dataset.get('dataset', dataset))
    own = DATASETS.get(f'mmdet3d.{dataset["type"]}').METAINFO['classes']
    write_infos(root, listed, {'categories': {name: number for number, name in enumerate(own)}})
    dataset.update(data_root=str(root), ann_file='infos.pkl', data_prefix=dict(pts='points', img='images'))
    keep = ('LoadPointsFromFile', 'LoadAnnotations3D', 'ObjectNameFilter', 'ObjectRangeFilter', 'Pack3DDetInputs')
    dataset['pipeline'] = [step for step in dataset['pipeline'] if step.type in keep]
    return _trained_alone(config, dataset)


@lru_cache(maxsize=None)
def _read(name: str) -> Config:
    return Config.fromfile(config_file(f'mmdet3d::{name}.py'))


def _shipped(name: str) -> Config:
    return copy.deepcopy(_read(name))


def _trained_alone(config: Config, dataset: Dict[str, Any]) -> Config:
    config.train_dataloader = dict(batch_size=2, num_workers=0, dataset=dataset)
    for split in ('val', 'test'):
        config.pop(f'{split}_dataloader')
        config.pop(f'{split}_evaluator')
    return config


def write_config(config: Config, file: Path) -> None:
    """As ``dump``, without formatting it for a second."""
    file.write_text(''.join(f'{key} = {value!r}\n' for key, value in config.to_dict().items()), encoding='utf-8')


def write(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    values.tofile(path)


def write_infos(root: Path, listed: List[Dict[str, Any]], metainfo: Dict[str, Any]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    with (root / 'infos.pkl').open('wb') as file:
        pickle.dump({'metainfo': metainfo, 'data_list': listed}, file)


def read_infos(root: Path) -> Dict[str, Any]:
    with (root / 'infos.pkl').open('rb') as file:
        return dict(pickle.load(file))
