"""Signs of a training that does not learn are seen in logs without an error."""

# ruff: noqa: E501  quoted lines are not broken
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import List, Optional, Tuple

import pytest
from explained_logs import find_code
from put_file import put

from mmguard.cli import main
from mmguard.commands.explain.explanation import explain_text
from mmguard.commands.explain.scores import Scores


def nnunet(*dice: float) -> str:
    return ''.join(
        f'2026-01-01 10:00:00.0: Epoch {n}\n2026-01-01 10:00:00.0: Pseudo dice [{d}]\n' for n, d in enumerate(dice)
    )


def yolo(*scores: float) -> str:
    return ''.join(
        f'     {n}/99     3.3G    0.04    0.03    0.02    21    640: 100%|##| 8/8\n'
        f'                 all        128        211      0.1      0.1      {score}      0.0\n'
        for n, score in enumerate(scores)
    )


def table(*classes: str, last: str = 'nan') -> str:
    """Write scores as MMSegmentation does; the last class has no label where its Acc is nan."""
    scores = [('91.2', '95.1')] * (len(classes) - 1) + [('0.0', last)]
    rows = ''.join(f'| {name:>9} | {iou:>5} | {acc:>5} |\n' for name, (iou, acc) in zip(classes, scores))
    return f'+-----------+-------+-------+\n|   Class   |  IoU  |  Acc  |\n+-----------+-------+-------+\n{rows}'


def coco(*scores: float, kinds: Tuple[str, ...] = ('bbox',)) -> str:
    """Write the summaries of pycocotools, one of each kind in each validation."""
    rows = [('Precision', 'AP', '  all', 1), ('Precision', 'AP', 'small', 0), ('Recall', 'AR', '  all', 1)]
    return ''.join(
        f'Evaluate annotation type *{kind}*\n'
        + ''.join(
            f' Average {name} ({short}) @[ IoU=0.50:0.95 | area={area} | maxDets=100 ] = {factor * score:.3f}\n'
            for name, short, area, factor in rows
        )
        for score in scores
        for kind in kinds
    )


STEP = '2026/01/01 12:00:00 - mmengine - INFO - Iter(train) [{:6d}/{}]  lr: 9e-3  loss: {}\n'
SIGNS: List[Tuple[str, Optional[str]]] = [
    (nnunet(0.4, 0.6, 0.0, 0.0, 0.0), 'MG352'),
    ('mAP@0.5: 0.31\nmAP@0.5: 0.22\nmAP@0.5: 0.0\nmAP@0.5: 0.0\nmAP@0.5: 0.001\n', 'MG352'),
    (''.join(f'Epoch {n}\nValidation Dice score: {d}\n' for n, d in enumerate([0.7, 0, 0, 0])), 'MG352'),
    (nnunet(0.4, 0.0, 0.6), None),
    (yolo(0, 0, 0, 0.001), 'MG351'),
    (''.join('Epoch 12: validation Dice score: 3.1e-11\n' for _ in range(3)), 'MG351'),
    ('Epoch: 250 | mAP@0.5: 0.0 | mAP@0.50:0.95: 0.0\n', 'MG351'),
    (yolo(0, 0.1, 0.3), None),
    ('epoch 3 Mean loss: -4523.1\n', 'MG353'),
    ('step 40 train loss=-87.25 lr 0.1\n', 'MG353'),
    ('iter 7 loss: -123\n', 'MG353'),
    ('Epoch 2/5: 31%|##  | 9/45 [00:21<00:04, 6.7img/s, loss (batch)=-7.2e+5]\n', 'MG353'),
    ('train: 9%|# | 4/41 [00:03<00:25, 1.4it/s, jaccard_loss - -12.7, fscore - 3.1]\n', 'MG353'),
    ('step 3 loss - 14.25\n', None),
    ('step 3 loss: -1.2e-07\n', None),
    (table('car', 'tree', 'pole') + table('car', 'tree', 'pole'), 'MG400'),
    (table('soil') + 'Iter(val) [9]  aAcc: 0.99, mIoU: 0.4950\n', 'MG400'),
    (table('vessel', 'disc'), 'MG400'),
    (table('road', 'lane', last='0.41') + table('road', 'lane'), None),
    (''.join(STEP.format(n, 4000, f'{3 / n:.2f}  loss_cls: 0.0000  loss_bbox: 0.0000') for n in range(1, 9)), 'MG583'),
    (''.join(f'epoch: 3/9, iter: {n}/90, total_loss: 0.0, iou_loss: 0.0, cls_loss: 0.0\n' for n in range(5, 91, 5)), 'MG583'),
    (''.join(f'Epoch [1][{n}/60]\tloss_rpn_cls: 0.1, loss_bbox: 0.0000, loss: {n}.1\n' for n in range(10, 61, 10)), 'MG583'),
    (''.join(f'Epoch [1][{n}/60]\tloss_bbox: 0.0{n}00, loss: 1.1\n' for n in range(0, 61, 10)), None),
    ('validation of fold 2\nbest mean DSC: 0.000000\n', 'MG351'),
    ('2026-01-01 10:00:00.0: train_loss -0.83\n', None),
    (STEP.format(50, 4000, 0.5) + STEP.format(100, 4000, 0.4), 'MG354'),
    ('Epoch 3/50\nepoch 3/50 train_loss: 0.4\n', 'MG354'),
    ('Epoch: [2]  [ 40/412]  loss: 0.4\n', 'MG354'),
    (STEP.format(4000, 4000, 0.4), None),
    ('train: WARNING No labels found in /d/pics/train.cache. See the docs.\n', 'MG355'),
    ('val: Scanning /d/pics/val... 0 images, 44 backgrounds, 0 corrupt: 100%|##| 44/44\n', 'MG355'),
    ('No labels in /d/x/train.cache. Can not train without labels.\n', 'MG355'),
    ('train: WARNING /d/images/7.jpg: ignoring corrupt image/label: labels require 5 columns, 9 columns detected\n', 'MG356'),
    ('train: Scanning /d/labels... 95 images, 2 backgrounds, 5 corrupt: 100%|##| 100/100\n', 'MG356'),
    ('Epoch 1/3: 20%|##   | 9/45 [00:21<00:04, 6.7img/s, loss (batch)=nan]\n', 'MG442'),
    ('     4/99     3.3G    nan    0.03    nan    21    640: 100%|##| 8/8\n', 'MG442'),
    ('train loss: nan, val loss: nan\n', 'MG442'),
]  # fmt: skip


