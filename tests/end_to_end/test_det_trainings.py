"""Crowds and ignored instances in trainings of mmdet, and images of a teacher without labels."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, Dict, List

import pytest
from mmengine.config import Config, ConfigDict
from small_det_data import MAKERS, make_voc
from small_det_runs import LAYOUTS, assigners_of, build, load_stock, shrink, small_config
from small_runs import Run, train

import mmguard
from mmguard.transforms import GuardInstanceLabels

#: Their assigners take no notice of ignored instances: ignore_iof_thr=-1.
WITH_CROWDS = ('retinanet', 'mask_rcnn')
#: The image of COCO's layout with a valid crowd, and one with an instance of an invalid label.
CROWD, INVALID = 6, 1


def stock(family: str, root: str, work_dir: Path, threshold: float = -1) -> Config:
    """mmdet's own config on COCO's layout; with other thresholds in all assigners, where they are given."""
    config = load_stock(family)
    if family == 'retinanet':  # OpenImages, whose annotations know no crowds
        coco = load_stock('mask_rcnn')
        config.train_dataloader, config.train_cfg = coco.train_dataloader, coco.train_cfg
        config.train_dataloader.dataset.pipeline[1].with_mask = False
        config.model.bbox_head.num_classes = LAYOUTS['mask_rcnn'].num_classes
        config.update(val_dataloader=coco.val_dataloader, val_evaluator=coco.val_evaluator, val_cfg=coco.val_cfg)
        config.update(test_dataloader=coco.test_dataloader, test_evaluator=coco.test_evaluator)
        config.optim_wrapper = coco.optim_wrapper
    for assigner in assigners_of(config):
        assigner.ignore_iof_thr = threshold
    folder = str(work_dir / uuid.uuid4().hex)  # runs of one second would share their log
    return shrink(config, root, folder, data_classes=LAYOUTS['mask_rcnn'].data_classes)


def losses(config: Config) -> List[Dict[str, float]]:
    lines = [line for line in train(config).scalars if 'loss' in line]
    return [{name: value for name, value in line.items() if name.startswith('loss')} for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize('family', WITH_CROWDS)
def test_clean_data_with_crowds_train_as_with_stock(family: str, tmp_path: Path) -> None:
    root = MAKERS['mask_rcnn'](str(tmp_path / 'data'), faults=())
    theirs = losses(stock(family, root, tmp_path))
    assert len(theirs) == 4
    ours = losses(mmguard.guard_config(stock(family, root, tmp_path)))
    # Crowds are in the last batch.
    assert ours == [pytest.approx(line, rel=1e-6) for line in theirs]
    heeded = losses(stock(family, root, tmp_path, threshold=0.5))
    assert len(heeded) == 4
    assert heeded[:3] == theirs[:3]
    assert heeded[3] != pytest.approx(theirs[3], rel=1e-5)
    # Where stock heeds crowds, so does the guarded config.
    ours = losses(mmguard.guard_config(stock(family, root, tmp_path, threshold=0.5)))
    assert ours == [pytest.approx(line, rel=1e-6) for line in heeded]


@pytest.mark.slow
@pytest.mark.parametrize('family', WITH_CROWDS)
@pytest.mark.parametrize('threshold', [-1, 0.5])
def test_the_region_of_an_invalid_instance_is_ignored(family: str, threshold: float, tmp_path: Path) -> None:
    root = MAKERS['mask_rcnn'](str(tmp_path / 'data'))
    config = mmguard.guard_config(stock(family, root, tmp_path, threshold))
    assert [assigner.ignore_iof_thr for assigner in assigners_of(config)] == [0.5] * len(assigners_of(config))
    _, dataset = build(config)
    ignored = [dataset[number]['data_samples'].ignored_instances for number in (INVALID, CROWD)]
    assert [len(one) for one in ignored] == [1, int(threshold > 0)]
    assert ignored[0].labels.tolist() == [80]


@pytest.mark.slow
def test_where_some_assigners_heed_crowds_all_stay_as_they_are(tmp_path: Path) -> None:
    """Neither way of training crowds would be that of stock."""
    config = stock('mask_rcnn', MAKERS['mask_rcnn'](str(tmp_path / 'data')), tmp_path)
    config.model.train_cfg.rcnn.assigner.ignore_iof_thr = 0.5
    with pytest.warns(UserWarning, match=r'model\.train_cfg\.rpn\.assigner\.ignore_iof_thr=-1'):
        guarded = mmguard.guard_config(config)
    assert [assigner.ignore_iof_thr for assigner in assigners_of(guarded)] == [-1, 0.5]
    (guard,) = [step for step in guarded.train_dataloader.dataset.pipeline if step['type'] == 'GuardInstanceLabels']
    assert guard.get('keep_ignored', True)


@pytest.mark.slow
def test_a_second_guard_keeps_what_the_first_one_moved(tmp_path: Path) -> None:
    _, dataset = build(stock('mask_rcnn', MAKERS['mask_rcnn'](str(tmp_path / 'data')), tmp_path))
    guard: Any = GuardInstanceLabels(80, keep_ignored=False)
    for number, kept in ((INVALID, 1), (CROWD, 0)):
        sample = guard(guard(dataset[number]))['data_samples']
        assert len(sample.ignored_instances) == kept


@pytest.mark.slow
def test_before_the_pack_transform_crowds_leave_every_field(tmp_path: Path) -> None:
    config = stock('mask_rcnn', MAKERS['mask_rcnn'](str(tmp_path / 'data')), tmp_path)
    config.train_dataloader.dataset.pipeline[-1:] = [
        dict(type='GuardInstanceLabels', num_classes=80, keep_ignored=False),
        config.train_dataloader.dataset.pipeline[-1],
    ]
    _, dataset = build(config)
    found = {number: dataset[number]['data_samples'] for number in (INVALID, CROWD)}
    assert {n: (len(s.gt_instances), len(s.ignored_instances)) for n, s in found.items()} == {1: (1, 1), 6: (1, 0)}
    assert all(len(sample.gt_instances.masks) == 1 for sample in found.values())


META_KEYS = ('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor', 'flip', 'flip_direction')
BRANCHES = ['sup', 'unsup_teacher', 'unsup_student']
ITERATIONS = 4


@pytest.mark.slow
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
