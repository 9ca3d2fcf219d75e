"""Kinds of causes in configs, written down with their causes before `check` was run on any of them.

``config`` is what stands in the file; ``near`` looks alike and is in order.
"""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Tuple

from situation import CE, seg_model

SIGMOID = {**CE, 'use_sigmoid': True}
OHEM = dict(type='OHEMPixelSampler', thresh=0.7, min_kept=10000)


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


def only_auxiliary() -> Dict[str, Any]:
    auxiliary = dict(type='FCNHead', num_classes=2, out_channels=1, sampler=OHEM, loss_decode=SIGMOID)
    return {**binary(SIGMOID), 'auxiliary_head': [auxiliary]}


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
    'near: a sampler by loss': ConfigKind(
        'without thresh no softmax is taken', '', seg(binary(SIGMOID, sampler=dict(type='OHEMPixelSampler')))
    ),
    'near: a sampler, two channels': ConfigKind('two columns', '', seg(seg_model(2, dict(sampler=OHEM)))),
}
