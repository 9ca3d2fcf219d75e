"""Six people in four tiny pictures each, and a model of mmdet's re-identification whose head knows four of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Dict, List

import mmdet.datasets
import mmdet.models  # noqa: F401
import numpy as np
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from PIL import Image
from small_rotated import for_one_epoch

from mmguard.compat.stack import config_file

NAME = 'mmdet::reid/reid_r50_8xb32-6e_mot17train80_test-mot17val20.py'
PEOPLE, IMAGES_EACH, HEAD_CLASSES = 6, 4, 4
#: People in a sample, images of each.
DRAWN = (3, 2)
ITERATIONS = 6


@HOOKS.register_module()
class DrawnFiles(Hook):
    """Remembers the files of each iteration: which are drawn is left to chance."""

    drawn: ClassVar[List[str]] = []

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        for sample in data_batch['data_samples']:
            self.drawn.extend(sample.img_path)


def make_people(root: Path) -> Path:
    """``file identity`` per line, as ReIDDataset reads it."""
    lines = []
    for number in range(PEOPLE * IMAGES_EACH):
        name = f'person{number // IMAGES_EACH}/{number:03}.png'
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (64, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / name)
        lines.append(f'{name} {number // IMAGES_EACH}\n')
    (root / 'train.txt').write_text(''.join(lines), encoding='utf-8')
    return root


def identities(root: Path) -> Dict[str, int]:
    """File -> identity, read from the annotations."""
    pairs = (line.split() for line in (root / 'train.txt').read_text(encoding='utf-8').splitlines())
    return {name: int(identity) for name, identity in pairs}


def reid_config(root: Path, work_dir: Path, head_classes: int = HEAD_CLASSES) -> Config:
    """For a few iterations on the CPU."""
    config = Config.fromfile(config_file(NAME))
    config.model.init_cfg = None
    config.model.backbone.update(depth=18, base_channels=8, stem_channels=8)
    config.model.neck.update(kernel_size=(2, 1))
    config.model.head.update(in_channels=64, fc_channels=16, out_channels=8, num_classes=head_classes)
    dataset = config.train_dataloader.dataset
    dataset.update(data_root=str(root), ann_file='train.txt', data_prefix=dict(img_path=''))
    dataset.triplet_sampler = dict(num_ids=DRAWN[0], ins_per_id=DRAWN[1])
    dataset.pipeline[0].transforms[1].scale = (32, 64)
    config.train_dataloader.update(num_workers=0, persistent_workers=False)
    config = for_one_epoch(config, str(work_dir))
    config.train_cfg = dict(type='IterBasedTrainLoop', max_iters=ITERATIONS)
    config.randomness = dict(seed=0)
    config.custom_hooks = [dict(type='DrawnFiles')]
    return config
