"""Stages of a dry run on wrong programs: each is named, and the right one has nothing but what ran."""

from __future__ import annotations

import os

import numpy as np
import pytest
from label_files import write

pytest.importorskip('mmseg')

import torch
from mmengine.registry import init_default_scope

from mmguard.properties.first_batches import FirstBatch, check_shapes, scale_batch
from mmguard.properties.program import Program
from mmguard.properties.suite import PROPERTIES, run_properties
from mmguard.properties.worker import Worker

pytestmark = pytest.mark.slow

COLORS = np.array([[60, 60, 60], [200, 40, 40], [40, 200, 40], [40, 40, 200]])
NAMES = ('ground', 'tree', 'house', 'car')
CROP = (96, 96)


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """Images of squares of each class, and copies whose labels have a value without an output, or no class 1."""
    root, rng = tmp_path_factory.mktemp('maps'), np.random.default_rng(1)
    for number in range(20):
        label = np.zeros((128, 160), np.uint8)
        for value in (1, 2, 3):
            top, left = rng.integers(0, 88), rng.integers(0, 120)
            label[top : top + 40, left : left + 40] = value
        image = (COLORS[label] + rng.integers(-20, 20, (128, 160, 3))).clip(0, 255).astype(np.uint8)
        for name, values in dict(right=label, corner=_mark(label), lacking=_drop(label, number)).items():
            split = 'train' if number < 14 else 'val'
            for kind, array in dict(img=image, ann=values).items():
                write(root / name / kind / split / f'{number}.png', array)
    return root


def _mark(label):
    marked = label.copy()
    marked[:6, :6] = 7
    return marked


def _drop(label, number):
    return np.where(label == 1, 0, label).astype(np.uint8) if number % 2 else label


def build_tree(data):
    """Return a small FCN that trains on the right data."""
    norm = dict(type='BN', requires_grad=True)
    head = dict(
        type='FCNHead', channels=16, num_convs=1, concat_input=False, num_classes=4, norm_cfg=norm, align_corners=False
    )
    loss = dict(type='CrossEntropyLoss')
    load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]

    def loader(split, batch, sampler, pipeline):
        prefix = dict(img_path=f'img/{split}', seg_map_path=f'ann/{split}')
        dataset = dict(
            type='BaseSegDataset',
            data_root=str(data / 'right'),
            metainfo=dict(classes=NAMES, palette=COLORS.tolist()),
            img_suffix='.png',
            seg_map_suffix='.png',
            data_prefix=prefix,
            pipeline=pipeline,
        )
        return dict(batch_size=batch, num_workers=2, persistent_workers=True, sampler=sampler, dataset=dataset)

    train = [
        *load,
        dict(type='RandomResize', scale=(160, 128), ratio_range=(0.8, 1.5), keep_ratio=True),
        dict(type='RandomCrop', crop_size=CROP),
        dict(type='RandomFlip', prob=0.5),
        dict(type='PackSegInputs'),
    ]
    val = [load[0], dict(type='Resize', scale=(160, 128), keep_ratio=True), load[1], dict(type='PackSegInputs')]
    return dict(
        default_scope='mmseg',
        custom_imports=dict(imports=['planted_runs']),
        model=dict(
            type='EncoderDecoder',
            data_preprocessor=dict(
                type='SegDataPreProcessor',
                mean=[123.675, 116.28, 103.53],
                std=[58.395, 57.12, 57.375],
                bgr_to_rgb=True,
                seg_pad_val=255,
                size=CROP,
            ),
            backbone=dict(
                type='ResNetV1c',
                depth=18,
                base_channels=8,
                stem_channels=8,
                strides=(1, 2, 1, 1),
                dilations=(1, 1, 2, 4),
                norm_cfg=norm,
                contract_dilation=True,
            ),
            decode_head=dict(head, in_channels=64, in_index=3, loss_decode=loss),
            auxiliary_head=dict(head, in_channels=32, in_index=2, loss_decode=dict(loss, loss_weight=0.4)),
            train_cfg=dict(),
            test_cfg=dict(mode='whole'),
        ),
        train_dataloader=loader('train', 4, dict(type='InfiniteSampler', shuffle=True), train),
        val_dataloader=loader('val', 1, dict(type='DefaultSampler', shuffle=False), val),
        val_evaluator=dict(type='IoUMetric', iou_metrics=['mIoU']),
        optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01)),
        param_scheduler=[dict(type='PolyLR', power=0.9, begin=0, end=20, by_epoch=False)],
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=20, val_interval=20),
        val_cfg=dict(type='ValLoop'),
        default_hooks=dict(checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=20)),
    )


def dry_run(tree):
    """Return the records of all properties by name."""
    with Worker(forks=True) as worker:
        records = run_properties(worker, tree, list(PROPERTIES), 400)
        return {one.name: one for one in records}


