"""One whole training step on clean labels: the guarded config is mmdet's own, loss by loss, gradient by gradient."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
import torch
from mmcv.transforms import BaseTransform
from mmengine.config import Config, ConfigDict
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmseg.registry import TRANSFORMS
from small_det_runs import LAYOUTS, MAKERS, assigners_of, build, load_stock, make_voc, one_step, shrink, small_config
from small_runs import LOAD, NUM_CLASSES, PACK, Run, tiny_config, train

import mmguard
from mmguard.losses.mmdet import GuardedLoss
from mmguard.transforms import GuardInstanceLabels

TOLERANCE = 1e-5
FAMILIES = ('retinanet', 'faster_rcnn', 'mask_rcnn')


@pytest.mark.slow
@pytest.mark.parametrize('family', FAMILIES)
def test_losses_and_gradients_are_those_of_the_stock_config(
    family: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    root = MAKERS[family](str(tmp_path / 'data'), faults=())
    stock, stock_data = build(small_config(family, root, str(tmp_path), stock=True))
    guarded, guarded_data = build(small_config(family, root, str(tmp_path)))
    guarded.load_state_dict(stock.state_dict())
    batch = range(4)
    theirs = one_step(stock, [stock_data[number] for number in batch])
    ours = one_step(guarded, [guarded_data[number] for number in batch])
    assert all(torch.isfinite(value).all() for part in theirs for value in part.values())
    # The step trains: all losses, and all parameters outside of the frozen stages.
    assert all(value > 0 for name, value in theirs.losses.items() if 'loss_cls' in name)
    assert theirs.gradients.keys() == {name for name, p in stock.named_parameters() if p.requires_grad}
    distance = ours.distance(theirs)
    record_property('distance', distance)
    print(f'{family}: largest relative distance {distance:.1e}')
    assert distance <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize('family', FAMILIES)
def test_the_comparison_sees_another_batch_and_another_random_state(family: str, tmp_path: Path) -> None:
    """What the test above would say of steps that are not the same."""
    root = MAKERS[family](str(tmp_path / 'data'), faults=())
    model, data = build(small_config(family, root, str(tmp_path), stock=True))
    samples = [data[number] for number in range(4)]
    step = one_step(model, samples)
    assert step.distance(one_step(model, samples)) == 0
    assert step.distance(one_step(model, samples[:3])) > 100 * TOLERANCE
    if family != 'retinanet':  # it samples nothing
        assert step.distance(one_step(model, samples, seed=1)) > 100 * TOLERANCE


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


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')
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


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')
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
