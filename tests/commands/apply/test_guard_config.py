"""guard_config makes of a stock config what we ship by hand, changes nothing twice, and loses nothing."""

from __future__ import annotations

import copy
import os.path as osp
import warnings
from typing import Any, Dict

import pytest
from mmengine.config import Config

import mmguard
from mmguard.commands.apply.guarded import build_tree
from mmguard.commands.apply.output import remove_scopes
from mmguard.compat.stack import find_config_file
from mmguard.config.classes import get_type_name
from mmguard.config.guards import guard_tree

pytest.importorskip('mmseg')

ROOT = osp.join(osp.dirname(__file__), '..', '..', '..', 'configs')

#: What we ship by hand -> the stock config that it guards, and what else it changes in that.
SHIPPED = {
    'pidnet/pidnet-s_cityscapes_guarded.py': ('mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py', ''),
    'mask2former/mask2former_r50_cityscapes_guarded.py': (
        'mmseg::mask2former/mask2former_r50_8xb2-90k_cityscapes-512x1024.py',
        '',
    ),
    'deeplabv3plus/deeplabv3plus_r50-d8_ohem_cityscapes_guarded.py': (
        'mmseg::deeplabv3plus/deeplabv3plus_r50-d8_4xb2-40k_cityscapes-512x1024.py',
        'model = dict(decode_head=dict(sampler=dict(type="OHEMPixelSampler", thresh=0.7, min_kept=100000)))',
    ),
    'dino/dino-4scale_r50_coco_guarded.py': ('mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py', ''),
    'faster_rcnn/faster-rcnn_r50_fpn_voc_guarded.py': ('mmdet::pascal_voc/faster-rcnn_r50_fpn_1x_voc0712.py', ''),
    'mask_rcnn/mask-rcnn_r50_fpn_coco_guarded.py': ('mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py', ''),
    'mask2former/mask2former_r50_coco-instance_guarded.py': (
        'mmdet::mask2former/mask2former_r50_8xb2-lsj-50e_coco.py',
        '',
    ),
    'panoptic_fpn/panoptic-fpn_r50_coco_guarded.py': ('mmdet::panoptic_fpn/panoptic-fpn_r50_fpn_1x_coco.py', ''),
    'retinanet/retinanet_r50_fpn_openimages264_guarded.py': (
        'mmdet::openimages/retinanet_r50_fpn_32xb2-1x_openimages.py',
        'model = dict(bbox_head=dict(num_classes=264))',
    ),
}
#: What a run reads: everything else in a config are variables of its text.
READ = ('model', 'custom_hooks', 'custom_imports', 'train_dataloader', 'val_dataloader', 'test_dataloader')


def stock(base: str, more: str = '') -> Config:
    return Config.fromstring(f'_base_ = [{find_config_file(base)!r}]\n{more}\n', '.py')


@pytest.mark.parametrize('name', SHIPPED)
def test_it_makes_what_we_ship_by_hand(name: str) -> None:
    ours, shipped = (
        remove_scopes({key: config.get(key) for key in READ})
        for config in (mmguard.guard_config(stock(*SHIPPED[name])), Config.fromfile(osp.join(ROOT, name)))
    )
    if 'pidnet' in name:  # written out by hand, with the defaults of both sides
        spelled = shipped['model']['decode_head']['loss_decode'][0]
        assert spelled.pop('ignore_index') == 255
        assert ours['model']['decode_head']['loss_decode'][0].pop('use_sigmoid') is False
    assert ours == shipped


def test_it_makes_the_new_style_config_that_we_ship() -> None:
    ours = mmguard.guard_config(Config.fromfile(osp.join(ROOT, 'new_style/fcn_r50_cityscapes.py')))
    shipped = Config.fromfile(osp.join(ROOT, 'new_style/fcn_r50_cityscapes_guarded.py'))
    for key in READ:
        assert ours.get(key) == shipped.get(key)
    assert ours.model.decode_head.loss_decode.type is mmguard.GuardedCrossEntropyLoss
    assert ours.train_dataloader.dataset.pipeline[-1]['type'] is mmguard.GuardSegLabels


@pytest.mark.parametrize('name', SHIPPED)
def test_twice_is_once_and_the_argument_stays(name: str) -> None:
    config = stock(*SHIPPED[name])
    before = copy.deepcopy(config.to_dict())
    once = mmguard.guard_config(config)
    assert config.to_dict() == before
    assert once.to_dict() != before
    assert mmguard.guard_config(once).to_dict() == once.to_dict()
    assert guard_tree(build_tree(once)).changed == []