@pytest.mark.parametrize('steps', [(50, 100), (2000,), (3999,)])
def test_a_log_that_ends_early_may_be_of_a_training_that_goes_on(
    steps: Tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    log = put(tmp_path / 'train.log', ''.join(STEP.format(step, 4000, 0.5) for step in steps))
    assert main(['explain', str(log), '--json', '-']) == 0
    record = json.loads(capsys.readouterr().out)
    assert record['error']['code'] == 'MG354'
    assert 'running' in [cause['key'] for cause in record['causes']]
    log.write_text(log.read_text() + 'loss: nan\n')
    assert main(['explain', str(log)]) == 1


@pytest.mark.parametrize(
    ('line', 'is_noted'),
    [
        (
            "train: Scanning 'data/train' images and labels... 150 found, 50 missing, 0 empty, 0 corrupted: 100%|#| 200/200",
            True,
        ),
        ('val: Scanning /d/birds/labels/val... 31 images, 4 backgrounds, 0 corrupt: 100%|##| 35/35', True),
        ("train: Scanning 'data/labels/a.cache' images and labels... 90 found, 7 missing, 2 empty, 0 corrupted", True),
        ('train: Scanning /d/labels... 95 images, 0 backgrounds, 0 corrupt: 100%|##| 95/95', False),
    ],
)
def test_images_without_a_label_file_are_noted(
    line: str, is_noted: bool, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    log = put(tmp_path / 'train.log', f'{line}\n99 epochs completed in 0.2 hours.\n')
    assert main(['explain', str(log)]) == 0
    assert ('note: ' in capsys.readouterr().out) is is_noted


@pytest.mark.parametrize(('log', 'code'), SIGNS)
def test_signs_without_an_error_are_seen(log: str, code: Optional[str]) -> None:
    assert find_code(log) == code if code else explain_text([log]) is None


@pytest.mark.parametrize(
    ('log', 'validations', 'score'),
    [
        (coco(0, 0, 0, 0, 0, 0), 6, 'AP'),
        (coco(0, 0.001, 0, kinds=('bbox', 'segm')), 3, 'AP'),
        (yolo(0, 0, 0, 0.001), 4, 'mAP'),
    ],
)
def test_each_validation_counts_once(log: str, validations: int, score: str) -> None:
    scores = Scores()
    scores.take(log.encode(), 1)
    assert re.search(rf'\b{score} .* {validations} validations$', scores.sign.searched)


@pytest.mark.parametrize(
    'mode', ['Epoch(val) [{}][9/9]', 'Epoch(train) [{}][9/9]  loss: 1.5', 'Epoch [{}][9/9]  loss: 1.5']
)
@pytest.mark.parametrize(('epoch', 'code'), [(1, None), (2, None), (40, 'MG351')])
def test_one_validation_of_an_early_epoch_is_no_trend(mode: str, epoch: int, code: Optional[str]) -> None:
    average = ' Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.004\n'
    found = explain_text([f'2026/01/01 12:00:00 - mm - INFO - {mode.format(epoch)}\n{average}'])
    assert (found and found.signature.code) == code
