"""Shrunk detectors on the data sets of ``small_det_data``."""

from __future__ import annotations

import copy
import os.path as osp
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch
from mmdet.datasets.transforms import LoadPanopticAnnotations
from mmdet.registry import TRANSFORMS
from mmengine.config import Config, ConfigDict
from mmengine.dataset import pseudo_collate
from small_det_data import (
    IMAGES,
    SIZE,
    Fault,
    faults_in_coco,
    faults_in_openimages,
    faults_in_panoptic,
    faults_in_voc,
    voc_classes,
)
from small_runs import _shrink_mask2former, _without_sync, runner_of, shrink_run, type_name

ROOT = osp.join(osp.dirname(__file__), '..', 'configs')


class Layout(NamedTuple):
    """A guarded config, and the data set that goes with it: its classes are more than the head's."""

    config: str
    stock: str
    num_classes: int
    data_classes: int


#: The shipped configs, and the stock ones that they must equal on clean labels.
LAYOUTS = {
    'retinanet': Layout(
        'retinanet/retinanet_r50_fpn_openimages264_guarded.py',
        'openimages/retinanet_r50_fpn_32xb2-1x_openimages.py',
        264,
        601,
    ),
    'faster_rcnn': Layout(
        'faster_rcnn/faster-rcnn_r50_fpn_voc_guarded.py', 'pascal_voc/faster-rcnn_r50_fpn_1x_voc0712.py', 20, 23
    ),
    'mask_rcnn': Layout(
        'mask_rcnn/mask-rcnn_r50_fpn_coco_guarded.py', 'mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py', 80, 83
    ),
    'dino': Layout('dino/dino-4scale_r50_coco_guarded.py', 'dino/dino-4scale_r50_8xb2-12e_coco.py', 80, 83),
    'mask2former': Layout(
        'mask2former/mask2former_r50_coco-instance_guarded.py',
        'mask2former/mask2former_r50_8xb2-lsj-50e_coco.py',
        80,
        83,
    ),
    'panoptic_fpn': Layout(
        'panoptic_fpn/panoptic-fpn_r50_coco_guarded.py', 'panoptic_fpn/panoptic-fpn_r50_fpn_1x_coco.py', 133, 136
    ),
}


# ---- what is wrong with an annotation file, found without any of mmguard's code


def faults_in(family: str, root: str, split: str = 'train') -> List[Fault]:
    """The invalid objects of a family's data set, from its annotation files."""
    num_classes = LAYOUTS[family].num_classes
    if family == 'retinanet':
        return faults_in_openimages(root, split if split == 'train' else 'validation', num_classes)
    if family == 'faster_rcnn':
        return faults_in_voc(root, 'trainval' if split == 'train' else 'test', num_classes)
    if family == 'panoptic_fpn':
        return faults_in_panoptic(root, split)
    return faults_in_coco(root, split, num_classes)


# ---- configs


def load(family: str) -> Config:
    return Config.fromfile(osp.join(ROOT, LAYOUTS[family].config))


def load_stock(family: str) -> Config:
    """mmdet's own config of a key of ``LAYOUTS``, with the head's classes of the guarded one."""
    config = Config.fromstring(f'_base_ = ["mmdet::{LAYOUTS[family].stock}"]', '.py')
    if family == 'retinanet':
        config.model.bbox_head.num_classes = LAYOUTS[family].num_classes
    return config


def assigners_of(config: Config) -> List[ConfigDict]:
    train_cfg = config.model.train_cfg
    return [part.assigner for part in (train_cfg, *train_cfg.values()) if isinstance(part, dict) and 'assigner' in part]


def leaf_datasets(dataset: ConfigDict) -> Iterator[ConfigDict]:
    """The data sets inside of RepeatDataset and ConcatDataset."""
    if 'dataset' in dataset:
        yield from leaf_datasets(dataset.dataset)
    elif 'datasets' in dataset:
        for inner in dataset.datasets:
            yield from leaf_datasets(inner)
    else:
        yield dataset