def set_at(path, value):
    """Return a function that sets a value of a config, given as 'key.key.number.key'."""

    def plant(tree, data):
        *way, last = path.split('.')
        node = tree
        for key in way:
            node = node[int(key) if key.isdigit() else key]
        node[last] = str(data / value[1:]) if isinstance(value, str) and value.startswith('/') else value

    return plant


def add_step(place, **step):
    return lambda tree, data: tree['train_dataloader']['dataset']['pipeline'].insert(place, step)


def pad_with_a_class(tree, data):
    tree['model']['data_preprocessor'].update(seg_pad_val=0, size=(160, 160))


def divide_after_loading(tree, data):
    add_step(2, type='DividedBy255')(tree, data)


def leave_sizes(tree, data):
    tree['train_dataloader']['dataset']['pipeline'][2:4] = [
        dict(type='RandomResize', scale=(160, 128), ratio_range=(0.3, 0.8), keep_ratio=True)
    ]
    tree['model']['data_preprocessor']['size'] = (32, 32)


def shadow_auxiliary(tree, data):
    tree['model']['auxiliary_head'] = None
    tree['model']['decode_head']['type'] = 'DetachedScores'


def lack_class(tree, data):
    tree['model']['decode_head']['loss_decode'] = dict(type='NanWithoutClass')
    tree['model']['auxiliary_head'] = None
    tree['train_dataloader']['batch_size'] = 4
    tree['train_dataloader']['dataset']['data_root'] = str(data / 'lacking')


HEAD, TRAIN = 'model.decode_head', 'train_dataloader'
#: Name of a wrong program -> what is planted, the property that names it, its outcome there, part of its subject.
WRONG = {
    'unknown hook': (set_at('custom_hooks', [dict(type='EMAHook', ema_type='NoSuch')]), 'build', 'broken', 'hooks'),
    'optimizer argument': (set_at('optim_wrapper.optimizer.lrr', 1), 'build', 'broken', 'optim_wrapper'),
    'scheduler argument': (set_at('param_scheduler.0.powr', 1), 'build', 'broken', 'param_scheduler'),
    'load_from': (set_at('load_from', 'none.pth'), 'build', 'broken', 'load_from'),
    'sampler': (set_at(f'{TRAIN}.sampler', dict(type='FirstTwo')), 'first-batches', 'broken', 'sampler'),
    'collate': (set_at(f'{TRAIN}.collate_fn', dict(type='collate_pairs')), 'first-batches', 'broken', 'loader'),
    'sizes': (leave_sizes, 'first-batches', 'broken', 'batch 1'),
    'label 7': (set_at(f'{TRAIN}.dataset.data_root', '/corner'), 'first-batches', 'broken', 'labels'),
    'weight 1e-9': (set_at(f'{HEAD}.loss_decode.loss_weight', 1e-9), 'first-batches', 'broken', 'decode.loss_ce'),
    'name of a loss': (set_at(f'{HEAD}.loss_decode.loss_name', 'ce'), 'first-batches', 'broken', 'decode.ce'),
    'detached': (shadow_auxiliary, 'first-batches', 'broken', 'backbone'),
    'padding': (pad_with_a_class, 'first-batches', 'note', 'data_preprocessor'),
    'divided': (divide_after_loading, 'first-batches', 'note', 'data_preprocessor'),
    'ignored objects': (add_step(2, type='IgnoresObjects'), 'first-batches', 'note', 'the pipeline'),
    'other labels': (set_at(f'{TRAIN}.dataset.type', 'ReversedLabels'), 'first-batches', 'note', 'labels'),
    'large objects': (
        set_at('val_dataloader.dataset.pipeline.1.scale', (800, 640)),
        'first-batches',
        'note',
        'val pipeline',
    ),
    'filled': (
        add_step(2, type='RandomRotate', prob=1.0, degree=45, pad_val=0, seg_pad_val=0),
        'first-batches',
        'note',
        'the pipeline',
    ),
    'save_best': (set_at('default_hooks.checkpoint.save_best', 'val/mIoU'), 'first-validation', 'broken', 'save_best'),
    'no stride': (
        set_at('model.test_cfg', dict(mode='slide', crop_size=CROP)),
        'first-validation',
        'broken',
        'validation',
    ),
    'metric': (set_at('val_evaluator.ignore_index', 3), 'full-marks', 'note', 'IoUMetric'),
    'no class 1': (lack_class, 'batch-variants', 'broken', 'label 1'),
    'class 0 ignored': (set_at(f'{HEAD}.ignore_index', 0), 'labels-reach-outputs', 'broken', 'decode_head'),
    'one in four': (add_step(2, type='SometimesFlipsImage'), 'move-together', 'broken', 'SometimesFlipsImage'),
    'those with label 1': (
        add_step(2, type='SometimesFlipsImage', label=1),
        'move-together',
        'broken',
        'SometimesFlipsImage',
    ),
}


