"""Data sets of a few tiny images with known labels, models of a few weights, and real runs of both."""

from __future__ import annotations

import json
import os
import os.path as osp
import re
import signal
import uuid
from collections import Counter
from glob import glob
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import numpy as np
import pytest
from label_files import write
from log_lines import with_values
from mmengine.config import Config, ConfigDict
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from PIL import Image
from put_file import put_config

import mmguard  # noqa: F401  # what custom_imports does for a config file

pytest.importorskip('mmseg')

SIZE = 64
NUM_CLASSES = 19

#: What is planted into the training images: number -> values. The others are clean.
PLANTED = {0: (24, 33), 2: (200,), 3: (25, 26, 33), 5: (19,), 6: (200, 254)}
TRAIN_IMAGES = 8
#: And into the validation images.
PLANTED_VAL = {1: (200, 24)}
VAL_IMAGES = 3

LOAD = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
PACK = dict(type='PackSegInputs')
GUARD = dict(type='GuardSegLabels', num_classes=NUM_CLASSES)
META_KEYS = ('img_path', 'seg_map_path', 'ori_shape', 'img_shape', 'pad_shape', 'scale_factor', 'flip')


# ---- data


def label_map(number: int, values: Sequence[int], num_classes: int = NUM_CLASSES) -> np.ndarray:
    """Stripes of all classes, a corner of 255, and one block per planted value, each of another size."""
    label = (np.arange(SIZE)[:, None] * num_classes // SIZE + np.zeros((1, SIZE), int)).astype(np.uint8)
    label[:6, :6] = 255
    for place, value in enumerate(values):
        label[10 : 14 + number + 3 * place, 15 * place : 15 * place + 7] = value
    return label


def write_pair(image: str, label: str, label_values: np.ndarray, seed: int) -> None:
    write(image, np.random.default_rng(seed).integers(0, 256, (*label_values.shape, 3), dtype=np.uint8))
    write(label, label_values)


def make_cityscapes(root: str, planted: Optional[Dict[int, Sequence[int]]] = None) -> str:
    """The layout and the suffixes of Cityscapes. ``planted`` replaces what is planted into the training images."""
    planted = PLANTED if planted is None else planted
    splits = (('train', 'aachen', TRAIN_IMAGES, planted), ('val', 'munster', VAL_IMAGES, PLANTED_VAL))
    for split, city, images, values in splits:
        for number in range(images):
            stem = f'{split}/{city}/{city}_{number:06d}_000019'
            write_pair(
                osp.join(root, 'leftImg8bit', f'{stem}_leftImg8bit.png'),
                osp.join(root, 'gtFine', f'{stem}_gtFine_labelTrainIds.png'),
                label_map(number, values.get(number, ())),
                seed=number,
            )
    return root


def make_camvid(root: str) -> str:
    """The flat layout: train/ trainannot/ val/ valannot/, 11 classes, 11 is void and in every image."""
    for split in ('train', 'val'):
        for number in range(4):
            name = f'000{number}.png'
            label = label_map(number, (11,), num_classes=11)
            write_pair(osp.join(root, split, name), osp.join(root, f'{split}annot', name), label, seed=number)
    return root


def invalid_values(path: str, num_classes: int = NUM_CLASSES) -> Dict[str, int]:
    """The invalid values of a label file and their counts, found without any of mmguard's code."""
    with Image.open(path) as image:
        counts = Counter(image.getdata())
    return {str(value): n for value, n in sorted(counts.items()) if value >= num_classes and value != 255}


def expected_samples(root: str, folder: str, num_classes: int = NUM_CLASSES) -> List[Dict[str, Any]]:
    """What the log has to say about each label file of a folder, in the order of their names; clean ones included."""
    samples = []
    for path in sorted(glob(osp.join(root, folder, '**', '*.png'), recursive=True)):
        values = invalid_values(path, num_classes)
        source = osp.relpath(path, root)
        samples.append(dict(source=source, skipped=sum(values.values()), remapped=0, values=values))
    return samples


# ---- configs


UNET = dict(
    type='UNet',
    base_channels=4,
    num_stages=2,
    strides=(1, 1),
    enc_num_convs=(1, 1),
    dec_num_convs=(1,),
    downsamples=(True,),
    enc_dilations=(1, 1),
    dec_dilations=(1,),
)


def tiny_config(root: str, work_dir: str, *, iters: int = 4, pipeline: Optional[list] = None) -> Config:
    """A model that trains in milliseconds, over the data set in order, 2 images per batch."""
    pipeline = [*LOAD, PACK, GUARD] if pipeline is None else pipeline
    norm_cfg = dict(type='BN')
    return Config(
        dict(
            default_scope='mmseg',
            custom_hooks=[dict(type='LabelGuardHook')],
            work_dir=work_dir,
            experiment_name=f'run-{uuid.uuid4().hex}',
            randomness=dict(seed=0),
            env_cfg=dict(mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0)),
            log_processor=dict(by_epoch=False),
            default_hooks=dict(logger=dict(type='LoggerHook', interval=1, log_metric_by_epoch=False), checkpoint=None),
            vis_backends=[dict(type='LocalVisBackend')],
            visualizer=dict(
                type='SegLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')], name=uuid.uuid4().hex
            ),
            model=dict(
                type='EncoderDecoder',
                data_preprocessor=dict(type='SegDataPreProcessor', mean=[127.5] * 3, std=[60.0] * 3, size=(SIZE, SIZE)),
                backbone=dict(UNET, norm_cfg=norm_cfg),
                decode_head=dict(
                    type='FCNHead',
                    in_channels=4,
                    in_index=1,
                    channels=4,
                    num_convs=1,
                    concat_input=False,
                    dropout_ratio=0,
                    num_classes=NUM_CLASSES,
                    norm_cfg=norm_cfg,
                    loss_decode=dict(type='GuardedCrossEntropyLoss'),
                ),
                test_cfg=dict(mode='whole'),
            ),
            train_dataloader=dict(
                batch_size=2,
                num_workers=0,
                sampler=dict(type='InfiniteSampler', shuffle=False),
                dataset=dataset_config(root, 'train', pipeline),
            ),
            optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01)),
            train_cfg=dict(type='IterBasedTrainLoop', max_iters=iters, val_interval=10_000),
        )
    )


