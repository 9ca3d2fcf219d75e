"""`mmguard apply --edit`: what `check` and `scan` number is written, and the rules look at it again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coco_cases import ann, coco, write
from masks_of_255 import binary_masks
from mmengine.config import Config
from mmengine.registry import init_default_scope
from PIL import Image
from put_file import put, put_config

from mmguard.cli import main

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')

SEGMENTATION = """\
_base_ = ['mmseg::pspnet/pspnet_r18-d8_4xb2-80k_cityscapes-512x1024.py']
norm_cfg = dict(type='BN', requires_grad=True)
model = dict(
    pretrained=None,
    backbone=dict(norm_cfg=norm_cfg),
    data_preprocessor=dict(seg_pad_val=0),
    decode_head=dict(norm_cfg=norm_cfg, loss_decode=dict(type='CrossEntropyLoss', class_weight=[2.0] * 18)),
    auxiliary_head=dict(norm_cfg=norm_cfg, num_classes=12),
)
"""
DETECTION = """\
_base_ = ['mmdet::retinanet/retinanet_r50_fpn_1x_coco.py']
model = dict(backbone=dict(init_cfg=None), bbox_head=dict(num_classes=3))
train_dataloader = dict(dataset=dict(metainfo=dict(classes=('cat', 'dog'))))
val_dataloader = dict(dataset=dict(metainfo=dict(classes=('cat', 'dog'))))
test_dataloader = dict(dataset=dict(metainfo=dict(classes=('cat', 'dog'))))
"""


def written(tmp_path: Path, text: str) -> Path:
    return put(tmp_path / 'mine.py', text)


def offered(config: Path, tmp_path: Path, command: str = 'check', *options: str) -> Any:
    """Code -> numbers of its edits, as ``--json`` has them."""
    record = tmp_path / 'found.json'
    main([command, str(config), '--json', str(record), *options])
    found = json.loads(record.read_text())
    findings = [one for part in found.get('datasets', [found]) for one in part['findings']]
    return {one['code']: [edit['number'] for edit in one['edits']] for one in reversed(findings)}


def test_the_numbers_on_the_screen_are_those_of_the_json_and_one_edit_is_written(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, snapshot: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, SEGMENTATION)
    numbers = offered(Path('mine.py'), tmp_path, 'check', '--no-verify')  # its time would depend on the machine
    assert numbers == {'MG201': [1], 'MG207': [2], 'MG214': [3], 'MG208': [4]}
    said = capsys.readouterr().out
    assert re.findall(r'\[(\d)\]', said) == ['1', '2', '3', '4']
    assert 'mmguard apply mine.py -o OUT.py --edit N' in said
    snapshot('check', 'four findings with an edit each', said)
    assert main(['apply', 'mine.py', '-o', 'out.py', '--edit', '1', '--no-verify']) == 0
    snapshot('apply', 'one edit', capsys.readouterr().out)
    assert list(offered(Path('out.py'), tmp_path)) == ['MG208', 'MG214', 'MG207']
    assert 'Guard' not in Path('out.py').read_text()
    assert Config.fromfile('out.py').model.auxiliary_head.num_classes == 19
    assert Path('mine.py').read_text() == SEGMENTATION


def test_all_safe_edits_give_a_model_that_trains_on_ignored_pixels(tmp_path: Path) -> None:
    import torch
    from mmseg.registry import MODELS

    config, out = written(tmp_path, SEGMENTATION), tmp_path / 'out.py'
    assert main(['apply', str(config), '-o', str(out), '--edit', 'safe']) == 0
    assert offered(out, tmp_path) == {}
    built = Config.fromfile(out)
    init_default_scope('mmseg')
    head = MODELS.build(built.model).decode_head
    labels = torch.tensor([[[0, 18], [255, 255]]])
    loss = head.loss_decode(torch.randn(1, 19, 2, 2, requires_grad=True), labels, ignore_index=255)
    assert torch.isfinite(loss)
    assert built.model.data_preprocessor.seg_pad_val == 255


def test_several_edits_and_the_guards(tmp_path: Path) -> None:
    config, out = written(tmp_path, SEGMENTATION), tmp_path / 'out.py'
    assert main(['apply', str(config), '-o', str(out), '--edit', '1', '--edit', '4', '--guard']) == 0
    built = Config.fromfile(out)
    assert (built.model.auxiliary_head.num_classes, built.model.data_preprocessor.seg_pad_val) == (19, 255)
    assert built.custom_hooks[-1].type == 'LabelGuardHook'


def test_what_is_asked_is_written_by_its_number_alone(tmp_path: Path) -> None:
    from mmdet.registry import MODELS

    config, out = written(tmp_path, DETECTION), tmp_path / 'out.py'
    assert offered(config, tmp_path) == {'MG202': [1]}
    assert main(['apply', str(config), '-o', str(out), '--edit', 'safe']) == 2
    assert not out.exists()
    assert main(['apply', str(config), '-o', str(out), '--edit', '1']) == 0
    init_default_scope('mmdet')
    assert MODELS.build(Config.fromfile(out).model).bbox_head.num_classes == 2


@pytest.mark.parametrize(
    'arguments',
    [
        ['--edit', '9'],
        ['--edit', 'all'],
        ['--scan'],
        # The numbers are those of one scan: its options are in the command that it prints, and `apply` takes them.
        ['--edit', '1', '--num-classes', '3', '--split', 'val', '--masks'],
    ],
)
def test_what_cannot_be_written_is_named(tmp_path: Path, capsys: Any, arguments: Any) -> None:
    out = tmp_path / 'out.py'
    assert main(['apply', str(written(tmp_path, SEGMENTATION)), '-o', str(out), *arguments]) == 2
    assert ' '.join(arguments[2:] or arguments[-1:]) in capsys.readouterr().err
    assert not out.exists()


def test_an_edit_of_a_scan_is_written_too(tmp_path: Path, capsys: Any) -> None:
    """Masks of 0 and 255: only the labels show it, and the map stands in the pipeline then."""
    data = binary_masks(tmp_path)
    head = dict(type='FCNHead', num_classes=2, loss_decode=dict(type='CrossEntropyLoss'))
    model = dict(type='EncoderDecoder', decode_head=head)
    loader = dict(batch_size=2, dataset=data)
    config = put_config(tmp_path / 'mine.py', default_scope='mmseg', model=model, train_dataloader=loader)
    options = ['--num-classes', '2', '--split', 'train']
    assert main(['scan', str(config), *options]) == 1
    assert f'mmguard apply {config} -o OUT.py --scan {" ".join(options)} --edit N' in capsys.readouterr().out
    out = tmp_path / 'out.py'
    assert main(['apply', str(config), '-o', str(out), '--scan', *options, '--edit', '1']) == 0
    guard = Config.fromfile(out).train_dataloader.dataset.pipeline[2]
    assert (guard.type, guard.label_map) == ('GuardSegLabels', {255: 1})
    assert main(['scan', str(out)]) == 0


def test_the_labels_are_scanned_again_after_an_edit_of_a_scan(tmp_path: Path, capsys: Any) -> None:
    """The names are those of the file then, and the labels show that one of its categories is still left out."""
    for number in range(3):
        Image.new('RGB', (64, 48)).save(tmp_path / f'{number}.jpg')
    boxes = [ann(i, i // 3, i % 3, (2, 2, 30, 20)) for i in range(9)]
    path = write(tmp_path, coco(boxes, 3, ('ship', 'buoy', 'crane'), 0, (64, 48)))
    data = dict(
        type='CocoDataset',
        ann_file=path,
        data_prefix=dict(img=str(tmp_path)),
        metainfo=dict(classes=('ship', 'Buoy')),
        pipeline=[],
    )
    head = dict(type='RetinaHead', num_classes=2)
    parts = dict(default_scope='mmdet', model=dict(type='RetinaNet', bbox_head=head))
    parts['train_dataloader'] = dict(batch_size=1, dataset=data)
    config = put_config(tmp_path / 'mine.py', **parts)
    assert offered(config, tmp_path, 'scan', '--no-verify')['MG140'] == [1]
    capsys.readouterr()
    words = ['-o', str(tmp_path / 'out.py'), '--scan', '--edit', '1', '--no-verify']
    assert main(['apply', str(config), *words]) == 0
    assert Config.fromfile(tmp_path / 'out.py').train_dataloader.dataset.metainfo.classes == ('ship', 'buoy')
    assert re.findall(r'MG\d+', capsys.readouterr().out) == ['MG140', 'MG154']


def test_two_edits_of_one_pipeline_are_both_in_it(tmp_path: Path, capsys: Any) -> None:
    """MG103 puts a label map behind the loading of the validation, another edit a guard at its end."""
    parts = dict(default_scope='mmseg')
    for split in ('train', 'val'):
        parts[f'{split}_dataloader'] = dict(batch_size=2, dataset=binary_masks(tmp_path, split))
    loss = dict(type='GuardedCrossEntropyLoss')
    head = dict(type='FCNHead', num_classes=2, loss_decode=loss)
    parts.update(model=dict(type='EncoderDecoder', decode_head=head), val_evaluator=dict(type='IoUMetric'))
    config = put_config(tmp_path / 'mine.py', **parts)
    numbers = offered(config, tmp_path, 'scan')
    out = tmp_path / 'out.py'
    words = [word for code in ('MG103', 'MG230') for word in ('--edit', str(numbers[code][0]))]
    assert main(['apply', str(config), '-o', str(out), '--scan', *words]) == 0, capsys.readouterr()
    steps = Config.fromfile(out).val_dataloader.dataset.pipeline
    names = 'LoadImageFromFile LoadAnnotations GuardSegLabels PackSegInputs GuardSegLabels'
    assert [step.type.rpartition('.')[2] for step in steps] == names.split()
    assert main(['scan', str(out)]) == 0


def test_one_change_that_two_findings_ask_for_has_one_number(tmp_path: Path, capsys: Any) -> None:
    """In both splits 0 is a class, and ``reduce_zero_label`` takes it away."""
    parts = dict(default_scope='mmseg')
    for split in ('train', 'val'):
        data = binary_masks(tmp_path, split)
        for path in tmp_path.rglob('*.png'):
            Image.fromarray(np.minimum(np.array(Image.open(path)), 1)).save(path)
        data.update(reduce_zero_label=True, metainfo=dict(classes=('background', 'cell')))
        parts[f'{split}_dataloader'] = dict(batch_size=2, dataset=data)
    head = dict(type='FCNHead', num_classes=2, loss_decode=dict(type='CrossEntropyLoss'))
    parts.update(model=dict(type='EncoderDecoder', decode_head=head))
    config = put_config(tmp_path / 'mine.py', **parts)
    main(['scan', str(config), '--json', str(tmp_path / 'found.json'), '--no-verify'])
    sets = json.loads((tmp_path / 'found.json').read_text())['datasets']
    found = [(one['code'], [edit['number'] for edit in one['edits']]) for part in sets for one in part['findings']]
    assert [numbers[:1] for code, numbers in found if code == 'MG124'] == [[1], [1]]
    assert 'MG211' not in dict(found)
    capsys.readouterr()
    out = tmp_path / 'out.py'
    assert main(['apply', str(config), '-o', str(out), '--scan', '--edit', '1', '--no-verify']) == 0
    assert capsys.readouterr().out.count('MG124') == 1
    assert not Config.fromfile(out).val_dataloader.dataset.reduce_zero_label


def test_two_ways_of_one_finding_are_not_written_both(tmp_path: Path, capsys: Any) -> None:
    head = "dict(type='FCNHead', num_classes=1, loss_decode=dict(type='CrossEntropyLoss'))"
    config = written(tmp_path, f"default_scope = 'mmseg'\nmodel = dict(type='EncoderDecoder', decode_head={head})\n")
    assert offered(config, tmp_path)['MG215'] == [1, 2]
    assert main(['apply', str(config), '-o', str(tmp_path / 'out.py'), '--edit', '1', '--edit', '2']) == 2
    assert re.findall(r'\[\d\]|MG\d+', capsys.readouterr().err) == ['[1]', '[2]', 'MG215']
    assert not (tmp_path / 'out.py').exists()