def shrink_model(config: Config) -> Config:
    """A detector of a few thousand weights; heads, losses, assigners and guards stay what they are."""
    model = config.model
    model.init_cfg = None
    model.backbone.update(depth=18, base_channels=8, stem_channels=8, init_cfg=None)
    _without_sync(model)
    widths = [8, 16, 32, 64]
    name = type_name(model.type)
    if name == 'DINO':
        _shrink_dino(model)
    elif name == 'Mask2Former':
        model.data_preprocessor.batch_augments[0].size = (SIZE, SIZE)
        model.panoptic_head.train_cfg = model.train_cfg  # where mmseg's has it
        _shrink_mask2former(model.panoptic_head)
        del model.panoptic_head['train_cfg']
    else:
        model.neck.update(in_channels=widths, out_channels=16)
        if name == 'RetinaNet':
            model.bbox_head.update(in_channels=16, feat_channels=16, stacked_convs=1)
        else:
            model.rpn_head.update(in_channels=16, feat_channels=16)
            model.train_cfg.rpn_proposal.update(nms_pre=200, max_per_img=100)
            model.train_cfg.rcnn.sampler.num = 64
            model.test_cfg.rpn.update(nms_pre=200, max_per_img=100)
            model.test_cfg.rcnn.score_thr = 0.0  # a model with random weights finds something, too
            roi = model.roi_head
            roi.bbox_roi_extractor.out_channels = 16
            roi.bbox_head.update(in_channels=16, fc_out_channels=32)
            if 'mask_head' in roi:
                roi.mask_roi_extractor.out_channels = 16
                roi.mask_head.update(in_channels=16, conv_out_channels=16, num_convs=1)
        if 'semantic_head' in model:
            model.semantic_head.update(in_channels=16, inner_channels=8)
            model.semantic_head.norm_cfg.num_groups = 4
    return config


def _shrink_dino(model: ConfigDict) -> None:
    # The 256 channels stay: the decoder's encoding of boxes has them built in.
    model.num_queries = 20
    model.neck.in_channels = [16, 32, 64]
    model.encoder.num_layers = 1
    model.decoder.num_layers = 2
    for part in (model.encoder, model.decoder):
        part.layer_cfg.ffn_cfg.feedforward_channels = 32
    model.dn_cfg.group_cfg.num_dn_queries = 10
    model.test_cfg.max_per_img = 20


def shrink_data(config: Config, root: str, data_classes: int, val_size: int = SIZE) -> Config:
    """All images in order and as they are: no random geometry, so that a file and what is seen of it agree."""
    for mode in ('train', 'val', 'test'):
        loader = config[f'{mode}_dataloader']
        loader.update(num_workers=0, persistent_workers=False)
        loader.sampler.shuffle = False
        if 'times' in loader.dataset:
            loader.dataset.times = 1
        for dataset in leaf_datasets(loader.dataset):
            dataset.data_root = root
            size = SIZE if mode == 'train' else val_size
            dataset.pipeline = [_small(step, size) for step in dataset.pipeline if _keeps_geometry(step)]
            if dataset.type == 'VOCDataset':
                dataset.metainfo = dict(classes=voc_classes(data_classes))
            elif dataset.type == 'CocoDataset':
                dataset.metainfo = dict(classes=tuple(f'class {label}' for label in range(data_classes)))
            elif dataset.type == 'CocoPanopticDataset':
                dataset.metainfo = dict(
                    classes=tuple(f'class {label}' for label in range(data_classes)), thing_classes=(), stuff_classes=()
                )
    for evaluator in (config.val_evaluator, config.test_evaluator):
        if 'ann_file' in evaluator:
            evaluator.ann_file = osp.join(root, evaluator.ann_file.replace('data/coco/', ''))
    return config


def _keeps_geometry(step: ConfigDict) -> bool:
    return step['type'] not in ('RandomResize', 'RandomChoice', 'RandomFlip', 'RandomCrop')


def _small(step: ConfigDict, size: int) -> ConfigDict:
    if step['type'] == 'LoadPanopticAnnotations':
        return ConfigDict(step, type='LoadPanopticAnnotationsHere')
    if step['type'] == 'Resize':
        return ConfigDict(step, scale=(size, size))
    return step