def test_the_right_program_has_only_what_ran_and_what_does_not_apply(data):
    found = dry_run(build_tree(data))
    assert {name for name, one in found.items() if one.outcome != 'ran'} == {'class-weights', 'strides-match'}
    results = [result for record in found.values() for result in record.results]
    assert {one.outcome for one in results} == {'ran', 'note'}
    assert all(one.evidence for one in results)
    (steps,) = [one for one in found['first-batches'].results if one.subject == 'steps']
    assert (steps.data['batches'], len(steps.data['losses'])) == (3, 3)
    assert '3 batches of 4 at 96x96, of your 14 samples' in steps.evidence


@pytest.mark.parametrize('name', WRONG)
def test_a_wrong_program_is_named(name, data):
    plant, where, outcome, subject = WRONG[name]
    tree = build_tree(data)
    plant(tree, data)
    found = dry_run(tree)
    named = [one for one in found[where].results if one.outcome == outcome and subject in one.subject]
    assert named, found[where].results
    # One cause, one finding: what fails later for the same reason points to it.
    causes = [one.data['failure'] for record in found.values() for one in record.results if 'failure' in one.data]
    broken = [one.data.get('failure') for record in found.values() for one in record.results if one.outcome == 'broken']
    assert all(broken.count(cause) <= 1 for cause in causes)


@pytest.mark.parametrize(
    ('plant', 'where', 'cause'),
    [
        (add_step(2, type='DropsSample'), 'samples-survive', 'dropped'),
        (set_at('val_dataloader.dataset.pipeline.3.meta_keys', ('img_path',)), 'first-validation', 'meta_keys'),
    ],
)
def test_what_fails_later_for_the_same_cause_is_a_note(plant, where, cause, data):
    tree = build_tree(data)
    plant(tree, data)
    broken = [(one.name, found) for one in dry_run(tree).values() for found in one.results if found.outcome == 'broken']
    assert [(name, found.data['failure']) for name, found in broken] == [(where, cause)]


def test_the_work_dir_and_home_are_temporary(data, tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with Worker() as worker:
        home = worker.ask(os.path.expanduser, '~', seconds=100).value
        assert (home != str(tmp_path), os.path.isdir(home)) == (True, True)
    assert not os.path.exists(home)
    dry_run(build_tree(data))
    assert set(os.listdir(tmp_path)) <= {'.cache'}  # fonts


def test_a_scaled_batch_keeps_boxes_and_every_label():
    from mmengine.structures import InstanceData, PixelData
    from mmseg.structures import SegDataSample

    init_default_scope('mmseg')
    plane = torch.zeros((1, 64, 128), dtype=torch.int64)
    plane[0, 3, 5], plane[0, 40:, 70:] = 9, 2
    sample = SegDataSample(metainfo=dict(img_shape=(64, 128)), gt_sem_seg=PixelData(data=plane))
    sample.gt_instances = InstanceData(bboxes=torch.tensor([[8.0, 16.0, 64.0, 32.0]]), labels=torch.tensor([1]))
    batch = dict(inputs=torch.rand(2, 3, 64, 128), data_samples=[sample, sample])
    scaled = scale_batch(batch, 1, 16, 64)
    (found,) = scaled['data_samples']
    assert tuple(scaled['inputs'].shape) == (1, 3, 16, 64)
    assert set(found.gt_sem_seg.data.unique().tolist()) == {0, 2, 9}
    assert found.gt_instances.bboxes.tolist() == [[4.0, 4.0, 32.0, 8.0]]
    assert found.metainfo['img_shape'] == (16, 64)
    assert tuple(sample.gt_sem_seg.data.shape) == (1, 64, 128)


def test_a_size_that_the_model_refuses_is_named_though_the_batch_is_scaled(data):
    tree = build_tree(data)
    unet = dict(strides=(1, 1), enc_num_convs=(1, 1), dec_num_convs=(1,), downsamples=(True,), enc_dilations=(1, 1))
    tree['model'].update(
        backbone=dict(type='UNet', base_channels=4, num_stages=2, dec_dilations=(1,), **unet), auxiliary_head=None
    )
    tree['model']['decode_head'].update(in_channels=4, in_index=1)
    program, inputs = Program(tree), torch.zeros(1, 3, 64, 64)
    sizes = [(4, 512, 512), (4, 501, 501)]
    found = [check_shapes(program, FirstBatch(dict(inputs=inputs), size, (1, 64, 64))) for size in sizes]
    assert (found[0], [one.outcome for one in found[1]]) == ([], ['broken'])
    assert '501x501' in found[1][0].evidence
