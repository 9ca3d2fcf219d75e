"""Configs of MMSegmentation and MMDetection, in Python, YAML and JSON."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Callable, Dict

import numpy as np
from format_cases import BLOCKS, coco
from kinds import Files, Kind
from mutations import DEEP, DIGITS, Random, damaged_tree, odd_value, with_tokens
from pictures import encode, picture

#: What only a config in Python can hold.
_EXPRESSIONS = (
    'object()', 'frozenset()', '{1, 2}', '1j', "b'x'", 'range(3)', '...', 'dict', 'int', 'lambda: 0', "{(1, 2): 3}",
    '{None: 1}', '{1: 2}', '(1, 2)', 'float("nan")', '[*range(3)]', '__import__("torch").zeros(2)',
    '__import__("numpy").zeros((2, 2))', '__import__("sys").exit(0)', '{[]: 1}', 'undefined', '1 / 0',
    "'{{fileDirname}}'", "'{{_base_.x}}'", '1 if', '"\\ud800"',
)  # fmt: skip
#: YAML's ways to say more than data.
_TAGS = (
    '!!python/object/apply:os.mkdir [was_run]', '!!python/name:os.system', '!!python/tuple [1, 2]', '!!binary "%%"',
    '!x 1', '*missing', '&a [*a]', '!!set {a, b}', '2001-02-30', '0x_', '{? [a] : b}', '<<: 1', '!!float x',
)  # fmt: skip
#: Of a config that may be its own base.
_BASES = (
    "'./config.py'", "['./config.py', './config.py']", "'./none.py'", '5', "''", "'.'", "['config.json']",
    "'mmseg::none.py'", "'./config.yaml'", '[[]]', 'None',
)  # fmt: skip


class Raw(str):
    """Stands in a config's text as it is."""


def _pipeline(*steps: Dict[str, Any]) -> list:
    return [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), *steps]


def segmentation() -> Dict[str, Any]:
    """A config with the usual parts, and data that it finds."""
    guard = dict(type='GuardSegLabels', num_classes=3, ignore_index=255)
    train = _pipeline(dict(type='RandomFlip', prob=0.5), dict(type='PackSegInputs'), guard)
    data = dict(
        type='BaseSegDataset',
        metainfo=dict(classes=['road', 'car', 'sky'], palette=[[0, 0, 0], [9, 9, 9], [30, 30, 30]]),
        data_root='data',
        data_prefix=dict(img_path='img', seg_map_path='ann'),
        img_suffix='.jpg',
        seg_map_suffix='.png',
        reduce_zero_label=False,
        pipeline=train,
    )
    loss = dict(type='GuardedCrossEntropyLoss', class_weight=[1.0, 2.0, 0.5], loss_weight=1.0)
    return dict(
        default_scope='mmseg',
        custom_imports=dict(imports=['mmguard'], allow_failed_imports=False),
        custom_hooks=[dict(type='LabelGuardHook', max_skipped_ratio=0.5)],
        num_classes=3,
        model=dict(
            type='EncoderDecoder',
            data_preprocessor=dict(type='SegDataPreProcessor', size=[8, 8], pad_val=0, seg_pad_val=255),
            backbone=dict(type='ResNetV1c', depth=18),
            decode_head=dict(
                type='FCNHead', in_channels=8, channels=4, num_classes=3, ignore_index=255, norm_cfg=dict(type='BN'),
                loss_decode=[loss, dict(type='DiceLoss', loss_weight=0.5)],
            ),
            auxiliary_head=[dict(type='FCNHead', num_classes=3, loss_decode=dict(type='OhemCrossEntropy'))],
        ),
        train_dataloader=dict(
            batch_size=2, num_workers=0, sampler=dict(type='InfiniteSampler', shuffle=True),
            dataset=dict(type='RepeatDataset', times=2, dataset=data),
        ),
        val_dataloader=dict(batch_size=1, dataset=dict(data, pipeline=_pipeline(dict(type='PackSegInputs')))),
        val_evaluator=dict(type='IoUMetric', iou_metrics=['mIoU']),
        optim_wrapper=dict(type='AmpOptimWrapper', optimizer=dict(type='SGD', lr=0.01)),
        env_cfg=dict(cudnn_benchmark=True),
    )  # fmt: skip


def replayable() -> Dict[str, Any]:
    """The same with a model that is built and run in no time."""
    tree = segmentation()
    loss = dict(type='GuardedCrossEntropyLoss', class_weight=[1.0, 2.0, 0.5])
    stages = dict(num_stages=2, strides=(1, 1), enc_num_convs=(1, 1), dec_num_convs=(1,), downsamples=(True,))
    tree['model'] = dict(
        type='EncoderDecoder',
        data_preprocessor=dict(type='SegDataPreProcessor', size=[16, 16], pad_val=0, seg_pad_val=255),
        backbone=dict(type='UNet', base_channels=4, enc_dilations=(1, 1), dec_dilations=(1,), **stages),
        decode_head=dict(
            type='FCNHead', in_channels=4, in_index=1, channels=4, num_convs=1, num_classes=3, loss_decode=loss
        ),
    )  # fmt: skip
    return tree


