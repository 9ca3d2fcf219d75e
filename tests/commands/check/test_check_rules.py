"""Each rule on a config in which it must speak (one change to an official one), its edit, and where it must not."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Tuple

import pytest
from changed_configs import (
    ADE20K,
    CASCADE,
    DINO,
    FASTER_RCNN,
    FASTER_RCNN_CITYSCAPES,
    FASTER_RCNN_VOC,
    INSTANCES,
    LOAD,
    PANOPTIC,
    PANOPTIC_FPN,
    PIDNET,
    PSPNET,
    RETINANET,
    RTMDET,
    SEG_MASK2FORMER,
    STEPS,
    TRAIN,
    changed,
    crops,
    names,
    pack,
    seg_guard,
    train,
)
from mmengine.config import Config
from questions import assert_answers_lead_on
from this_stack import IS_ONEDL

from mmguard.config.changes import REMOVED
from mmguard.config.changes import change_config as edited
from mmguard.findings.engine import diagnose, select_rules
from mmguard.findings.rule import ConfigRule
from mmguard.findings.rules import RULES as ALL_RULES
from mmguard.text import shorten

RULES = [rule for rule in ALL_RULES if issubclass(rule, ConfigRule)]

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')

HEAD, ROI = 'model.decode_head', 'model.roi_head'
META, CLASSES = f'{TRAIN}.metainfo', f'{TRAIN}.metainfo.classes'
SECOND = f'{TRAIN}.dataset.datasets[1].metainfo'
LOSS, WEIGHT, CHANNELS = f'{HEAD}.loss_decode', f'{HEAD}.loss_decode.class_weight', f'{HEAD}.out_channels'
EYE = [1.0] * 19
SAMPLER = dict(type='OHEMPixelSampler', thresh=0.7, min_kept=10000)


class Case(NamedTuple):
    """One change and what it must bring out; the places are those of the change, unless ``paths`` names others."""

    code: str
    base: str
    change: Dict[str, Any]
    paths: Tuple[str, ...] = ()

    @property
    def places(self) -> Tuple[str, ...]:
        return self.paths or tuple(self.change)


GUARD = dict(type='GuardInstanceLabels', num_classes=80)
HOOK = dict(type='LabelGuardHook')
OURS = dict(imports=['mmguard'])
GUARD_DET = [*LOAD, dict(type='PackDetInputs'), GUARD]
GUARDED_DET = {STEPS: GUARD_DET}
AUXILIARY = 'model.auxiliary_head.num_classes'
#: Two ways to write a head that tells 0 from 1.
ONE_CHANNEL = {'model.decode_head.num_classes': 1, AUXILIARY: 1}
ONE_CHANNEL_OF_TWO = {'model.decode_head.num_classes': 2, 'model.decode_head.out_channels': 1, AUXILIARY: 2}
GUARDED_EVERYWHERE = {
    f'{split}_dataloader.dataset.pipeline': [*LOAD, pack(), seg_guard()] for split in ('train', 'val', 'test')
}
SIGMOID = dict(type='CrossEntropyLoss', use_sigmoid=True)
#: A sigmoid over one channel, and a class list of one name.
ONE_NAME = {
    **ONE_CHANNEL,
    LOSS: SIGMOID,
    'model.auxiliary_head.loss_decode': SIGMOID,
    **{
        f'{split}_dataloader.dataset': dict(
            type='BaseSegDataset', metainfo=dict(classes=('roof',)), pipeline=[*LOAD, pack()]
        )
        for split in ('train', 'val', 'test')
    },
}
EVALUATED = tuple(f'{split}_dataloader.dataset (CocoDataset.METAINFO)' for split in ('val', 'test'))
#: Things and stuff in the order of the alphabet.
MIXED = {META: dict(classes=('bus', 'car', 'sea', 'tug'), thing_classes=('bus', 'car', 'tug'), stuff_classes=('sea',))}
SUBMISSION = {f'{split}_evaluator.format_only': True for split in ('val', 'test')}

#: Parts of a body with a left and a right one, and a flip.
SIDES = {META: dict(classes=('hat', 'Left-arm', 'Right-arm', *names(16)))}
FLIP = {**train(dict(type='RandomFlip', prob=0.5), pack()), **SIDES}
LOVASZ = dict(type='LovaszLoss', loss_type='binary', per_image=True)
#: Two of the 19 classes of Cityscapes, and an ignored label that mmseg does not write for the others.
DROPPED = {
    META: dict(classes=('car', 'road')),
    f'{HEAD}.ignore_index': 100,
    'model.auxiliary_head.ignore_index': 100,
    'model.data_preprocessor.seg_pad_val': 100,
}
RESIZE = dict(type='RandomResize', scale=(1024, 512), ratio_range=(0.5, 2.0), keep_ratio=True)
SLIDE = dict(mode='slide', crop_size=(512, 512), stride=(768, 512))

CASES = [
    Case('MG201', PSPNET, {f'{HEAD}.num_classes': 20}),
    Case('MG201', PSPNET, {AUXILIARY: 11}),
    Case('MG201', CASCADE, {f'{ROI}.bbox_head[1].num_classes': 20}),
    Case('MG201', CASCADE, {f'{ROI}.mask_head.num_classes': 20}),
    Case(
        'MG201',
        INSTANCES,
        {f'{split}_dataloader.dataset.metainfo': dict(classes=names(10)) for split in ('train', 'val', 'test')},
        ('model.panoptic_head.num_things_classes', 'model.panoptic_fusion_head.num_things_classes'),
    ),
    Case('MG201', PANOPTIC, {'model.panoptic_fusion_head.num_stuff_classes': 50}),
    Case('MG201', PANOPTIC_FPN, {'model.semantic_head.num_things_classes': 79}),
    Case('MG202', FASTER_RCNN_VOC, {f'{ROI}.bbox_head.num_classes': 21}),
    Case('MG203', FASTER_RCNN_CITYSCAPES, {META: dict(classes=('person',))}),
    Case('MG204', RETINANET, {META: dict(classes=('cat', 'dog')), 'model.bbox_head.num_classes': 2}, EVALUATED),
    Case('MG204', RETINANET, {f'{TRAIN}.type': 'CityscapesDataset', 'model.bbox_head.num_classes': 8}, EVALUATED),
    Case(
        'MG204',
        RETINANET,
        {
            META: dict(classes=('cat', 'dog')),
            'val_dataloader.dataset.metainfo': dict(classes=('dog', 'cat')),
            'test_dataloader.dataset.metainfo': dict(classes=('cat', 'dog')),
            'model.bbox_head.num_classes': 2,
        },
        ('val_dataloader.dataset.metainfo.classes',),
    ),
    Case('MG590', FASTER_RCNN_VOC, {SECOND: dict(classes=('dog', 'unicorn'))}, (f'{SECOND}.classes',)),
    Case('MG590', FASTER_RCNN_VOC, {SECOND: dict(classes=names(3))}, (f'{SECOND}.classes',)),
    Case('MG391', PANOPTIC_FPN, MIXED, (CLASSES,)),
    Case('MG391', PANOPTIC, {META: dict(classes=names(9), thing_classes=names(9)[6:])}, (CLASSES,)),
    Case('MG391', PANOPTIC, {META: dict(classes=('sky', 'cat'), thing_classes=['cat'])}, (CLASSES,)),
    Case('MG205', RETINANET, {META: dict(classes='person')}, (CLASSES,)),
    Case('MG390', RETINANET, {META: dict(CLASSES=('person',))}, (f'{TRAIN}.metainfo.CLASSES',)),
    Case('MG390', RETINANET, {f'{TRAIN}.classes': ('person',)}),
    Case('MG392', RETINANET, {META: dict(classes=(*names(79), 'class3'))}, (CLASSES,)),
    Case('MG207', PIDNET, {f'{HEAD}.loss_decode[0].class_weight': EYE[:-1]}),
    Case('MG207', SEG_MASK2FORMER, {f'{HEAD}.loss_cls.class_weight': EYE}),
    Case('MG207', INSTANCES, {'model.panoptic_head.loss_cls.class_weight': [1.0] * 80}),
    Case('MG207', FASTER_RCNN, {f'{ROI}.bbox_head.loss_cls.class_weight': [1.0] * 80}),
    Case('MG208', PSPNET, {'model.data_preprocessor.seg_pad_val': 0}),
    Case('MG208', PSPNET, {'val_evaluator.ignore_index': 19}),
    Case(
        'MG208',
        PSPNET,
        train(dict(type='RandomRotate', prob=1.0, degree=10, seg_pad_val=99), pack()),
        (f'{STEPS}[2].seg_pad_val',),
    ),
    Case(
        'MG208',
        PSPNET,
        train(dict(type='Pad', size=(9, 9), pad_val=dict(img=0, seg=0)), pack()),
        (f'{STEPS}[2].pad_val.seg',),
    ),
    Case('MG208', PIDNET, {f'{HEAD}.loss_decode[1].ignore_label': 19}),
    Case('MG234', PSPNET, FLIP, (f'{STEPS}[2].swap_seg_labels',)),
    Case('MG235', PSPNET, {LOSS: LOVASZ}, (f'{LOSS}.loss_type',)),
    Case('MG235', PSPNET, {f'{HEAD}.num_classes': 2, LOSS: [SIGMOID, LOVASZ]}, (f'{LOSS}[1].loss_type',)),
    Case('MG380', PSPNET, DROPPED, ('model.decode_head.ignore_index', 'model.auxiliary_head.ignore_index')),
    Case('MG381', PSPNET, {STEPS: [LOAD[0], RESIZE, LOAD[1], pack()]}, (f'{STEPS}[2]',)),
    Case('MG381', RETINANET, {STEPS: [LOAD[0], dict(type='RandomFlip', prob=0.5), LOAD[1]]}, (f'{STEPS}[2]',)),
    Case('MG382', PSPNET, {'model.test_cfg': SLIDE}, ('model.test_cfg.stride',)),
    Case('MG383', PSPNET, train(RESIZE, pack()), (f'{STEPS}[2]',)),
    Case('MG383', PSPNET, train(dict(type='Resize', scale=(2048, 1024), keep_ratio=True), pack()), (f'{STEPS}[2]',)),
    Case('MG233', RETINANET, crops(), (f'{STEPS}[2].allow_negative_crop',)),
    Case('MG233', CASCADE, {**crops(), f'{TRAIN}.filter_cfg.min_size': 8}, (f'{STEPS}[2].allow_negative_crop',)),
    Case(
        'MG233',
        DINO,
        {f'{TRAIN}.filter_cfg.filter_empty_gt': False, f'{STEPS}[3].transforms[1][1].allow_negative_crop': False},
        (f'{STEPS}[3].transforms[1][1].allow_negative_crop',),
    ),
    Case('MG209', PSPNET, {f'{HEAD}.ignore_index': 0}),
    Case('MG210', PSPNET, {f'{STEPS}[1].reduce_zero_label': True}),
    Case(
        'MG210',
        ADE20K,
        {'val_dataloader.dataset.reduce_zero_label': False, 'val_dataloader.dataset.pipeline': [*LOAD, pack()]},
        ('val_dataloader.dataset.reduce_zero_label',),
    ),
    Case(
        'MG211',
        PSPNET,
        {
            'train_dataloader.dataset': dict(
                type='BaseSegDataset',
                metainfo=dict(classes=('_background_', *names(18))),
                reduce_zero_label=True,
                pipeline=[*LOAD, pack()],
            )
        },
        (f'{TRAIN}.reduce_zero_label',),
    ),
    Case('MG232', ADE20K, {META: dict(classes=('sky', 'wall'))}, (f'{TRAIN}.reduce_zero_label',)),
    Case('MG214', PSPNET, {WEIGHT: EYE}),
    Case('MG214', PSPNET, {LOSS: dict(type='CrossEntropyLoss', class_weight=EYE, avg_non_ignore=True)}, (WEIGHT,)),
    Case('MG215', PSPNET, {f'{HEAD}.num_classes': 2, CHANNELS: 1}, (CHANNELS,)),
    Case(
        'MG215',
        PSPNET,
        ONE_NAME,
        ('val_dataloader.dataset.metainfo.classes', 'test_dataloader.dataset.metainfo.classes'),
    ),
    Case('MG214', PSPNET, {WEIGHT: EYE, f'{HEAD}.ignore_index': -1}, (f'{HEAD}.ignore_index',)),
    Case('MG222', RETINANET, GUARDED_DET, ('model.train_cfg.assigner.ignore_iof_thr',)),
    Case('MG222', DINO, GUARDED_DET, ('model.train_cfg.assigner.type',)),
    Case('MG223', PSPNET, train(seg_guard(), pack()), (f'{STEPS}[3].meta_keys',)),
    Case('MG223', PSPNET, train(pack(meta_keys=('img_shape',)), seg_guard()), (f'{STEPS}[2].meta_keys',)),
    Case('MG250', PSPNET, {f'{LOSS}.type': 'GuardCrossEntropyLoss', 'custom_imports': OURS}, (f'{LOSS}.type',)),
    Case('MG251', PSPNET, {STEPS: [seg_guard(), *LOAD, pack()]}, (f'{STEPS}[0]',)),
    Case('MG252', PSPNET, train(pack(), seg_guard()), ('custom_hooks',)),
    Case('MG253', RTMDET, {'custom_hooks': [HOOK]}),
    Case(
        'MG255', PSPNET, {'custom_hooks': [dict(HOOK, guard=True), HOOK], 'custom_imports': OURS}, ('custom_hooks[1]',)
    ),
    Case('MG225', PSPNET, train(pack(), seg_guard(num_classes=150)), (f'{STEPS}[3].num_classes',)),
    Case(
        'MG240',
        PSPNET,
        {f'{HEAD}.num_classes': 2, CHANNELS: 1, f'{HEAD}.sampler': SAMPLER, f'{HEAD}.loss_decode.use_sigmoid': True},
        (f'{HEAD}.sampler.thresh',),
    ),
    Case('MG227', RETINANET, {'data': dict(train=dict(type='CocoDataset', classes=('person',)))}, ('data.train',)),
    Case('MG229', RETINANET, {'val_dataloader.dataset.ann_file': 'mine/val.json'}, ('val_evaluator.ann_file',)),
    Case(
        'MG230',
        PSPNET,
        {STEPS: [*LOAD, pack(), seg_guard()], 'test_evaluator': None},
        ('val_dataloader.dataset.pipeline',),
    ),
    Case(
        'MG230',
        PSPNET,
        {f'{LOSS}.type': 'GuardedCrossEntropyLoss'},
        ('val_dataloader.dataset.pipeline', 'test_dataloader.dataset.pipeline'),
    ),
    Case(
        'MG230',
        FASTER_RCNN_VOC,
        {f'{TRAIN}.dataset.datasets[0].pipeline': [*LOAD, dict(type='PackDetInputs'), GUARD]},
        ('val_dataloader.dataset.pipeline', 'test_dataloader.dataset.pipeline'),
    ),
    Case('MG231', PSPNET, {f'{HEAD}.num_classes': '19'}),
    Case('MG231', RETINANET, {'model.bbox_head.num_classes': 80.0}),
]

#: What is right, or no label's affair, and looks like the mistake.
SILENT = [
    ('MG201', PSPNET, {'model.auxiliary_head': dict(type='STDCHead', num_classes=2)}),
    ('MG201', CASCADE, {f'{ROI}.mask_head.num_classes': 1, f'{ROI}.mask_head.class_agnostic': True}),
    ('MG201', FASTER_RCNN, {'model.rpn_head.num_classes': 1}),
    (
        'MG201',
        PANOPTIC_FPN,
        {
            **MIXED,
            **{f'{ROI}.{head}.num_classes': 4 for head in ('bbox_head', 'mask_head')},
            **{
                f'model.{head}.num_{kind}_classes': number
                for kind, number in (('things', 3), ('stuff', 1))
                for head in ('semantic_head', 'panoptic_fusion_head')
            },
        },
    ),
    ('MG391', PANOPTIC, {META: dict(classes=names(9), thing_classes=names(6))}),
    ('MG391', PANOPTIC, {META: dict(classes=names(9), thing_classes=names(6)[::-1])}),
    ('MG201', PANOPTIC_FPN, {META: dict(classes=names(80), thing_classes=(), stuff_classes=())}),
    ('MG201', FASTER_RCNN, {META: dict(classes=())}),  # mmdet then takes those of the file
    ('MG202', FASTER_RCNN_VOC, {}),
    ('MG203', FASTER_RCNN_CITYSCAPES, {f'{TRAIN}.dataset.metainfo': dict(classes=('person',))}),
    ('MG204', 'mmdet/sort/sort_faster-rcnn_r50_fpn_8xb2-4e_mot17halftrain_test-mot17halfval.py', {}),
    ('MG204', 'mmdet/glip/odinw/glip_atss_swin-t_a_fpn_dyhead_pretrain_odinw13.py', {}),
    ('MG204', FASTER_RCNN_VOC, {SECOND: dict(classes=('dog', 'unicorn'))}),  # MG590 reports it
    ('MG590', FASTER_RCNN_VOC, {}),
    ('MG590', RETINANET, {META: dict(classes=('person',))}),
    ('MG205', RETINANET, {META: dict(classes=('person',))}),
    ('MG390', RETINANET, {META: dict(classes=('person',), CLASSES=('cat',))}),
    ('MG392', RETINANET, {META: dict(classes=('cat', 'Cat'))}),
    ('MG207', FASTER_RCNN, {f'{ROI}.bbox_head.loss_cls.class_weight': [1.0] * 81}),
    ('MG207', PSPNET, {CHANNELS: 1, WEIGHT: EYE}),
    ('MG208', PSPNET, {f'{HEAD}.ignore_index': None, 'val_evaluator.ignore_index': 0}),
    ('MG209', PSPNET, {f'{HEAD}.ignore_index': 19}),
    ('MG210', ADE20K, {f'{STEPS}[1].reduce_zero_label': True}),
    ('MG232', PSPNET, {META: dict(classes=('car', 'road'))}),
    ('MG211', 'mmseg/pspnet/pspnet_r50-d8_4xb4-80k_loveda-512x512.py', {}),
    ('MG214', PSPNET, {LOSS: dict(type='GuardedCrossEntropyLoss', class_weight=EYE)}),
    ('MG214', PSPNET, {LOSS: dict(type='OhemCrossEntropy', class_weight=EYE)}),
    ('MG214', PSPNET, {LOSS: dict(type='CrossEntropyLoss', class_weight=EYE, use_sigmoid=True)}),
    ('MG214', 'mmseg/san/san-vit-b16_coco-stuff164k-640x640.py', {}),
    ('MG215', PSPNET, {CHANNELS: 1, f'{HEAD}.num_classes': 2, f'{HEAD}.loss_decode.use_sigmoid': True}),
    ('MG215', PSPNET, {**ONE_NAME, 'val_evaluator': dict(type='mmseg.CityscapesMetric'), 'test_evaluator': {}}),
    ('MG214', PSPNET, {f'{HEAD}.ignore_index': -1}),
    ('MG222', RETINANET, {STEPS: GUARD_DET, 'model.train_cfg.assigner.ignore_iof_thr': 0.5}),
    ('MG222', DINO, train(dict(GUARD, on_invalid='drop'))),
    ('MG223', PSPNET, train(seg_guard(), pack(meta_keys=('img_path', 'label_guard')))),
    ('MG223', PSPNET, train(pack(meta_keys=('seg_map_path',)), seg_guard())),
    ('MG255', PSPNET, {'custom_hooks': [dict(HOOK, guard=True), dict(type='EMAHook')]}),
    ('MG225', RETINANET, GUARDED_DET),
    ('MG234', PSPNET, {**FLIP, **train(dict(type='RandomFlip', prob=0.5, swap_seg_labels=[(1, 2)]), pack())}),
    ('MG234', PSPNET, {**FLIP, **train(dict(type='RandomFlip', prob=0.5, direction='vertical'), pack())}),
    ('MG234', PSPNET, {**FLIP, META: dict(classes=('leftover', 'right', *names(17)))}),
    ('MG235', PSPNET, {**ONE_CHANNEL_OF_TWO, LOSS: LOVASZ}),
    ('MG235', PSPNET, {LOSS: dict(LOVASZ, loss_type='multi_class')}),
    ('MG380', PSPNET, {META: dict(classes=('car', 'road'))}),
    ('MG380', PSPNET, {f'{HEAD}.ignore_index': 19}),
    ('MG381', PSPNET, train(RESIZE, pack())),
    ('MG381', RETINANET, {STEPS: [LOAD[0], dict(type='PhotoMetricDistortion'), LOAD[1]]}),
    ('MG382', PSPNET, {'model.test_cfg': dict(SLIDE, stride=(512, 384))}),
    ('MG383', PSPNET, train(dict(RESIZE, ratio_range=(0.5, 1.0)), pack())),
    ('MG383', PSPNET, train(RESIZE, dict(type='RandomCrop', crop_size=(512, 1024)), pack())),
    ('MG383', PSPNET, train(dict(type='Resize', scale=(4096, 2048)), pack())),  # all images have this size
    ('MG383', PSPNET, {**train(RESIZE, pack()), 'train_dataloader.batch_size': 1}),
    ('MG233', RETINANET, {**crops(), f'{TRAIN}.filter_cfg.filter_empty_gt': True}),
    ('MG233', RETINANET, crops(allow_negative_crop=True)),
    ('MG233', DINO, {f'{TRAIN}.filter_cfg.filter_empty_gt': False}),
    ('MG250', PSPNET, {'custom_hooks': [HOOK], 'custom_imports.imports': 'mmguard'}),
    ('MG251', PSPNET, train(seg_guard(), pack(), seg_guard())),
    ('MG252', PSPNET, {'custom_hooks': [dict(HOOK, guard=True)]}),
    ('MG251', PANOPTIC_FPN, {STEPS: [dict(LOAD[1], with_seg=True), *GUARD_DET, seg_guard(num_classes=133)]}),
    ('MG253', RTMDET, {}),
    ('MG253', PSPNET, {'custom_hooks': [HOOK]}),
    ('MG240', PSPNET, {f'{HEAD}.sampler': SAMPLER}),
    ('MG227', RETINANET, {}),
    ('MG229', PANOPTIC, {}),
    ('MG229', RETINANET, {'val_dataloader.dataset.data_root': 'data//coco'}),
    ('MG225', PSPNET, {STEPS: [*LOAD, pack(), seg_guard(num_classes=2)], **ONE_CHANNEL}),
    ('MG225', PSPNET, {STEPS: [*LOAD, pack(), seg_guard(num_classes=2)], **ONE_CHANNEL_OF_TWO}),
    ('MG225', PANOPTIC_FPN, {STEPS: [*GUARD_DET, seg_guard(num_classes=133)]}),
    ('MG230', RETINANET, GUARDED_DET),  # CocoMetric opens the annotation file itself
    ('MG230', PSPNET, GUARDED_EVERYWHERE),
    ('MG230', PSPNET, {STEPS: [*LOAD, pack(), seg_guard()], **SUBMISSION}),
    ('MG231', PSPNET, {'custom_hooks': [object()], f'{HEAD}.num_classes': None}),
]


#: F1 and F2, which onedl's mmseg does not have.
NOT_IN_ONEDL = [case for case in CASES if case.code == 'MG214' and 'avg_non_ignore' not in str(case.change)]
HERE = [case for case in CASES if not (IS_ONEDL and case in NOT_IN_ONEDL)]


def by_code(code: str) -> Any:
    return next(rule for rule in RULES if rule.code == code)


@pytest.mark.parametrize('case', HERE, ids=lambda case: f'{case.code}-{case.places[0]}')
def test_it_speaks_at_the_place(case):
    found = diagnose(config=changed(case.base, case.change), rules=[by_code(case.code)])
    assert tuple(place for finding in found for place in finding.places) == case.places


@pytest.mark.parametrize('base', sorted({case.base for case in CASES if case.change}))
def test_without_the_change_all_are_silent(base):
    rules = [by_code(code) for code in sorted({case.code for case in CASES if case.base == base and case.change})]
    assert diagnose(config=changed(base, {}), rules=rules) == []


@pytest.mark.skipif(not IS_ONEDL, reason='of the onedl fork')
def test_onedl_is_not_blamed_for_what_it_does_right():
    assert len(NOT_IN_ONEDL) == 2
    for case in NOT_IN_ONEDL:
        assert diagnose(config=changed(case.base, case.change), rules=[by_code(case.code)]) == []


@pytest.mark.parametrize(('code', 'base', 'change'), SILENT)
def test_it_is_silent_about_what_is_right(code, base, change):
    assert diagnose(config=changed(base, change), rules=[by_code(code)]) == []


def test_every_rule_has_a_case_of_both_kinds():
    codes = [rule.code for rule in RULES]
    assert {case.code for case in CASES} == set(codes)
    assert {code for code, *_ in SILENT} == set(codes)
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize('case', HERE, ids=lambda case: f'{case.code}-{case.places[0]}')
def test_with_its_edit_the_finding_is_gone(case):
    config = changed(case.base, case.change)
    rule = by_code(case.code)
    causes = {kind.code for kind in RULES if case.code in kind.follows}  # they hide it
    rules = {kind for kind in (*select_rules(), rule) if kind.code not in causes}
    found = diagnose(config=config, rules=sorted(rules, key=lambda kind: kind.code))
    found = [finding for finding in found if finding.code == case.code and finding.places[0] in case.places]
    assert found
    assert_answers_lead_on(found)
    for finding in found:
        for edit in finding.edits:
            again = diagnose(config=edited(config, edit.config), rules=[rule])
            assert not {place for found in again for place in found.places} & set(finding.places)


def test_what_the_edits_write(snapshot):
    """Places of the config and their values, without any wording."""
    lines = []
    for case in HERE:
        for finding in diagnose(config=changed(case.base, case.change), rules=[by_code(case.code)]):
            lines.append(f'{finding.code} {" and ".join(finding.places)}')
            for edit in finding.edits:
                written = (
                    f'{path} = {"(removed)" if value is REMOVED else shorten(value)}' for path, value in edit.config
                )
                lines.append('  - ' + '\n    '.join(written))
    snapshot('check', 'what the edits of each rule over configs write', '\n'.join(lines))


def test_what_is_shown_can_be_pasted(tmp_path):
    """Below ``_base_ = 'my_config.py'``, the lines of an edit make the config that `mmguard apply` writes."""
    base, own = tmp_path / 'my_config.py', tmp_path / 'own.py'
    pasted, described = 0, []
    for case in HERE:
        config = changed(case.base, case.change)
        base.write_text(''.join(f'{key} = {value!r}\n' for key, value in config.written.items()))
        for finding in diagnose(config=config, rules=[by_code(case.code)]):
            for edit in finding.edits:
                if any(line.startswith('remove ') or ' names)' in line or '...' in line for line in edit.steps):
                    described.append(edit)  # what is removed, and lists of names that are longer than a screen
                elif edit.config:
                    own.write_text('\n'.join([f'_base_ = {base.name!r}', *edit.steps]))
                    expected = edited(config, edit.config).written
                    assert as_lists(Config.fromfile(str(own)).to_dict()) == as_lists(expected), edit.steps
                    pasted += 1
    assert pasted > 50
    assert len(described) < 12


def as_lists(value):
    """mmengine makes lists of the tuples that a config changes."""
    if isinstance(value, dict):
        return {key: as_lists(inner) for key, inner in value.items()}
    return [as_lists(inner) for inner in value] if isinstance(value, (list, tuple)) else value