@TRANSFORMS.register_module()
class LoadPanopticAnnotationsHere(LoadPanopticAnnotations):
    """mmdet's own, without panopticapi (which no package index has): of that, it calls one line."""

    def __init__(self, **kwargs: Any) -> None:
        super(LoadPanopticAnnotations, self).__init__(with_bbox=True, with_mask=True, with_seg=True, **kwargs)
        self.rgb2id = lambda rgb: rgb.astype(int) @ [1, 256, 65536]


def shrink(
    config: Config,
    root: str,
    work_dir: str,
    *,
    data_classes: int,
    epochs: int = 1,
    validate: bool = False,
    val_size: int = SIZE,
) -> Config:
    """Makes a config trainable on a CPU within seconds; its losses and its guards stay as they are.

    Args:
        config (Config): Of any family.
        root (str): The data set.
        work_dir (str): Where the run may write.
        data_classes (int): Classes of the data set.
        epochs (int): 4 iterations each.
        validate (bool): Also keep the validation loop.
        val_size (int): What Resize makes of validation images; mmdet's boxes and masks are loaded after it.
    """
    shrink_model(config)
    shrink_data(config, root, data_classes, val_size)
    shrink_run(config, work_dir)
    config.load_from = None
    if config.train_cfg.type == 'EpochBasedTrainLoop':
        config.train_cfg.max_epochs = epochs
    else:
        config.train_cfg = dict(type='IterBasedTrainLoop', max_iters=epochs * IMAGES // 2, val_interval=IMAGES // 2)
    if not validate:
        config.update(val_dataloader=None, val_cfg=None, val_evaluator=None)
    config.update(test_dataloader=None, test_cfg=None, test_evaluator=None)
    return config


def small_config(family: str, root: str, work_dir: str, *, stock: Optional[bool] = None, **kwargs: Any) -> Config:
    """A family's config, guarded or (``stock=True``) mmdet's own, shrunk onto its data set."""
    config = load_stock(family) if stock else load(family)
    return shrink(config, root, work_dir, data_classes=LAYOUTS[family].data_classes, **kwargs)


# ---- single steps


class Step(NamedTuple):
    """What one training step left: every loss by name (and level), and every parameter's gradient."""

    losses: Dict[str, torch.Tensor]
    gradients: Dict[str, torch.Tensor]

    def distance(self, other: Step) -> float:
        """The largest difference of any loss or gradient element, relative to the tensor's own largest one."""
        assert self.losses.keys() == other.losses.keys()
        assert self.gradients.keys() == other.gradients.keys()
        pairs = [(mine[key], theirs[key]) for mine, theirs in zip(self, other) for key in mine]
        assert pairs
        # At least 1e-3, so that a gradient of nothing but rounding is not blown up.
        return max(((a - b).abs().max() / b.abs().max().clamp(min=1e-3)).item() for a, b in pairs)


def build(config: Config) -> Tuple[torch.nn.Module, Any]:
    """The model of a config as a run begins with it, and its training data set."""
    runner = runner_of(config)
    runner.model.init_weights()
    return runner.model, runner.build_dataloader(config.train_dataloader, seed=0).dataset


def one_step(model: torch.nn.Module, samples: Sequence[Dict[str, Any]], seed: int = 0) -> Step:
    """Forward and backward of the samples as one batch, from a given random state; the samples stay as they are."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    model.train()
    model.zero_grad()
    data = model.data_preprocessor(pseudo_collate(copy.deepcopy(list(samples))), True)
    losses = model(**data, mode='loss')
    model.parse_losses(losses)[0].backward()
    flat = {}
    for name, value in losses.items():
        for level, part in enumerate(value if isinstance(value, list) else [value]):
            flat[f'{name}.{level}'] = part.detach().clone()
    gradients = {n: p.grad.detach().clone() for n, p in model.named_parameters() if p.grad is not None}
    return Step(flat, gradients)
