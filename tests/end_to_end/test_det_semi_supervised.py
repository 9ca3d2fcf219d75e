"""A teacher and a student over images without labels: what has none by design is no empty image."""

from __future__ import annotations

from pathlib import Path

import pytest
from mmengine.config import ConfigDict
from small_det_runs import make_voc, small_config
from small_runs import Run

pytestmark = pytest.mark.slow

META_KEYS = ('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor', 'flip', 'flip_direction')
BRANCHES = ['sup', 'unsup_teacher', 'unsup_student']
ITERATIONS = 4


def test_unlabelled_images_of_soft_teacher_are_not_counted(tmp_path: Path) -> None:
    config = small_config('faster_rcnn', make_voc(str(tmp_path / 'data'), faults=()), str(tmp_path / 'run'))
    labelled = config.train_dataloader.dataset
    while 'datasets' in labelled or 'dataset' in labelled:
        labelled = labelled.datasets[0] if 'datasets' in labelled else labelled.dataset
    guard = next(step for step in labelled.pipeline if step.type == 'GuardInstanceLabels')
    pack = dict(type='PackDetInputs', meta_keys=(*META_KEYS, 'homography_matrix'))
    flip = dict(type='RandomFlip', prob=1.0)  # it leaves the homography_matrix that SoftTeacher wants
    load = [step for step in labelled.pipeline if step.type.startswith('Load')]
    unlabelled = ConfigDict(labelled.to_dict())
    labelled.pipeline = [*load, flip, dict(type='MultiBranch', branch_field=BRANCHES, sup=[pack, guard])]
    weak = strong = [flip, pack]
    branches = dict(type='MultiBranch', branch_field=BRANCHES, unsup_teacher=weak, unsup_student=strong)
    unlabelled.pipeline = [load[0], dict(type='LoadEmptyAnnotations'), branches]
    config.train_dataloader = dict(
        batch_size=4,
        num_workers=0,
        sampler=dict(type='GroupMultiSourceSampler', batch_size=4, source_ratio=[1, 3]),
        dataset=dict(type='ConcatDataset', datasets=[labelled, unlabelled]),
    )
    config.train_cfg = dict(type='IterBasedTrainLoop', max_iters=ITERATIONS)
    config.val_cfg = config.val_dataloader = config.val_evaluator = None
    config.param_scheduler = []
    config.custom_hooks = [*config.custom_hooks, dict(type='MeanTeacherHook')]
    preprocessor = dict(type='MultiBranchDataPreprocessor', data_preprocessor=config.model.data_preprocessor)
    config.model = dict(
        type='SoftTeacher',
        detector=config.model,
        data_preprocessor=preprocessor,
        semi_train_cfg=dict(
            freeze_teacher=True,
            sup_weight=1.0,
            unsup_weight=4.0,
            pseudo_label_initial_score_thr=0.0,
            rpn_pseudo_thr=0.0,
            cls_pseudo_thr=0.0,
            reg_pseudo_thr=10.0,
            jitter_times=2,
            jitter_scale=0.06,
            min_pseudo_bbox_wh=(1e-2, 1e-2),
        ),
        semi_test_cfg=dict(predict_on='teacher'),
    )
    run = Run(config).train()
    assert run.runner.iter == ITERATIONS
    totals = run.modes['train']['totals']
    assert totals['empty_images'] == 0
    assert 0 < totals['files'] <= ITERATIONS  # one labelled image each
    assert totals['instances']['total'] >= ITERATIONS
    assert run.lines() == []