def detection() -> Dict[str, Any]:
    data = dict(
        type='CocoDataset',
        data_root='data',
        ann_file='train.json',
        data_prefix=dict(img='img/'),
        metainfo=dict(classes=['cat', 'dog', 'bird']),
        filter_cfg=dict(filter_empty_gt=True, min_size=4),
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
            dict(type='PackDetInputs'),
            dict(type='GuardInstanceLabels', num_classes=3),
        ],
    )
    return dict(
        default_scope='mmdet',
        custom_imports=dict(imports=['mmguard']),
        custom_hooks=[dict(type='LabelGuardHook')],
        model=dict(
            type='MaskRCNN',
            data_preprocessor=dict(type='DetDataPreprocessor', pad_mask=True),
            rpn_head=dict(type='RPNHead', loss_cls=dict(type='CrossEntropyLoss', use_sigmoid=True)),
            roi_head=dict(
                type='StandardRoIHead',
                bbox_head=dict(
                    type='Shared2FCBBoxHead', num_classes=3,
                    loss_cls=dict(type='CrossEntropyLoss', use_sigmoid=False, class_weight=[1.0, 1.0, 1.0, 0.1]),
                ),
                mask_head=dict(
                    type='FCNMaskHead', num_classes=3, loss_mask=dict(type='CrossEntropyLoss', use_mask=True)
                ),
            ),
            train_cfg=dict(
                rpn=dict(assigner=dict(type='MaxIoUAssigner', ignore_iof_thr=-1)),
                rcnn=dict(assigner=dict(type='MaxIoUAssigner', ignore_iof_thr=0.5)),
            ),
        ),
        train_dataloader=dict(
            batch_size=2,
            dataset=dict(type='ClassBalancedDataset', oversample_thr=0.1, dataset=data),
        ),
        val_dataloader=dict(dataset=dict(type='ConcatDataset', datasets=[data, dict(data, test_mode=True)])),
        val_evaluator=dict(type='CocoMetric', ann_file='data/train.json', metric=['bbox', 'segm']),
        optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01)),
    )  # fmt: skip


# ---- a tree as a file


def expression(node: Any) -> str:
    """Python's text of a value."""
    if isinstance(node, Raw):
        return str(node)
    if node == DEEP:
        return '[' * 150 + ']' * 150
    if node == DIGITS:
        return '9' * 5000
    if isinstance(node, dict):
        return '{' + ', '.join(f'{key!r}: {expression(inner)}' for key, inner in node.items()) + '}'
    if isinstance(node, list):
        return '[' + ', '.join(map(expression, node)) + ']'
    return f"float('{node}')" if isinstance(node, float) else repr(node)


def python_text(tree: Any) -> bytes:
    """A config's text; keys that are no names cannot stand at its top level."""
    if not isinstance(tree, dict):
        tree = {'model': tree}
    lines = [f'{key} = {expression(value)}' for key, value in tree.items() if str(key).isidentifier()]
    return '\n'.join([*lines, '']).encode('utf-8', 'surrogatepass')


def _python_value(draw: Random) -> Any:
    return Raw(draw.choice(_EXPRESSIONS)) if draw.random() < 0.3 else odd_value(draw)


def _as_python(tree: Callable[[], Dict[str, Any]], draw: Random, content: bytes) -> bytes:
    return python_text(damaged_tree(draw, tree(), _python_value))


def _as_json(tree: Callable[[], Dict[str, Any]], draw: Random, content: bytes) -> bytes:
    text = json.dumps(damaged_tree(draw, tree()), ensure_ascii=draw.random() < 0.7)
    return with_tokens(draw, text).encode('utf-8', 'surrogatepass')


def _as_yaml(tree: Callable[[], Dict[str, Any]], draw: Random, content: bytes) -> bytes:
    """JSON is YAML, too, and what stands in it may be more than data."""
    value = (lambda draw: '@tag@') if draw.random() < 0.4 else odd_value
    text = json.dumps(damaged_tree(draw, tree(), value), ensure_ascii=draw.random() < 0.7)
    text = text.replace('"@tag@"', draw.choice(_TAGS))
    return with_tokens(draw, text).encode('utf-8', 'surrogatepass')


def _own_base(draw: Random, content: bytes) -> bytes:
    """Bases that are not there, or the config itself."""
    base = draw.choice(_BASES)
    return f'_base_ = {base}\n'.encode() + content


def _files(tree: Callable[[], Dict[str, Any]], data: Callable[[], Dict[str, bytes]]) -> Files:
    as_json = json.dumps(tree()).encode()
    files: Files = {
        'config.py': (python_text(tree()), (partial(_as_python, tree), partial(_as_python, tree), _own_base)),
        'config.yaml': (as_json, (partial(_as_yaml, tree),)),
        'config.json': (as_json, (partial(_as_json, tree),)),
    }
    files.update({name: (content, ()) for name, content in data().items()})
    return files


def segmentation_data() -> Dict[str, bytes]:
    return {
        'data/img/a.jpg': picture(15, 12),
        'data/ann/a.png': encode(BLOCKS),
        'data/img/b.jpg': picture(15, 12),
        'data/ann/b.png': encode(np.flipud(BLOCKS)),
    }


def _detection_data() -> Dict[str, bytes]:
    return {'data/train.json': json.dumps(coco()).encode(), 'data/img/1.jpg': picture(), 'data/img/2.jpg': picture()}


_COMMANDS = (
    'check {file} --json {out}/check.json',
    'check {file}',
    'apply {file} -o {out}/guarded.py',
    'apply {file} -o {out}/edited.py --edit safe',
    'scan {file} --json {out}/scan.json',
    'scan {file} --html {out}/page.html',
)

KINDS = (
    Kind(
        'configs_mmseg',
        lambda: _files(segmentation, segmentation_data),
        (*_COMMANDS, 'trace {file} --json {out}/trace.json'),
        needs=('mmseg', 'PIL'),
    ),
    Kind('configs_mmdet', lambda: _files(detection, _detection_data), _COMMANDS, needs=('mmdet', 'PIL')),
)
