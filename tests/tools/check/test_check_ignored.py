"""One label is ignored, and every part must know which: also in detectors with stuff maps."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
from changed_configs import FASTER_RCNN, PANOPTIC, PANOPTIC_FPN, changed

from mmguard.config.ignored import find_ignored_labels
from mmguard.findings.engine import diagnose
from mmguard.findings.rules.config.ignored_labels import IgnoredClass, IgnoredLabelsAgree

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')

TRAIN = 'train_dataloader.dataset.pipeline'
LOSS_SEG = 'model.semantic_head.loss_seg'
CE = dict(type='CrossEntropyLoss', loss_weight=0.5)


def found(name: str, changes: Dict[str, Any]) -> List[Any]:
    return diagnose(config=changed(name, changes), rules=[IgnoredLabelsAgree])


def test_the_official_detectors_agree() -> None:
    for name in (PANOPTIC_FPN, PANOPTIC, FASTER_RCNN, 'mmdet/htc/htc_r50_fpn_1x_coco.py'):
        assert found(name, {}) == []
    assert find_ignored_labels(changed(FASTER_RCNN, {})) == []  # without stuff


def test_the_default_of_a_semantic_head_is_not_what_the_data_holds() -> None:
    """mmdet's own default of PanopticFPNHead ignores -1, its loader writes 255."""
    findings = found(PANOPTIC_FPN, {LOSS_SEG: CE})
    assert any('model.data_preprocessor.seg_pad_value' in finding.places for finding in findings)
    loader = next(finding for finding in findings if f'{TRAIN}[1]' in finding.places)
    assert loader.severity == 'error'
    assert [edit.config for edit in loader.edits] == [((f'{LOSS_SEG}.ignore_index', 255),)]


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


@pytest.mark.parametrize('junk', [None, 'x', [], [None], float('nan'), float('inf'), {}, True, 1.5, object()])
def test_no_value_of_any_kind_raises(junk: Any) -> None:
    for place in (LOSS_SEG, f'{LOSS_SEG}.ignore_index', 'model.semantic_head.ignore_label', 'model.data_preprocessor'):
        diagnose(config=changed(PANOPTIC_FPN, {place: junk}), rules=[IgnoredLabelsAgree, IgnoredClass])