def dataset_config(root: str, split: str, pipeline: list) -> Dict[str, Any]:
    return dict(
        type='CityscapesDataset',
        data_root=root,
        data_prefix=dict(img_path=f'leftImg8bit/{split}', seg_map_path=f'gtFine/{split}'),
        pipeline=pipeline,
    )


def seg_config(folder: Path, root: str, pipeline: list) -> str:
    """Writes a config with what a command reads of one."""
    model = dict(type='EncoderDecoder', decode_head=dict(type='FCNHead', num_classes=NUM_CLASSES))
    loader = dict(dataset=dataset_config(root, 'train', pipeline))
    imports = dict(imports=['mmguard'], allow_failed_imports=False)
    names = dict(default_scope='mmseg', custom_imports=imports, model=model, train_dataloader=loader)
    return str(put_config(folder / 'config.py', **names))


def add_loop(config: Config, mode: str, pipeline: Optional[list] = None) -> None:
    """Adds a ``'val'`` or ``'test'`` loop over the validation images, one per batch."""
    root = config.train_dataloader.dataset.data_root
    config[f'{mode}_dataloader'] = dict(
        batch_size=1,
        num_workers=0,
        sampler=dict(type='DefaultSampler', shuffle=False),
        dataset=dataset_config(root, 'val', [*LOAD, PACK, GUARD] if pipeline is None else pipeline),
    )
    config[f'{mode}_evaluator'] = dict(type='IoUMetric', iou_metrics=['mIoU'])
    config[f'{mode}_cfg'] = dict(type='ValLoop' if mode == 'val' else 'TestLoop')


def by_epoch(config: Config, epochs: int = 2) -> None:
    """Turns a run by iterations into one by epochs."""
    config.train_dataloader.sampler = dict(type='DefaultSampler', shuffle=False)
    config.train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=epochs)
    config.log_processor = dict(by_epoch=True)
    config.default_hooks.logger.log_metric_by_epoch = True


def shrink_run(config: Config, work_dir: str) -> None:
    config.work_dir = work_dir
    config.experiment_name = f'run-{uuid.uuid4().hex}'
    config.visualizer.name = uuid.uuid4().hex
    config.default_hooks.pop('visualization', None)
    config.default_hooks.checkpoint = None
    config.default_hooks.logger.interval = 1
    config.randomness = dict(seed=0)


def shrink(config: Config, root: str, work_dir: str, *, iters: int = 3) -> Config:
    """Makes a shipped config trainable on a CPU within seconds; its losses and its guards stay as they are."""
    shrink_run(config, work_dir)
    config.train_cfg.update(max_iters=iters, val_interval=iters)
    for mode in ('train', 'val', 'test'):
        loader = config[f'{mode}_dataloader']
        loader.update(num_workers=0, persistent_workers=False)
        loader.dataset.data_root = root
        loader.dataset.pipeline = list(filter(None, (_small_transform(step) for step in loader.dataset.pipeline)))
    config.train_dataloader.update(batch_size=2)
    config.train_dataloader.sampler.shuffle = False
    model = config.model
    model.data_preprocessor.size = (SIZE, SIZE)
    model.pretrained = None
    model.backbone.init_cfg = None
    _without_sync(model)
    if type_name(model.backbone.type) == 'PIDNet':
        model.backbone.update(channels=8, ppm_channels=8)
        model.decode_head.update(in_channels=32, channels=16)
    elif type_name(model.decode_head.type) == 'Mask2FormerHead':
        model.backbone.update(depth=18, base_channels=8, stem_channels=8)
        _shrink_mask2former(model.decode_head)
    else:
        _shrink_resnet(model)
    return config


