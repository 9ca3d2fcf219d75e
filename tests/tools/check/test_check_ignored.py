"""One label is ignored, and every part must know which: also in detectors with stuff maps, and in albumentations."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import pytest
from changed_configs import FASTER_RCNN, PANOPTIC, PANOPTIC_FPN, PSPNET, changed

from mmguard.config.ignored import ignored_labels
from mmguard.findings.engine import diagnose
from mmguard.findings.rules.config.ignored_class import IgnoredClass
from mmguard.findings.rules.config.ignored_labels_agree import IgnoredLabelsAgree

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')

TRAIN = 'train_dataloader.dataset.pipeline'
LOAD = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
LOSS_SEG = 'model.semantic_head.loss_seg'
CE = dict(type='CrossEntropyLoss', loss_weight=0.5)


def found(name: str, changes: Dict[str, Any]) -> List[Any]:
    return diagnose(config=changed(name, changes), rules=[IgnoredLabelsAgree])


def albu(*transforms: Dict[str, Any]) -> Dict[str, Any]:
    return {TRAIN: [*LOAD, dict(type='Albu', transforms=list(transforms)), dict(type='PackSegInputs')]}


# ---- mmdet


def test_the_official_detectors_agree() -> None:
    for name in (PANOPTIC_FPN, PANOPTIC, FASTER_RCNN, 'mmdet/htc/htc_r50_fpn_1x_coco.py'):
        assert found(name, {}) == []


def test_the_default_of_a_semantic_head_is_not_what_the_data_holds() -> None:
    """mmdet's own default of PanopticFPNHead ignores -1, its loader writes 255."""
    findings = found(PANOPTIC_FPN, {LOSS_SEG: CE})
    places = [finding.places[0] for finding in findings]
    assert 'model.data_preprocessor.seg_pad_value' in places
    loader = next(finding for finding in findings if finding.places[0] == f'{TRAIN}[1]')
    assert loader.severity == 'error'
    assert 'the head ignores -100' in loader.cause
    assert 'a label that the head does not have' in loader.cause
    assert loader.advice == 'Write `ignore_index=255` at model.semantic_head.loss_seg.ignore_index.'


def test_that_default_is_what_ends_a_training() -> None:
    """What the rule says of mmdet is so: void pixels of 255 are an error to the head."""
    import torch
    from mmdet.registry import MODELS
    from mmdet.utils import register_all_modules

    register_all_modules(init_default_scope=False)
    logits, label = torch.zeros(1, 4, 2, 2), torch.full((1, 2, 2), 255)
    stock = MODELS.build(dict(type='mmdet.CrossEntropyLoss'))
    with pytest.raises(IndexError):
        stock(logits, label)
    reported = MODELS.build(dict(type='mmdet.CrossEntropyLoss', ignore_index=255))
    assert reported(logits, label).isfinite()


@pytest.mark.parametrize(
    ('changes', 'path', 'severity'),
    [
        ({'model.data_preprocessor.seg_pad_value': 0}, 'model.data_preprocessor.seg_pad_value', 'warning'),
        ({'model.data_preprocessor.seg_pad_value': 200}, 'model.data_preprocessor.seg_pad_value', 'error'),
        (
            {f'{TRAIN}[2]': dict(type='Rotate', seg_ignore_label=0), f'{LOSS_SEG}.ignore_index': 255},
            f'{TRAIN}[2].seg_ignore_label',
            'warning',
        ),
        ({f'{TRAIN}[2]': dict(type='GuardSegLabels', num_classes=9, ignore_index=9)}, f'{TRAIN}[2].ignore_index', ''),
    ],
)
def test_detectors_that_fill_with_something_else(changes: Dict[str, Any], path: str, severity: str) -> None:
    (finding,) = found(PANOPTIC_FPN, changes)
    assert finding.places[0] == path
    assert not severity or finding.severity == severity


def test_padding_that_leaves_the_stuff_map_alone_fills_nothing() -> None:
    changes = {'model.data_preprocessor.pad_seg': False, 'model.data_preprocessor.seg_pad_value': 0}
    assert found(PANOPTIC_FPN, changes) == []