def test_imports_and_hooks_that_are_there_are_kept() -> None:
    config = Config(
        small(custom_imports=dict(imports='mine', allow_failed_imports=True), custom_hooks=[dict(type='M')])
    )
    guarded = mmguard.guard_config(config)
    assert guarded.custom_imports == dict(imports=['mine', 'mmguard'], allow_failed_imports=True)
    assert [hook['type'] for hook in guarded.custom_hooks] == ['M', 'LabelGuardHook']


def small(**more: Any) -> Dict[str, Any]:
    """A segmentation config of one head."""
    head = dict(type='FCNHead', num_classes=7, loss_decode=dict(type='CrossEntropyLoss'))
    pipeline = [dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
    return dict(
        default_scope='mmseg',
        model=dict(type='EncoderDecoder', decode_head=head),
        train_dataloader=dict(dataset=dict(pipeline=pipeline)),
        **more,
    )


def names(steps: Any) -> Any:
    return [get_type_name(step['type']) for step in steps]


def test_guards_that_are_there_stay_as_they_are() -> None:
    config = Config(small())
    config.train_dataloader.dataset.pipeline.append(dict(type='GuardSegLabels', num_classes=7, on_invalid='clip'))
    config.model.decode_head.loss_decode = dict(type='GuardedCrossEntropyLoss', on_invalid='raise')
    guarded = mmguard.guard_config(config)
    assert guarded.model == config.model
    assert guarded.train_dataloader == config.train_dataloader


def test_a_transform_behind_generate_edge_gets_a_guard_behind_the_packing_too() -> None:
    steps = ('LoadAnnotations', 'GenerateEdge', 'RandomFlip', 'PackSegInputs')
    config = Config(small())
    config.train_dataloader.dataset.pipeline = [dict(type=name) for name in steps]
    pipeline = mmguard.guard_config(config).train_dataloader.dataset.pipeline
    assert names(pipeline) == [steps[0], 'GuardSegLabels', *steps[1:], 'GuardSegLabels']
    assert pipeline[-2]['meta_keys'][-1] == 'label_guard'
    assert 'seg_map_path' in pipeline[-2]['meta_keys']


def test_meta_keys_that_are_written_are_kept() -> None:
    config = Config(small())
    pack = dict(type='PackSegInputs', meta_keys=['img_path'])
    config.train_dataloader.dataset.pipeline = [dict(type='GenerateEdge'), pack]
    pipeline = mmguard.guard_config(config).train_dataloader.dataset.pipeline
    assert names(pipeline) == ['GuardSegLabels', 'GenerateEdge', 'PackSegInputs']
    assert pipeline[-1]['meta_keys'] == ['img_path', 'label_guard']


def test_semi_supervised_branches_are_guarded_each() -> None:
    guarded = mmguard.guard_config(
        stock('mmdet::soft_teacher/soft-teacher_faster-rcnn_r50-caffe_fpn_180k_semi-0.1-coco.py')
    )
    sup, unsup = (dataset.pipeline[-1] for dataset in guarded.train_dataloader.dataset.datasets)
    assert names(sup['sup'])[-2:] == ['PackDetInputs', 'GuardInstanceLabels']
    for branch in ('unsup_teacher', 'unsup_student'):
        assert names(unsup[branch])[-2:] == ['PackDetInputs', 'GuardInstanceLabels']
    assert guarded.model.detector.roi_head.bbox_head.loss_cls.type == 'GuardedCrossEntropyLoss'
    assert guarded.model.detector.train_cfg.rcnn.assigner.ignore_iof_thr == 0.5


def test_mixed_images_are_guarded_behind_the_mixing() -> None:
    guarded = mmguard.guard_config(stock('mmdet::yolox/yolox_s_8xb8-300e_coco.py'))
    mixing = guarded.train_dataloader.dataset
    assert names(mixing.pipeline)[-1] == 'GuardInstanceLabels'
    assert 'GuardInstanceLabels' not in names(mixing.dataset.pipeline)


def test_crowds_are_left_out_in_the_training_alone() -> None:
    config = stock('mmdet::retinanet/retinanet_r50_fpn_1x_coco.py')
    switched = dict(type='PipelineSwitchHook', switch_epoch=1, switch_pipeline=config.train_pipeline)
    config.custom_hooks = [switched]
    guarded = mmguard.guard_config(config)
    trains = [guarded.train_dataloader.dataset.pipeline, guarded.custom_hooks[0].switch_pipeline]
    evaluates = [guarded.val_dataloader.dataset.pipeline, guarded.test_dataloader.dataset.pipeline]
    assert [pipeline[-1].get('keep_ignored', True) for pipeline in [*trains, *evaluates]] == [False, False, True, True]


def test_test_time_augmentation_has_the_guard_in_a_step_of_its_own() -> None:
    config = stock('mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py')
    (_, before), (_, after) = config.tta_pipeline, mmguard.guard_config(config).tta_pipeline
    assert after.transforms == [*before.transforms, [dict(type='GuardSegLabels', num_classes=19)]]


def test_losses_that_cannot_be_guarded_are_left_and_said() -> None:
    config = small()
    config['model']['decode_head']['loss_decode'] = [
        dict(type='HuasdorffDisstanceLoss'),
        dict(type='LovaszLoss', reduction='none'),
        dict(type='NobodyKnowsLoss'),
    ]
    guarded = guard_tree(config)
    losses = guarded.tree['model']['decode_head']['loss_decode']
    assert [loss['type'] for loss in losses] == ['HuasdorffDisstanceLoss', 'GuardedLovaszLoss', 'NobodyKnowsLoss']
    hausdorff, unknown = guarded.left
    assert hausdorff.startswith('model.decode_head.loss_decode[0]: HuasdorffDisstanceLoss')
    assert 'NobodyKnowsLoss' in unknown


@pytest.mark.parametrize('name', ['ssd/ssd300_coco.py', 'free_anchor/freeanchor_r50_fpn_1x_coco.py'])
def test_heads_without_a_loss_object_are_named(name: str) -> None:
    guarded = guard_tree(build_tree(stock(f'mmdet::{name}')))
    (line,) = guarded.left
    assert line.startswith('model.bbox_head: ')
    assert 'GuardInstanceLabels' in line
    assert 'loss_cls' not in guarded.tree['model']['bbox_head']
    assert sum('GuardInstanceLabels' in change for change in guarded.changed) >= 3


def test_losses_left_to_the_defaults_of_a_head_are_spelled_and_guarded() -> None:
    config = small()
    del config['model']['decode_head']['loss_decode']
    loss = guard_tree(config).tree['model']['decode_head']['loss_decode']
    assert loss == dict(type='GuardedCrossEntropyLoss', use_sigmoid=False, loss_weight=1.0)


def test_heads_that_disagree_are_reported() -> None:
    config = small()
    first = config['model']['decode_head']
    config['model']['decode_head'] = [first, dict(first, num_classes=5)]
    guarded = guard_tree(config)
    assert guarded.tree['train_dataloader']['dataset']['pipeline'][-1]['num_classes'] == 5
    places = 'model.decode_head[0].num_classes: 7, model.decode_head[1].num_classes: 5'
    assert any(places in line for line in guarded.left)


def test_what_is_left_is_said_and_a_config_that_is_guarded_throughout_brings_no_word() -> None:
    unknown = dict(
        default_scope='mmpose',
        model=dict(type='TopdownPoseEstimator'),
        train_dataloader=dict(dataset=dict(type='CocoDataset', pipeline=[dict(type='mmdet.PackDetInputs')])),
    )
    with pytest.warns(UserWarning, match="guard_config(.|\n)*'mmpose'(.|\n)*train_dataloader\\.dataset\\.pipeline: "):
        mmguard.guard_config(Config(unknown))
    with warnings.catch_warnings():
        warnings.filterwarnings('error', message='mmguard')
        mmguard.guard_config(stock('mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'))


def test_what_is_no_config_is_refused() -> None:
    with pytest.raises(TypeError, match='dict'):
        mmguard.guard_config(small())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ('name', 'pack', 'head'),
    [
        ('reid/reid_r50_8xb32-6e_mot17train80_test-mot17val20.py', 'PackReIDInputs', 'LinearReIDHead'),
        ('qdtrack/qdtrack_faster-rcnn_r50_fpn_8xb2-4e_mot17halftrain_test-mot17halfval.py', 'PackTrackInputs', ''),
    ],
)
def test_videos_and_identities_are_left_and_named(name: str, pack: str, head: str) -> None:
    tree = build_tree(Config.fromfile(find_config_file(f'mmdet::{name}')))
    guarded = guard_tree(tree)
    assert guarded.tree['train_dataloader'] == tree['train_dataloader']
    assert any('train_dataloader' in line and pack in line for line in guarded.left)
    if head:
        assert guarded.tree['model'] == tree['model']
        assert any(line.startswith('model.head.loss_cls') and head in line for line in guarded.left)
    assert guard_tree(guarded.tree).changed == []
