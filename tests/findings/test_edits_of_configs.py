"""Edits of configs where labels have a say: the right one comes first, and what the labels refute is not offered."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import pytest
import torch
from drawn_scenes import VOID, scenes
from situation import CE, coco_config, numbered, retina, seg_config, seg_model
from targets import scan_sets, values_of, write_edited

from mmguard.config.changes import change_config
from mmguard.config.read import ReadConfig, read_config
from mmguard.findings import Finding, diagnose
from mmguard.findings.edits import ASKS, MANUAL, SAFE
from mmguard.scanning.run import SetResult

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')


def detector(folder: Path, categories: Sequence[str], classes: Optional[Sequence[str]], heads: int) -> Path:
    """RetinaNet on a COCO set of these categories."""
    path, _ = coco_config(numbered(*categories), classes, retina(heads))(folder)
    return path


def segmentor(folder: Path, values: Sequence[int], head: Dict[str, Any], **data: Any) -> Path:
    """An FCN on four label maps of these values."""
    path, _ = seg_config(scenes(values, 4), None, seg_model(head['num_classes'], head), **data)(folder)
    return path


def scanned(config: Path) -> SetResult:
    return scan_sets(config, {})[0]


def named(findings: List[Finding], code: str) -> Finding:
    return next(finding for finding in findings if finding.code == code)


def follow(config: Path, code: str) -> SetResult:
    """What a scan says after the first edit of a finding was written."""
    finding = named(scanned(config).findings, code)
    after = scanned(write_edited(config, finding.edits[0].config))
    assert code not in {found.code for found in after.findings if found.edits or found.places == finding.places}
    return after


def trained(result: SetResult) -> List[int]:
    return sorted(
        label for label, count in result.facts.histogram.items() if count and label < result.facts.num_classes
    )


class TestWhereAClassListDidNotArrive:
    names = ('bolt', 'nut', 'crack')

    def test_check_alone_offers_nothing_that_labels_could_refute_first(self, tmp_path: Path) -> None:
        config = detector(tmp_path, self.names, None, 3)
        first, *others = named(diagnose(config=read_config(str(config))), 'MG201').edits
        assert first.applicability == MANUAL
        assert {edit.applicability for edit in others} <= {ASKS}

    def test_a_mask_head_that_was_forgotten_does_not_speak_for_the_list(self) -> None:
        roi = dict(bbox_head=dict(type='Shared2FCBBoxHead', num_classes=3), mask_head=dict(type='FCNMaskHead'))
        roi['mask_head']['num_classes'] = 80
        model = dict(type='MaskRCNN', roi_head=dict(type='StandardRoIHead', **roi))
        loader = dict(dataset=dict(type='CocoDataset', ann_file='train.json', pipeline=[]))
        config = ReadConfig(dict(default_scope='mmdet', model=model, train_dataloader=loader))
        edits = named(diagnose(config=config), 'MG201').edits
        assert edits[0].applicability == MANUAL
        assert SAFE not in {edit.applicability for edit in edits}

    def test_scan_takes_the_names_from_the_file(self, tmp_path: Path) -> None:
        config = detector(tmp_path, self.names, None, 3)
        found = scanned(config).findings
        edits = [edit for finding in found for edit in finding.edits]
        assert not any(80 in values_of(edit).get('num_classes', ()) for edit in edits)
        listed = found[0].edits[0]
        assert listed.applicability == SAFE
        assert dict(listed.config)['train_dataloader.dataset.metainfo'] == {'classes': self.names}
        after = scanned(write_edited(config, listed.config))
        assert trained(after) == [0, 1, 2]
        assert sum(after.facts.histogram.values()) == 36

    @pytest.mark.parametrize('number', [5, 19])
    def test_the_head_is_kept_or_widened_as_the_labels_of_the_files_say(self, number: int, tmp_path: Path) -> None:
        """CityscapesDataset, and a head of five."""
        kind = dict(type='CityscapesDataset', img_suffix='.jpg', seg_map_suffix='.png')
        config = segmentor(tmp_path, range(number), dict(num_classes=5), **kind)
        assert trained(follow(config, 'MG201')) == list(range(number))
        edited = read_config(str(tmp_path / 'my_config_edited.py'))
        assert edited.data['model']['decode_head']['num_classes'] == number


def test_a_head_that_was_forgotten_follows_the_list(tmp_path: Path) -> None:
    config = detector(tmp_path, ('bolt', 'nut'), ('bolt', 'nut'), 80)
    finding = named(scanned(config).findings, 'MG201')
    assert finding.edits[0].applicability == SAFE
    assert finding.edits[0].config == (('model.bbox_head.num_classes', 2),)
    assert trained(follow(config, 'MG201')) == [0, 1]


def test_a_list_that_is_one_short_is_not_followed_blindly(tmp_path: Path) -> None:
    """Three categories and a head of three, and two names: counting the background is not the cause."""
    config = detector(tmp_path, ('bolt', 'nut', 'crack'), ('bolt', 'nut'), 3)
    first = named(scanned(config).findings, 'MG202').edits[0]
    assert first.applicability == ASKS
    assert dict(first.config) == {'train_dataloader.dataset.metainfo': {'classes': ('bolt', 'nut', 'crack')}}


def test_what_nobody_labelled_may_not_become_a_class_by_an_edit_of_ignore_index(tmp_path: Path) -> None:
    """A head that ignores 0, a class, and fills of 255: every class has its labels after the first edit."""
    classes = dict(classes=('road', 'house', 'tree'))
    config = segmentor(tmp_path, (0, 1, 2), dict(num_classes=3, ignore_index=0), metainfo=classes)
    after = follow(config, 'MG209')
    assert trained(after) == [0, 1, 2]
    assert after.facts.ignore_index == 255


@pytest.mark.parametrize('loss', ['CrossEntropyLoss', 'GuardedCrossEntropyLoss'])
def test_a_binary_head_with_one_weight_is_right(tmp_path: Path, loss: str) -> None:
    decode = dict(type=loss, use_sigmoid=True, class_weight=[3.0])
    head = dict(num_classes=2, out_channels=1, loss_decode=decode)
    config = segmentor(tmp_path, (0, 1), head, metainfo=dict(classes=('ground', 'house')))
    assert diagnose(config=read_config(str(config))) == []
    assert [finding.code for finding in scanned(config).findings] == ['MG100']


def follow_both(config: Path) -> None:
    """Write each of the two edits of a single channel."""
    edits = named(scanned(config).findings, 'MG215').edits
    assert len(edits) == 2
    for edit in edits:
        after = scanned(write_edited(config, edit.config))
        assert [finding.code for finding in after.findings if finding.severity == 'error'] == []
        assert trained(after) == [0, 1]


@pytest.mark.parametrize('number', [1, 2])
def test_one_channel_of_a_softmax_gets_a_second_class_or_a_sigmoid(tmp_path: Path, number: int) -> None:
    names = ('ground', 'house')[-number:]
    head = dict(num_classes=1) if number == 1 else dict(num_classes=2, out_channels=1)
    follow_both(segmentor(tmp_path, (0, 1), head, metainfo=dict(classes=names)))


@pytest.mark.parametrize('name', ['house', 'crack'])
def test_one_class_of_a_sigmoid_is_no_all_clear_until_the_background_is_counted(tmp_path: Path, name: str) -> None:
    sigmoid = dict(type='CrossEntropyLoss', use_sigmoid=True)
    head = dict(num_classes=1, loss_decode=sigmoid)
    written = segmentor(tmp_path, (0, 1), head, metainfo=dict(classes=(name,)), val=scenes((0, 1), 2))
    assert [finding.code for finding in scanned(written).findings] == []
    config = write_edited(written, [('val_evaluator', dict(type='IoUMetric', iou_metrics=['mIoU']))])
    (edit,) = named(scanned(config).findings, 'MG215').edits
    after = scanned(write_edited(config, edit.config))
    assert [finding.code for finding in after.findings] == ['MG100']
    assert (trained(after), after.facts.class_names) == ([0, 1], ['background', name])


@pytest.mark.parametrize(
    'auxiliary',
    [
        [dict(num_classes=1, loss_decode=CE)],
        [dict(num_classes=1, loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=True))],
        [dict(num_classes=2, out_channels=1, loss_decode=[CE, dict(CE, loss_weight=0.4)])],
    ],
)
def test_all_heads_of_one_channel_are_corrected_at_once(tmp_path: Path, auxiliary: List[Dict[str, Any]]) -> None:
    heads = [dict(type='FCNHead', **head) for head in auxiliary]
    written = segmentor(tmp_path, (0, 1), dict(num_classes=1), metainfo=dict(classes=('ground', 'house')))
    follow_both(write_edited(written, [('model.auxiliary_head', heads)]))


@pytest.mark.parametrize(
    ('code', 'values', 'loss'), [('MG214', (0, 1, VOID), dict(CE, class_weight=[1.0, 2.0])), ('MG116', (0, 5), CE)]
)
def test_what_guards_the_training_guards_the_evaluation_too(
    tmp_path: Path, code: str, values: Sequence[int], loss: Dict[str, Any]
) -> None:
    names = dict(classes=('ground', 'house'))
    written = segmentor(tmp_path, values, dict(num_classes=2, loss_decode=loss), metainfo=names)
    loader = read_config(str(written)).data['train_dataloader']
    config = write_edited(written, [('val_dataloader', loader), ('val_evaluator', dict(type='IoUMetric'))])
    for split in (('train', 'val'), ('train',)):
        for edit in named(scan_sets(config, dict(splits=split))[0].findings, code).edits:
            after = write_edited(config, edit.config)
            assert [finding.code for finding in diagnose(config=read_config(str(after)))] == []
            assert trained(scanned(after)) == [0, 1]


class TestWeightsOfDetr:
    @staticmethod
    def config(kind: str, weights: Any) -> ReadConfig:
        loss = dict(type='CrossEntropyLoss', use_sigmoid=False, class_weight=weights)
        model = dict(type='DETR', bbox_head=dict(type=kind, num_classes=3, loss_cls=loss))
        return ReadConfig(dict(default_scope='mmdet', model=model))

    def test_a_list_is_refused_when_it_is_built_and_the_edit_builds(self) -> None:
        from mmdet.registry import MODELS
        from mmengine.registry import init_default_scope

        init_default_scope('mmdet')
        config = self.config('DETRHead', [1.0, 1.0, 1.0, 0.1])
        with pytest.raises(AssertionError, match='type float'):
            MODELS.build(change_config(config, ()).data['model']['bbox_head'])
        edit = named(diagnose(config=config), 'MG207').edits[0]
        head = MODELS.build(change_config(config, edit.config).data['model']['bbox_head'])
        assert head.loss_cls.class_weight.tolist() == pytest.approx([1.0, 1.0, 1.0, 0.1])

    @pytest.mark.parametrize(('kind', 'weights'), [('DETRHead', 1.0), ('ConditionalDETRHead', [1.0, 1.0, 1.0, 0.1])])
    def test_what_is_right_is_right(self, kind: str, weights: Any) -> None:
        assert not [found for found in diagnose(config=self.config(kind, weights)) if found.code == 'MG207']


class TestWeightsOfSigmoid:
    @staticmethod
    def config(loss: Dict[str, Any], **head: Any) -> ReadConfig:
        decode = dict(type='FCNHead', in_channels=8, channels=8, in_index=0, input_transform=None, **head)
        decode['loss_decode'] = dict(type='CrossEntropyLoss', **loss)
        return ReadConfig(dict(default_scope='mmseg', model=dict(type='EncoderDecoder', decode_head=decode)))

    @pytest.mark.parametrize(
        ('weights', 'head', 'shape', 'edits'),
        [
            ([1.0, 2.0, 1.0, 1.0], dict(num_classes=4), (2, 4, 16, 24), 2),
            ([0.5] * 7, dict(num_classes=7, ignore_index=0), (1, 7, 9, 12), 2),
            ([1.0, 9.0], dict(num_classes=2, out_channels=1, threshold=0.3), (2, 1, 8, 8), 1),
        ],
    )
    def test_the_loss_fails_and_runs_after_each_edit(
        self, weights: List[float], head: Dict[str, Any], shape: Tuple[int, ...], edits: int
    ) -> None:
        from mmseg.registry import MODELS

        def run(config: ReadConfig) -> Any:
            loss = MODELS.build(config.data['model']['decode_head']['loss_decode'])
            labels = torch.zeros(shape[0], *shape[2:], dtype=torch.long)
            return loss(torch.zeros(shape), labels, ignore_index=255)

        config = self.config(dict(use_sigmoid=True, class_weight=weights), **head)
        with pytest.raises(RuntimeError, match='must match the size of tensor'):
            run(config)
        found = named(diagnose(config=config), 'MG207')
        assert found.places[0].startswith('model.decode_head.loss_decode.class_weight')
        assert len(found.edits) == edits
        for edit in found.edits:
            changed = change_config(config, edit.config)
            loss = changed.data['model']['decode_head']['loss_decode']
            assert loss['use_sigmoid'] is (edit is found.edits[-1])
            assert (loss['class_weight'] is None) is loss['use_sigmoid']
            assert torch.isfinite(run(changed))

    @pytest.mark.parametrize(
        'loss',
        [
            dict(use_sigmoid=True),
            dict(use_sigmoid=True, class_weight=None),
            dict(use_sigmoid=False, class_weight=[1.0, 2.0, 3.0]),
            dict(use_sigmoid=True, class_weight=[3.0]),
        ],
    )
    def test_other_weights_are_not_reported(self, loss: Dict[str, Any]) -> None:
        config = self.config(loss, num_classes=1 if loss.get('class_weight') == [3.0] else 3)
        assert 'MG207' not in [found.code for found in diagnose(config=config)]
