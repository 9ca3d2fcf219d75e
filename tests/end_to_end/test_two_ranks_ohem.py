"""PIDNet on two ranks, one of which sees nothing but ignored pixels (F6): guarded losses, or the hook alone."""

from __future__ import annotations

import os.path as osp
from glob import glob

import numpy as np
import pytest
from PIL import Image
from ranks import run_ranks
from small_runs import make_cityscapes

from mmguard.compat.stack import config_file

pytestmark = pytest.mark.slow

CONFIG = osp.join(osp.dirname(__file__), '..', '..', 'configs', 'pidnet', 'pidnet-s_cityscapes_guarded.py')
STOCK = config_file('mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py')

CHILD = """
from mmengine.config import Config
from small_runs import Run, shrink
config = distributed(shrink(Config.fromfile(sys.argv[3]), sys.argv[1], sys.argv[2], iters=4))
config.update(val_dataloader=None, val_cfg=None, val_evaluator=None)
if not sys.argv[3].endswith('_guarded.py'):
    config.model.decode_head.loss_decode[0].class_weight = None  # or it dies of F1 before F6 shows
config.custom_hooks = [dict(type=name) for name in sys.argv[4:]]
run = Run(config).train()
say_parameters(run.runner.model)
leave()
"""


@pytest.fixture(scope='module')
def half_ignored(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Images are dealt out in turns: every one of rank 1 is ignored throughout."""
    root = make_cityscapes(str(tmp_path_factory.mktemp('half_ignored')), planted={})
    for path in sorted(glob(osp.join(root, 'gtFine', 'train', '*', '*.png')))[1::2]:
        with Image.open(path) as image:
            label = np.array(image)
        Image.fromarray(np.full_like(label, 255)).save(path)
    return root


def test_stock_dies_of_the_constant_loss(half_ignored: str, work_dir: str) -> None:
    ranks = run_ranks(CHILD, half_ignored, work_dir, STOCK)
    assert all(rank.returncode for rank in ranks)


def test_guarded_trains_on_and_the_ranks_stay_equal(half_ignored: str, work_dir: str) -> None:
    ranks = run_ranks(CHILD, half_ignored, work_dir, CONFIG, 'LabelGuardHook')
    for rank in ranks:
        assert rank.returncode == 0, rank.output[-3000:]
    assert ranks[0].said('PARAMETERS') == ranks[1].said('PARAMETERS') != []


def test_stock_losses_train_on_with_the_hook_alone(half_ignored: str, work_dir: str) -> None:
    ranks = run_ranks(CHILD, half_ignored, work_dir, STOCK, 'RankGuardHook')
    for rank in ranks:
        assert rank.returncode == 0, rank.output[-3000:]
    assert ranks[0].said('PARAMETERS') == ranks[1].said('PARAMETERS') != []