def test_a_semantic_head_that_ignores_a_class() -> None:
    (finding,) = diagnose(config=changed(PANOPTIC_FPN, {f'{LOSS_SEG}.ignore_index': 7}), rules=[IgnoredClass])
    assert finding.places[0] == f'{LOSS_SEG}.ignore_index'
    assert diagnose(config=changed(PANOPTIC_FPN, {}), rules=[IgnoredClass]) == []


def test_a_detector_without_stuff_knows_no_ignored_label() -> None:
    assert ignored_labels(changed(FASTER_RCNN, {})) == []


# ---- albumentations


@pytest.mark.parametrize(
    ('transform', 'key', 'value'),
    [
        (dict(type='Rotate', border_mode=0), 'mask_value', 0),
        (dict(type='Rotate', border_mode=0, mask_value=99), 'mask_value', 99),
        (dict(type='PadIfNeeded', border_mode=0, value=0, mask_value=0), 'mask_value', 0),
        (dict(type='PadIfNeeded', border_mode='constant', fill_mask=[3]), 'fill_mask', 3),
        (dict(type='Affine', rotate=10), 'cval_mask', 0),
        (dict(type='Perspective', mask_pad_val=0), 'mask_pad_val', 0),
        (dict(type='CoarseDropout', mask_fill_value=0), 'mask_fill_value', 0),
    ],
)
def test_what_it_fills_in_is_trained(transform: Dict[str, Any], key: str, value: int) -> None:
    (finding,) = found(PSPNET, albu(transform))
    assert (finding.places[0], finding.value) == (f'{TRAIN}[2].transforms[0].{key}', value)
    assert finding.severity == ('error' if value == 99 else 'warning')
    assert finding.advice.startswith(f'Write {key}=255')


@pytest.mark.parametrize(
    'transform',
    [
        dict(type='Rotate'),  # its border is mirrored, or not, by the version
        dict(type='Rotate', border_mode=4),
        dict(type='Rotate', border_mode=0, mask_value=255),
        dict(type='Affine', fill_mask=255),
        dict(type='Affine', mode=2),
        dict(type='CoarseDropout', max_holes=8),
        dict(type='HorizontalFlip', p=0.5),
    ],
)
def test_what_fills_nothing_is_silent(transform: Dict[str, Any]) -> None:
    assert found(PSPNET, albu(transform)) == []


def test_nested_choices_are_looked_into() -> None:
    one_of = dict(type='OneOf', transforms=[dict(type='Affine'), dict(type='Rotate', border_mode=0)])
    assert [finding.places[0] for finding in found(PSPNET, albu(one_of))] == [
        f'{TRAIN}[2].transforms[0].transforms[0].cval_mask',
        f'{TRAIN}[2].transforms[0].transforms[1].mask_value',
    ]


def test_a_transform_of_that_name_outside_of_albu_is_another() -> None:
    assert found(PSPNET, {TRAIN: [*LOAD, dict(type='Affine'), dict(type='PackSegInputs')]}) == []


@pytest.mark.parametrize(('classes', 'count'), [(('background', 'crack'), 0), (('road', 'crack'), 1)])
def test_where_class_0_is_the_background_an_untold_0_is_meant(classes: Tuple[str, ...], count: int) -> None:
    changes = {
        **albu(dict(type='Affine')),
        'train_dataloader.dataset.type': 'BaseSegDataset',
        'train_dataloader.dataset.metainfo': dict(classes=classes),
    }
    assert len(found(PSPNET, changes)) == count
    written = {**changes, **albu(dict(type='Affine', cval_mask=0))}
    assert len(found(PSPNET, written)) == 1


@pytest.mark.parametrize('junk', [None, 'x', [], [None], float('nan'), float('inf'), {}, True, 1.5, object()])
def test_no_value_of_any_kind_raises(junk: Any) -> None:
    for key in ('cval_mask', 'fill_mask', 'border_mode', 'mode', 'type'):
        diagnose(config=changed(PSPNET, albu({'type': 'Affine', key: junk})), rules=[IgnoredLabelsAgree, IgnoredClass])
    for place in (LOSS_SEG, f'{LOSS_SEG}.ignore_index', 'model.semantic_head.ignore_label', 'model.data_preprocessor'):
        diagnose(config=changed(PANOPTIC_FPN, {place: junk}), rules=[IgnoredLabelsAgree, IgnoredClass])
