"""Losses that are changed while training (deferred re-weighting, fading losses): guarded runs follow as stock ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import pytest
from mmcv.transforms import BaseTransform
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmseg.registry import TRANSFORMS
from small_det_runs import LAYOUTS, MAKERS, small_config
from small_runs import LOAD, NUM_CLASSES, PACK, Run, tiny_config, train

from mmguard.losses.mmdet import GuardedLoss

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')]

WEIGHTS = [0.1 + label for label in range(NUM_CLASSES)]


@TRANSFORMS.register_module(force=True)
class _WithoutIgnored(BaseTransform):
    """Stock class weights die of an ignored pixel."""

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        results['gt_seg_map'][results['gt_seg_map'] == 255] = 0
        return results


@HOOKS.register_module(force=True)
class _Schedule(Hook):
    """Set attributes of losses at given iterations: ``{1: {'decode_head.loss_decode.0.loss_weight': 0.5}}``."""

    priority = 'VERY_HIGH'

    def __init__(self, changes: Dict[int, Dict[str, Any]]) -> None:
        self.changes = changes
        self.read: List[Any] = []

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        for path, value in self.changes.get(runner.iter, {}).items():
            owner, _, name = path.rpartition('.')
            loss = runner.model.get_submodule(owner)
            setattr(loss, name, value)
            self.read.append(getattr(loss, name))


def losses_of(run: Run) -> List[Dict[str, float]]:
    return [
        {name: value for name, value in line.items() if 'loss' in name and not name.startswith('guard')}
        for line in run.scalars
    ]


def schedule_of(run: Run) -> List[Any]:
    (hook,) = (hook for hook in run.runner.hooks if isinstance(hook, _Schedule))
    return hook.read


def segmentation(root: str, work_dir: str, losses: List[Dict[str, Any]], changes: Dict[int, Dict[str, Any]]) -> Config:
    config = tiny_config(root, work_dir, iters=5, pipeline=[*LOAD, dict(type='_WithoutIgnored'), PACK])
    config.model.decode_head.loss_decode = losses
    config.custom_hooks = [dict(type='_Schedule', changes=changes)]
    return config


def stock_losses() -> List[Dict[str, Any]]:
    return [
        dict(type='CrossEntropyLoss', loss_name='loss_ce'),
        dict(type='DiceLoss', use_sigmoid=False, loss_name='loss_dice'),
        dict(type='TverskyLoss', loss_name='loss_tversky'),
    ]


def test_a_segmentation_training_follows_its_schedule(clean_cityscapes: str, tmp_path: Path) -> None:
    changes = {
        1: {
            'decode_head.loss_decode.0.class_weight': WEIGHTS,
            'decode_head.loss_decode.1.loss_weight': 0.25,
            'decode_head.loss_decode.2.alpha': 0.75,
            'decode_head.loss_decode.2.loss_weight': 3.0,
        },
        2: {
            'decode_head.loss_decode.0.class_weight': WEIGHTS[::-1],
            'decode_head.loss_decode.0.loss_weight': 0.5,
            'decode_head.loss_decode.1.loss_weight': 0.0,
            'decode_head.loss_decode.2.class_weight': WEIGHTS,
        },
        3: {'decode_head.loss_decode.0.class_weight': None, 'decode_head.loss_decode.2.ignore_index': 3},
    }
    guarded_losses = [
        dict(type='GuardedCrossEntropyLoss', loss_name='loss_ce'),
        *(dict(type='GuardedLoss', loss=loss) for loss in stock_losses()[1:]),
    ]
    stock = train(segmentation(clean_cityscapes, str(tmp_path / 'stock'), stock_losses(), changes))
    guarded = train(segmentation(clean_cityscapes, str(tmp_path / 'guarded'), guarded_losses, changes))
    expected = losses_of(stock)
    assert len(expected) == 5
    for ours, theirs in zip(losses_of(guarded), expected):
        assert ours == pytest.approx(theirs, rel=1e-5)
    assert schedule_of(guarded) == schedule_of(stock)
    # And the schedule makes a difference.
    unchanged = train(segmentation(clean_cityscapes, str(tmp_path / 'unchanged'), stock_losses(), {}))
    assert losses_of(unchanged)[0] == pytest.approx(expected[0])
    for iteration in (1, 2):
        assert losses_of(unchanged)[iteration] != pytest.approx(expected[iteration], rel=1e-2)


def test_a_detection_training_follows_its_schedule(tmp_path: Path) -> None:
    family = 'retinanet'
    layout = LAYOUTS[family]
    root = MAKERS[family](str(tmp_path / 'data'), layout.num_classes, layout.data_classes, faults=())
    changes = {
        1: {'bbox_head.loss_cls.gamma': 0.0, 'bbox_head.loss_cls.alpha': 0.75},
        2: {'bbox_head.loss_cls.loss_weight': 0.1},
        3: {'bbox_head.loss_cls.loss_weight': 0.0},
    }
    runs = []
    for stock in (True, False):
        config = small_config(family, root, str(tmp_path / f'stock {stock}'), stock=stock)
        config.custom_hooks = [*config.get('custom_hooks', []), dict(type='_Schedule', changes=changes)]
        runs.append(train(config))
    stock_run, guarded_run = runs
    assert isinstance(guarded_run.runner.model.bbox_head.loss_cls, GuardedLoss)
    for ours, theirs in zip(losses_of(guarded_run), losses_of(stock_run)):
        assert ours == pytest.approx(theirs, rel=1e-5)
    assert schedule_of(guarded_run) == schedule_of(stock_run)
