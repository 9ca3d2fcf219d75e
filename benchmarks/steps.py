"""Training steps of a small segmentor, stock and with ``LabelGuardHook(guard=True)``, on valid labels."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any, Callable, Dict, List

import mmcv
import numpy as np
from mmengine.registry import LOOPS
from mmengine.runner import IterBasedTrainLoop, Runner
from mmseg.utils import register_all_modules

import mmguard  # noqa: F401  # registers the hook
from benchmarks.timing import Row, interleaved

NUM_CLASSES, SIZE, IMAGES, BATCH = 19, 32, 8, 2


@LOOPS.register_module()
class StepByStep(IterBasedTrainLoop):
    """Training loop that runs one iteration per call of :meth:`step`."""

    def run(self) -> None:
        self.runner.call_hook('before_train')
        self.runner.call_hook('before_train_epoch')

    def step(self) -> None:
        self.run_iter(next(self.dataloader_iterator))


def rows(device: str, rounds: int) -> List[Row]:
    """Measure training steps, each including the loading of its batch with the guard in the pipeline."""
    register_all_modules(init_default_scope=False)
    with tempfile.TemporaryDirectory() as folder:
        write_images(folder)
        loops = {name: start_training(folder, name, hooks) for name, hooks in HOOKS.items()}
        ms = interleaved({name: loop.step for name, loop in loops.items()}, max(200, 10 * rounds), device)
        calls = {name: count_calls(loop.step) for name, loop in loops.items()}
        for loop in loops.values():
            loop.runner.call_hook('after_run')
    return [
        Row('training step, guarded / stock', ms['guarded'], ms['stock'], None),
        Row('training step, what guarding adds', ms['guarded'] - ms['stock'], None, 0.25),
        Row('training step, Python calls that guarding adds', calls['guarded'] - calls['stock'], None, 200, 'calls'),
    ]


HOOKS: Dict[str, List[Dict[str, Any]]] = {'stock': [], 'guarded': [dict(type='LabelGuardHook', guard=True)]}


def write_images(folder: str) -> None:
    """Write images with valid labels: stripes of all classes."""
    label = (np.arange(SIZE)[:, None] * NUM_CLASSES // SIZE + np.zeros((1, SIZE), int)).astype(np.uint8)
    for number in range(IMAGES):
        image = np.random.default_rng(number).integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
        mmcv.imwrite(image, os.path.join(folder, 'images', f'{number}.jpg'))
        mmcv.imwrite(label, os.path.join(folder, 'labels', f'{number}.png'))


def start_training(folder: str, name: str, hooks: List[Dict[str, Any]]) -> StepByStep:
    """Start a training, and return its loop before the first batch is loaded."""
    pipeline = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
    dataset = dict(
        type='BaseSegDataset',
        data_root=folder,
        data_prefix=dict(img_path='images', seg_map_path='labels'),
        metainfo=dict(classes=[f'class {number}' for number in range(NUM_CLASSES)]),
        pipeline=pipeline,
    )
    head = dict(
        type='FCNHead', in_channels=4, in_index=1, channels=4, num_convs=1, num_classes=NUM_CLASSES,
        norm_cfg=dict(type='BN'), loss_decode=dict(type='CrossEntropyLoss'),
    )  # fmt: skip
    backbone = dict(
        type='UNet', base_channels=4, num_stages=2, strides=(1, 1), enc_num_convs=(1, 1), dec_num_convs=(1,),
        downsamples=(True,), enc_dilations=(1, 1), dec_dilations=(1,), norm_cfg=dict(type='BN'),
    )  # fmt: skip
    loader = dict(batch_size=BATCH, num_workers=0, sampler=dict(type='InfiniteSampler', shuffle=False), dataset=dataset)
    runner = Runner(
        model=dict(
            type='EncoderDecoder',
            data_preprocessor=dict(type='SegDataPreProcessor', size=(SIZE, SIZE)),
            backbone=backbone,
            decode_head=head,
        ),
        work_dir=os.path.join(folder, name),
        train_dataloader=loader,
        train_cfg=dict(type='StepByStep', max_iters=100_000, val_interval=100_000),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.01)),
        default_hooks=dict(logger=dict(type='LoggerHook', interval=50), checkpoint=None),
        custom_hooks=hooks,
        default_scope='mmseg',
        experiment_name=name,
        log_level='ERROR',
        randomness=dict(seed=0),
    )
    runner.train()
    loop: StepByStep = runner.train_loop
    return loop


def count_calls(step: Callable[[], object]) -> int:
    """Return the number of calls of Python functions in a step."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == 'call'

    sys.setprofile(count)
    try:
        step()
    finally:
        sys.setprofile(None)
    return calls
