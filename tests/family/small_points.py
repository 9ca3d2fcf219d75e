"""Small trainings of mmdet3d that run on a CPU, with the data sets, pipelines, heads and losses of its configs."""

from __future__ import annotations

import os
import os.path as osp
import pickle
from typing import Any, Dict, List

import mmdet3d.datasets
import mmdet3d.models  # noqa: F401
import numpy as np
from mmdet3d.registry import MODELS
from mmengine.config import Config
from small_rotated import for_one_epoch
from torch import Tensor, nn

from mmguard.compat.stack import config_file

POINTS = 32
#: File -> values that are put in place of the first points' labels. S3DIS has 0 to 12, and 13 for what has no label.
PLANTED: Dict[str, List[int]] = {'hall': [300, 300, 14], 'office': [-3, -3], 'lobby': [], 'stairs': [13, 13, 13]}


class PointwiseBackbone(nn.Module):
    """In place of DGCNNBackbone, whose neighbours mmcv looks for on a GPU alone: each point by itself."""

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__()
        self.layer = nn.Linear(in_channels, channels)

    def forward(self, points: Tensor) -> Dict[str, Tensor]:
        return {'fa_points': self.layer(points)}


MODELS.register_module(module=PointwiseBackbone, force=True)


def make_s3dis(root: str, leave_out: int = -1) -> str:
    """Writes clouds of points, their labels, and the file that lists them; one planted value may be left out."""
    listed: List[Dict[str, Any]] = []
    for seed, (stem, planted) in enumerate(PLANTED.items()):
        random = np.random.RandomState(seed)
        labels = random.randint(0, 13, POINTS)
        planted = [value for value in planted if value != leave_out]
        labels[: len(planted)] = planted
        _write(osp.join(root, 'points', f'{stem}.bin'), random.rand(POINTS, 6).astype(np.float32))
        _write(osp.join(root, 'labels', f'{stem}.bin'), labels.astype(np.int64))
        listed.append(
            {
                'lidar_points': {'num_pts_feats': 6, 'lidar_path': f'{stem}.bin'},
                'pts_semantic_mask_path': f'{stem}.bin',
                'sample_idx': stem,
            }
        )
    np.save(osp.join(root, 'scenes.npy'), np.arange(len(listed)))
    return _listed(root, listed, {'categories': {}, 'dataset': 'S3DIS'})


def _listed(root: str, listed: List[Dict[str, Any]], metainfo: Dict[str, Any]) -> str:
    with open(osp.join(root, 'infos.pkl'), 'wb') as file:
        pickle.dump({'metainfo': metainfo, 'data_list': listed}, file)
    return root


def _write(path: str, values: np.ndarray) -> None:
    os.makedirs(osp.dirname(path), exist_ok=True)
    values.tofile(path)


def points_config(root: str, work_dir: str) -> Config:
    """DGCNN on S3DIS with a backbone of one layer; all points of a cloud, in their order."""
    config = Config.fromfile(config_file('mmdet3d::dgcnn/dgcnn_4xb32-cosine-100e_s3dis-seg_test-area5.py'))
    config.model.backbone = dict(type='PointwiseBackbone', in_channels=6, channels=8)
    config.model.decode_head.update(fp_channels=(8, 8), channels=8)
    dataset = config.train_dataloader.dataset
    dataset.update(
        data_root=root,
        ann_files=['infos.pkl'],
        scene_idxs=['scenes.npy'],
        data_prefix=dict(pts='points', pts_instance_mask='', pts_semantic_mask='labels'),
    )
    dataset.pipeline = [step for step in dataset.pipeline if step.type != 'IndoorPatchPointSample']
    _alone(config)
    return for_one_epoch(config, work_dir)


def _alone(config: Config) -> None:
    config.train_dataloader.update(
        batch_size=2, num_workers=0, persistent_workers=False, sampler=dict(type='DefaultSampler', shuffle=False)
    )


#: KITTI's numbers of categories: 2 is a car, 4 a truck, which the class list below has as label 3.
CLASSES = ('Pedestrian', 'Cyclist', 'Car', 'Truck')
OBJECTS: Dict[str, List[int]] = {'000': [2, 0, 4], '001': [4, 4], '002': [1], '003': [7, 2, -1]}
HEAD_CLASSES = 3


def make_kitti(root: str) -> str:
    """Writes clouds, and objects of four classes that the list has, of one that it has not (7), and of none (-1)."""
    listed = []
    for seed, (stem, labels) in enumerate(OBJECTS.items()):
        random = np.random.RandomState(seed)
        cloud = np.concatenate([random.uniform(0, 10, (400, 3)), random.rand(400, 1)], axis=1)
        _write(osp.join(root, 'points', f'{stem}.bin'), cloud.astype(np.float32))
        instances = [
            {
                'bbox': [0.0, 0.0, 10.0, 10.0],
                'bbox_label': label,
                'bbox_3d': [2.0 + 3 * number, 1.0, 5.0, 3.9, 1.5, 1.6, 0.3],
                'bbox_label_3d': label,
                'num_lidar_pts': 10,
                'difficulty': 0,
                'truncated': 0.0,
                'occluded': 0,
                'alpha': 0.0,
                'score': 0.0,
                'index': number,
                'group_id': number,
            }
            for number, label in enumerate(labels)
        ]
        eye = np.eye(4).tolist()
        camera = {'img_path': f'{stem}.png', 'height': 100, 'width': 100, 'lidar2cam': eye, 'cam2img': eye}
        listed.append(
            {
                'sample_idx': seed,
                'images': {'CAM2': camera, 'R0_rect': eye},
                'lidar_points': {'num_pts_feats': 4, 'lidar_path': f'{stem}.bin', 'Tr_velo_to_cam': eye},
                'instances': instances,
            }
        )
    return _listed(root, listed, {'categories': {}, 'dataset': 'kitti'})


def pillars_config(root: str, work_dir: str) -> Config:
    """PointPillars on KITTI, for a small part of the ground."""
    config = Config.fromfile(config_file('mmdet3d::pointpillars/pointpillars_hv_secfpn_8xb6-160e_kitti-3d-3class.py'))
    area = [0, -5.12, -5, 10.24, 5.12, 15]
    model = config.model
    model.data_preprocessor.voxel_layer.update(point_cloud_range=area, voxel_size=[0.32, 0.32, 20])
    model.voxel_encoder.update(feat_channels=[8], point_cloud_range=area, voxel_size=[0.32, 0.32, 20])
    model.middle_encoder.update(in_channels=8, output_shape=[32, 32])
    model.backbone.update(in_channels=8, layer_nums=[1, 1, 1], out_channels=[8, 8, 8])
    model.neck.update(in_channels=[8, 8, 8], out_channels=[8, 8, 8])
    model.bbox_head.update(num_classes=HEAD_CLASSES, in_channels=24, feat_channels=24)
    model.bbox_head.anchor_generator.ranges = [[0, -5, 5, 10, 5, 5]] * 3
    dataset = config.train_dataloader.dataset.dataset
    dataset.update(
        data_root=root,
        ann_file='infos.pkl',
        data_prefix=dict(pts='points'),
        metainfo=dict(classes=list(CLASSES)),
        filter_empty_gt=False,  # else a sample whose objects are all removed is drawn anew, and not counted
    )
    keep = ('LoadPointsFromFile', 'LoadAnnotations3D', 'Pack3DDetInputs')
    dataset.pipeline = [step for step in dataset.pipeline if step.type in keep]
    config.train_dataloader.dataset = dataset
    _alone(config)
    return for_one_epoch(config, work_dir)
