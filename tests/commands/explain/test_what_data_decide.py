"""Boxes, label maps and unreadable files beside an error, and beside a log without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Tuple

import pytest
from explained_data import CALL, coco, explained, finding, labels
from explained_logs import explain_log, format_traceback
from put_file import put
from voc_cases import obj, xml

import mmguard
from mmguard.cli import main
from mmguard.commands.explain.explanation import OutsideFacts

pytest.importorskip('mmseg')

pytest.importorskip('msgspec')


def voc(folder: Path, *names: str) -> str:
    for number, name in enumerate(names):
        put(folder / f'Annotations/{number}.xml', xml(obj(name)))
    return str(folder)


SITE = '/opt/lib/python3.9/site-packages'
SEMANTIC = (f'{SITE}/mmdet/models/mask_heads/fused_semantic_head.py', 'self.criterion(pred, labels)')
BOX_HEAD = (f'{SITE}/torchvision/models/detection/roi_heads.py', 'F.cross_entropy(class_logits, labels)')
FOUR = 'RuntimeError: only batches of spatial targets supported (3D tensors) but got targets of size: : [4, {}, {}, 3]'


def check_undecided(error: str, frame: Tuple[str, str], data: str, folder: Path, capsys: pytest.CaptureFixture) -> None:
    log = put(folder / 'train.log', format_traceback(error, frame))
    record = explained(capsys, str(log), '--data', data, '--num-classes', '2')
    unread = explain_log(log.read_text(), OutsideFacts(num_classes=2))
    assert [one['key'] for one in record['causes']] == [one.cause.key for one in unread.causes]
    assert (record['refuted'], record['more']) == ([one.key for one in unread.refuted], [])


@pytest.mark.parametrize(
    ('error', 'frame'),
    [
        (FOUR.format(64, 96), SEMANTIC),
        (FOUR.format(512, 512), (f'{SITE}/torch/nn/functional.py', 'ret = torch._C._nn.nll_loss2d(input, target)')),
        ('IndexError: Target 200 is out of bounds.', SEMANTIC),
        ('IndexError: Target 7 is out of bounds.', ('/w/unet/train.py', 'acc_seg = decode_head.loss(x, y)')),
    ],
)
def test_a_file_of_boxes_decides_nothing_about_label_maps(
    error: str, frame: Tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    check_undecided(error, frame, coco(tmp_path / 'train.json', 1, 2, 3), tmp_path, capsys)


@pytest.mark.parametrize(
    ('error', 'frame'),
    [
        ('IndexError: Target 1 is out of bounds.', BOX_HEAD),
        ('IndexError: Target 21 is out of bounds.', (f'{SITE}/mmdet/models/bbox_heads/bbox_head.py', 'loss_cls(x, y)')),
        (
            'IndexError: index 9 is out of bounds for dimension 1 with size 8',
            ('/w/detr/matcher.py', 'cost[:, tgt_ids]'),
        ),
    ],
)
@pytest.mark.parametrize('values', [(0, 40, 80, 255), (0, 1), (0, 255)])
def test_label_maps_decide_nothing_about_a_loss_of_boxes(
    error: str, frame: Tuple[str, str], values: Tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    check_undecided(error, frame, labels(tmp_path / 'labels', *values), tmp_path, capsys)


@pytest.mark.parametrize(
    'log',
    [
        'Epoch [3][20/90] lr: 0.02, loss_cls: 0.3, loss: 0.5\nEpoch [3][40/90] lr: 0.02, loss_cls: nan, '
        'loss_bbox: nan, loss: nan\n',
        'step 900 loss: 0.41\nstep 910 loss: nan\n',
        format_traceback('IndexError: Target 5 is out of bounds.', CALL),
    ],
)
@pytest.mark.parametrize('code', ['MG129', 'MG132', 'MG150', 'MG169'])
def test_files_that_are_missing_end_a_training_with_another_error(log: str, code: str) -> None:
    found = explain_log(log, OutsideFacts((finding(code, 'error'),)))
    assert [one.cause for one in found.causes] == [one.cause for one in explain_log(log).causes]
    assert [one.code for one in found.more] == [code]


@pytest.mark.parametrize('damage', ['a file cannot be read', 'a folder is empty', 'labels are missing'])
def test_files_that_were_not_read_refute_nothing(
    damage: str, tmp_path: Path, log: str, capsys: pytest.CaptureFixture
) -> None:
    folder = Path(labels(tmp_path / 'labels', 0, 1, 2))
    for path in sorted(folder.iterdir())[: 1 if damage == 'a file cannot be read' else None]:
        if damage == 'a file cannot be read':
            path.write_bytes(path.read_bytes()[:40])
        else:
            path.unlink()
    target = folder / 'elsewhere' if damage == 'labels are missing' else folder
    alone = explained(capsys, log)
    record = explained(capsys, log, '--data', str(target), '--num-classes', '4')
    assert record['refuted'] == alone['refuted']


@pytest.mark.parametrize(
    ('names', 'error'),
    [
        (('rice', 'oat', 'q'), "KeyError: 'q'"),
        (('dent', 'Scratch'), "KeyError: 'Scratch'"),
        (('ship', 'ship', 'plane 2'), "KeyError: 'plane 2'"),
    ],
)
def test_a_class_list_made_of_the_files_refutes_no_unlisted_name(
    names: Tuple[str, ...], error: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    log = tmp_path / 'train.log'
    log.write_text(format_traceback(error, ('/w/datasets/xml_style.py', 'label = self.cat2label[name]')))
    record = explained(capsys, str(log), '--data', voc(tmp_path / 'VOC', *names))
    assert record['causes'][0]['key'] == 'unknown-name'


@pytest.mark.parametrize(
    ('values', 'options', 'code', 'end'),
    [
        ((0, 1, 9), ('--num-classes', '2'), 'MG107', 1),
        ((0, 254), ('--num-classes', '2'), 'MG133', 1),
        ((0, 1, 2), ('--num-classes', '3'), '', 0),
    ],
)
def test_a_log_without_an_error_is_reported_with_what_the_labels_show(
    values: Tuple[int, ...],
    options: Tuple[str, ...],
    code: str,
    end: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    log, folder = tmp_path / 'train.log', labels(tmp_path / 'labels', *values)
    log.write_text('epoch 1 loss 0.5\nepoch 2 loss 0.4\ntraining finished\n')
    words = ['explain', str(log), '--data', folder, *options]
    assert main([*words, '--json', '-']) == end
    record = json.loads(capsys.readouterr().out)
    assert record['error'] is None
    assert (code in record['more']) is bool(code)
    assert main(words) == end
    assert (f'found: {code} ' in capsys.readouterr().out) is bool(code)
    seen = mmguard.explain(str(log), data=folder, num_classes=int(options[1]))
    assert [one.code for one in seen.findings] == record['more']
    assert bool(seen) is not bool(code)


@pytest.mark.parametrize(
    ('file', 'is_named'),
    [
        (f'{SITE}/mmseg/models/segmentors/base.py', True),
        (f'{SITE}/mmdet/apis/train.py', True),
        (f'{SITE}/mmengine/runner/loops.py', True),
        ('/w/mine/train.py', False),
    ],
)
def test_an_unknown_error_of_mmengine_is_tried_on_the_program(
    file: str, is_named: bool, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    log = put(tmp_path / 'train.log', format_traceback('FlubberError: no flubber', (file, 'x = f(y)')))
    assert main(['explain', str(log)]) == 1
    assert ('mmguard dry-run CONFIG' in capsys.readouterr().out) is is_named