def _shrink_resnet(model: ConfigDict) -> None:
    model.backbone.update(depth=18, base_channels=8, stem_channels=8)
    # contract_dilation and the other dilations need bottlenecks or not, but the basic block allows stride 1 alone there
    widths = (8, 16, 32, 64)
    for name in ('decode_head', 'auxiliary_head'):
        if name in model:
            head = model[name]
            head.in_channels = widths[head.in_index]
            head.channels = 8
            if 'c1_in_channels' in head:
                head.update(c1_in_channels=8, c1_channels=4)


def _shrink_mask2former(head: ConfigDict) -> None:
    head.update(in_channels=[8, 16, 32, 64], feat_channels=32, out_channels=32, num_queries=20)
    layer = head.pixel_decoder.encoder.layer_cfg
    head.pixel_decoder.encoder.num_layers = 1
    layer.self_attn_cfg.update(embed_dims=32, num_heads=4)
    layer.ffn_cfg.update(embed_dims=32, feedforward_channels=32)
    head.pixel_decoder.positional_encoding.num_feats = 16
    head.positional_encoding.num_feats = 16
    decoder = head.transformer_decoder
    decoder.num_layers = 2
    for name in ('self_attn_cfg', 'cross_attn_cfg'):
        decoder.layer_cfg[name].update(embed_dims=32, num_heads=4)
    decoder.layer_cfg.ffn_cfg.update(embed_dims=32, feedforward_channels=32)
    head.train_cfg.num_points = 256


def _small_transform(step: ConfigDict) -> Optional[ConfigDict]:
    """No random geometry, so that a label file and what is seen of it agree."""
    if type_name(step.type) in ('RandomResize', 'RandomChoiceResize', 'RandomCrop', 'RandomFlip', 'Resize'):
        return None
    return step


def _without_sync(config: Any) -> None:
    """BN instead of SyncBN, which needs a GPU."""
    if isinstance(config, dict):
        if 'type' in config and type_name(config['type']) in ('SyncBN', 'SyncBatchNorm'):
            config['type'] = 'BN'
        for value in config.values():
            _without_sync(value)
    elif isinstance(config, (list, tuple)):
        for value in config:
            _without_sync(value)


def type_name(type_: Any) -> str:
    """A config's type by name, be it a string or (new style) a class."""
    return type_ if isinstance(type_, str) else type_.__name__


# ---- runs


@HOOKS.register_module()
class StopAt(Hook):
    """Ends a training once an iteration has been logged.

    Args:
        iteration (int): It, counted from 1.
        by (str): ``'error'``, ``'kill'`` (of the process), or ``'stop'``, as EarlyStoppingHook does.
    """

    priority = 'VERY_LOW'

    def __init__(self, iteration: int = 1, by: str = 'error') -> None:
        self.iteration, self.by = iteration, by

    def after_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        if runner.iter + 1 != self.iteration:
            return
        if self.by == 'kill':
            os.kill(os.getpid(), signal.SIGKILL)
        if self.by == 'error':
            raise FloatingPointError('planted')
        runner.train_loop.stop_training = True


def runner_of(config: Config) -> Runner:
    """A runner. mmengine writes the config out four times a run; laid out by yapf, that takes seconds each time."""
    object.__setattr__(config, '_format_python_code', False)
    return Runner.from_cfg(config)


class Run:
    """A runner and what it left on disk."""

    def __init__(self, config: Config) -> None:
        self.runner = runner_of(config)

    def train(self) -> Run:
        self.runner.train()
        return self

    def test(self) -> Run:
        self.runner.test()
        return self

    @property
    def log_dir(self) -> str:
        return self.runner.log_dir

    @property
    def log(self) -> str:
        """What the console showed."""
        (path,) = glob(osp.join(self.log_dir, '*.log'))
        return Path(path).read_text(encoding='utf-8')

    @property
    def warnings(self) -> List[str]:
        """The warnings of the hooks, each a paragraph of the log."""
        return re.findall(r' - WARNING - guard: (.*(?:\n(?!\d{4}/).*)*)', self.log)

    @property
    def modes(self) -> Dict[str, Any]:
        """What ``label_guard.json`` says of each mode of the last run."""
        modes: Dict[str, Any] = json.loads(Path(self.log_dir, 'label_guard.json').read_text())['runs'][-1]['modes']
        return modes

    @property
    def guard_lines(self) -> List[str]:
        """The hook's lines, about one iteration with an offence or several, without date and level."""
        lines = [line[line.index('guard: ') :] for line in self.log.splitlines() if ' - guard: ' in line]
        return [line for line in lines if re.match(r'guard: (\w+ )?(epoch \d+ )?iters? ', line)]

    def lines(self, mode: str = 'train', name: str = 'label_guard.jsonl') -> List[Dict[str, Any]]:
        """The JSON lines of a mode; none where there is no file."""
        return [line for line in read_lines(osp.join(self.log_dir, name)) if line['mode'] == mode]

    @property
    def scalars(self) -> List[Dict[str, Any]]:
        return read_lines(osp.join(self.log_dir, 'vis_data', 'scalars.json'))


def read_lines(path: str) -> List[Dict[str, Any]]:
    if not osp.exists(path):
        return []
    with open(path, encoding='utf-8') as file:
        return with_values([json.loads(line) for line in file])


def train(config: Config) -> Run:
    return Run(config).train()
