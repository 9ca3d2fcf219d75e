"""Kinds of causes in configs, written down with their causes before `check` was run on any of them.

``config`` is what stands in the file; ``near`` looks alike and is in order.
"""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Tuple

from situation import CE, retina, seg_model

SIGMOID = {**CE, 'use_sigmoid': True}
OHEM = dict(type='OHEMPixelSampler', thresh=0.7, min_kept=10000)
BN = dict(type='BN', requires_grad=True)


class ConfigKind(NamedTuple):
    """A config, and what is really wrong with it.

    Attributes:
        truth (str): The cause, in words.
        code (str): Of the first finding; empty: nothing is wrong.
        config (dict): The config.
        says (tuple[str]): What the first finding says.
        never (tuple[str]): Advice that would do harm.
        gone (bool): Whether its first edit leaves nothing behind.
    """

    truth: str
    code: str
    config: Dict[str, Any]
    says: Tuple[str, ...] = ()
    never: Tuple[str, ...] = ()
    gone: bool = True


def seg(model: Dict[str, Any], batch_size: int = 4, **more: Any) -> Dict[str, Any]:
    data = dict(type='BaseSegDataset', metainfo=dict(classes=('background', 'road')), data_prefix={}, pipeline=[])
    loader = dict(batch_size=batch_size, dataset=data, sampler=dict(type='InfiniteSampler', shuffle=True))
    return dict(default_scope='mmseg', model=model, train_dataloader=loader, **more)


def binary(loss: Dict[str, Any], **head: Any) -> Dict[str, Any]:
    return seg_model(2, dict(num_classes=2, out_channels=1, loss_decode=loss, **head))


def based(base: str, **more: Any) -> Dict[str, Any]:
    """A config on top of an official one, which is named as ``mmseg::...``."""
    return dict(_base_=base, **more)


def only_auxiliary() -> Dict[str, Any]:
    auxiliary = dict(type='FCNHead', num_classes=2, out_channels=1, sampler=OHEM, loss_decode=SIGMOID)
    return {**binary(SIGMOID), 'auxiliary_head': [auxiliary]}


def pooled(head: str, norm: Dict[str, Any], **more: Any) -> Dict[str, Any]:
    return seg_model(2, dict(type=head, norm_cfg=norm, **more))


PSPNET = 'mmseg::pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024.py'
RETINANET = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'
SEGFORMER = 'mmseg::segformer/segformer_mit-b0_8xb1-160k_cityscapes-1024x1024.py'

KINDS: Dict[str, ConfigKind] = {
    'sampler, one sigmoid channel (mmsegmentation#2607)': ConfigKind(
        'the softmax of the sampler has one column', 'MG240', seg(binary(SIGMOID, sampler=OHEM)), ('OHEMPixelSampler',)
    ),
    'sampler, one channel, softmax': ConfigKind(
        'the same; with use_sigmoid=True alone it still dies',
        'MG240',
        seg(binary(CE, sampler=OHEM)),
        ('OHEMPixelSampler',),
    ),
    'sampler in one auxiliary head': ConfigKind(
        'the same, one head of two', 'MG240', seg(only_auxiliary()), ('auxiliary_head[0]',)
    ),
    'sampler of another threshold, PSPHead': ConfigKind(
        'the same, 0.95, another head',
        'MG240',
        seg(binary(SIGMOID, type='PSPHead', sampler={**OHEM, 'thresh': 0.95})),
        ('OHEMPixelSampler',),
    ),
    'near: a sampler by loss': ConfigKind(
        'without thresh no softmax is taken', '', seg(binary(SIGMOID, sampler=dict(type='OHEMPixelSampler')))
    ),
    'near: a sampler, two channels': ConfigKind('two columns', '', seg(seg_model(2, dict(sampler=OHEM)))),
    'one image per batch, PSPHead, BN': ConfigKind(
        'BatchNorm gets a single value per channel from the 1x1 pooling',
        'MG241',
        seg(pooled('PSPHead', BN), 1),
        ('batch_size',),
        ('num_classes',),
    ),
    'one image per batch, ASPPHead, BN': ConfigKind(
        'the same: the pooled branch', 'MG241', seg(pooled('ASPPHead', BN), 1), ('batch_size',)
    ),
    'one image per batch, UPerHead, SyncBN': ConfigKind(
        'the same where it runs on one device', 'MG241', seg(pooled('UPerHead', dict(type='SyncBN')), 1), ('SyncBN',)
    ),
    'near: one image per batch, FCNHead, BN': ConfigKind('nothing is pooled to 1x1', '', seg(pooled('FCNHead', BN), 1)),
    'near: one image per batch, PSPHead, GN': ConfigKind(
        'GroupNorm takes one image', '', seg(pooled('PSPHead', dict(type='GN', num_groups=8)), 1)
    ),
    'near: two images per batch, PSPHead, BN': ConfigKind('two values', '', seg(pooled('PSPHead', BN), 2)),
    'lr a hundred times that of the base': ConfigKind(
        'lr=1.0 where the base has 0.01',
        'MG242',
        based(PSPNET, optim_wrapper=dict(optimizer=dict(lr=1.0))),
        ('0.01', '1.0'),
    ),
    'an eighth of the batch at four times the rate': ConfigKind(
        '32 times by the linear rule',
        'MG242',
        based(RETINANET, train_dataloader=dict(batch_size=1), optim_wrapper=dict(optimizer=dict(lr=0.2))),
        ('0.2', 'batch_size'),
    ),
    'AdamW at the rate of SGD': ConfigKind(
        'lr=0.01 where the base has 6e-5 with AdamW',
        'MG242',
        based(SEGFORMER, optim_wrapper=dict(optimizer=dict(lr=0.01))),
        ('6e-05', '0.01'),
    ),
    'lr_mult of 1000 for the head': ConfigKind(
        'custom_keys multiply the rate',
        'MG242',
        based(PSPNET, optim_wrapper=dict(paramwise_cfg=dict(custom_keys={'decode_head': dict(lr_mult=1000.0)}))),
        ('lr_mult',),
    ),
    'near: batch and rate times four': ConfigKind(
        'the linear rule',
        '',
        based(PSPNET, train_dataloader=dict(batch_size=8), optim_wrapper=dict(optimizer=dict(lr=0.04))),
    ),
    'near: another optimizer': ConfigKind(
        'rates of two optimizers do not compare',
        '',
        based(PSPNET, optim_wrapper=dict(optimizer=dict(_delete_=True, type='Adam', lr=0.0001))),
    ),
    'near: half of the batch, the same rate': ConfigKind(
        'a factor of two', '', based(RETINANET, train_dataloader=dict(batch_size=1))
    ),
    'near: heads at ten times the rate': ConfigKind(
        'as DeepLab does',
        '',
        based(PSPNET, optim_wrapper=dict(paramwise_cfg=dict(custom_keys={'head': dict(lr_mult=10.0)}))),
    ),
    'near: a detector of its own': ConfigKind(
        'no base at all, a high rate of SGD',
        '',
        dict(default_scope='mmdet', model=retina(3), optim_wrapper=dict(optimizer=dict(type='SGD', lr=5.0))),
    ),
}
