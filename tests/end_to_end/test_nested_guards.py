"""Guards inside MultiBranch and TestTimeAug, through the real Runner: found at the start, and in the record."""

from __future__ import annotations

from typing import Any

import pytest
from mmengine.config import ConfigDict
from small_runs import (
    GUARD,
    LOAD,
    NUM_CLASSES,
    PACK,
    SIZE,
    VAL_IMAGES,
    Run,
    add_loop,
    expected_samples,
    tiny_config,
    train,
)

pytest.importorskip('mmdet')

from mmseg.models import EncoderDecoder
from mmseg.registry import MODELS

pytestmark = pytest.mark.slow

UNGUARDED = dict(type='CrossEntropyLoss')


@MODELS.register_module(force=True)
class _OneBranch(EncoderDecoder):
    """Trains on the branch ``sup`` of a batch."""

    def forward(self, inputs: Any, data_samples: Any = None, mode: str = 'tensor') -> Any:
        return super().forward(inputs['sup'], data_samples['sup'], mode)


def test_a_guard_in_a_branch_is_found(cityscapes: str, work_dir: str) -> None:
    branches = dict(type='mmdet.MultiBranch', branch_field=['sup'], sup=[PACK, GUARD])
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, branches])
    config.model.type = '_OneBranch'
    config.model.decode_head.loss_decode = UNGUARDED
    config.model.data_preprocessor = dict(
        type='mmdet.MultiBranchDataPreprocessor', data_preprocessor=config.model.data_preprocessor
    )
    run = train(config)
    assert [guard['num_classes'] for guard in run.modes['train']['guards']] == [NUM_CLASSES]
    found = [sample for line in run.lines() for sample in line['samples']]
    assert found == [sample for sample in expected_samples(cityscapes, 'gtFine/train') if sample['skipped']]


def test_a_guard_in_test_time_augmentation_is_found_once(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    flips = [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)]
    add_loop(config, 'test', [LOAD[0], dict(type='TestTimeAug', transforms=[flips, [LOAD[1]], [PACK], [GUARD]])])
    config.model = ConfigDict(type='SegTTAModel', module=config.model)
    run = Run(config).test()
    assert [guard['num_classes'] for guard in run.modes['test']['guards']] == [NUM_CLASSES]
    # Each view of an image has its labels; they count once.
    found = [sample for line in run.lines('test') for sample in line['samples']]
    assert found == [sample for sample in expected_samples(cityscapes, 'gtFine/val') if sample['skipped']]
    totals = run.modes['test']['totals']
    assert (totals['pixels']['total'], totals['files']) == (VAL_IMAGES * SIZE**2, VAL_IMAGES)
