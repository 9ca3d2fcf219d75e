"""What a log says besides its error decides between causes; signs of a training that does not learn are seen."""

# ruff: noqa: E501  quoted lines are not broken
from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import pytest
from explained_logs import explain_log, find_code, format_traceback

from mmguard.tools.explain.explained import SUPPORTED, Explanation, explain_text


def keys(found: Explanation) -> List[str]:
    return [weighed.cause.key for weighed in found.causes]


def refuted(found: Explanation) -> List[str]:
    return [cause.key for cause in found.refuted]


def raised(error: str, file: str = '/home/me/train.py', code: str = 'loss = criterion(x, y)') -> str:
    return format_traceback(error, (file, code))


UNUSED = 'RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.\n'
TIMEOUT = (
    '[rank{0}]:[E ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: '
    'WorkNCCL(SeqNum=9, OpType=ALLGATHER, Timeout(ms)=600000) ran for 600063 milliseconds before timing out.\n'
)


@pytest.mark.parametrize(
    ('log', 'first', 'never'),
    [
        (f'num_classes=7\n{raised("IndexError: Target 7 is out of bounds.")}', 'value-one-more', 'value-raw'),
        (raised('AssertionError: Label class 12 exceeds nc=12 in a.yaml.'), 'value-one-more', 'masks-0-255'),
        (f'num_classes: 4\n{raised("IndexError: Target 90 is out of bounds.")}', 'value-raw', 'value-one-more'),
        (f'n_classes = 5\n{raised("IndexError: Target -1 is out of bounds.")}', 'value-negative', 'value-one-more'),
    ],
)
def test_the_number_of_classes_and_the_value_are_compared(log: str, first: str, never: str) -> None:
    found = explain_log(log)
    assert keys(found)[0] == first
    assert never in refuted(found)


@pytest.mark.parametrize(
    'line',
    [
        '       1/90      9.3G      1.212      2.013      1.112         21        640:   0%|          | 1/310',
        'Epoch: [0]  [  1/412]  eta: 0:14:01  lr: 0.000017  loss: 4.1210 (4.1210)',
        '2026-01-01 10:00:00,000 - mmdet - INFO - Epoch [1][2/800]\tlr: 1.9e-03, loss: 2.1',
    ],
)
def test_a_death_in_the_first_iterations_refutes_what_only_shows_later(line: str) -> None:
    found = explain_log(f'{line}\n{raised(UNUSED)}')
    assert keys(found)[0] == 'unused-everywhere'
    assert found.causes[0].evidence is not None
    assert found.causes[0].evidence.line == 1
    assert 'rank-without-targets' in refuted(found)


@pytest.mark.parametrize(
    ('line', 'is_validation'),
    [
        ('Validation DataLoader 0: 100%|####| 31/31 [00:10<00:00,  3.25it/s]', True),
        ('2026-01-01 10:00:00,000 - rank 0 - val 3/4', True),
        ('Evaluating bbox...', True),
        ('2026-01-01 10:00:00,000 - INFO - Iter(train) [  750/4000]  loss: 0.4', False),
    ],
)
def test_validation_before_a_timeout_refutes_the_losses_of_training(line: str, is_validation: bool) -> None:
    found = explain_log(f'{line}\n{TIMEOUT.format(0)}{TIMEOUT.format(1)}')
    assert (keys(found)[0] == 'other-collective') is is_validation
    assert ('rank-without-targets' in refuted(found)) is is_validation


@pytest.mark.parametrize(
    ('line', 'only'),
    [
        ('Epoch [1][50/90]\tlr: 1e-3, loss_cls: 0.7, loss_bbox: nan, loss: nan\n', True),
        ("{'loss_classifier': tensor(1.5), 'loss_rpn_box_reg': tensor(nan), 'loss_mask': tensor(0.4)}\n", True),
        ('step 9 cls_loss: 0.31 giou_loss: nan dfl_loss: 0.2 loss: nan\n', True),
        ('Epoch [1][50/90]\tlr: 1e-3, loss_cls: nan, loss_bbox: nan, loss: nan\n', False),
    ],
)
def test_one_loss_that_is_nan_is_not_a_learning_rate(line: str, only: bool) -> None:
    found = explain_log(line)
    assert find_code(line) == 'MG442'
    assert ('diverged' in refuted(found)) is only
    assert ('boxes' in [one.cause.key for one in found.causes if one.standing == SUPPORTED]) is only


ADVICE: Dict[str, Tuple[str, str]] = {
    '/opt/lib/site-packages/mmdet/models/a.py': ('mmdet', 'filter_empty_gt'),
    '/opt/lib/site-packages/mmseg/models/a.py': ('mmseg', 'RankGuardHook'),
    '/home/me/yolov5/models/common.py': ('ultralytics', 'align_losses'),
    '/home/me/loop.py': ('', 'align_losses'),
}


@pytest.mark.parametrize('file', ADVICE)
def test_advice_is_for_the_framework_that_the_log_shows(file: str) -> None:
    framework, word = ADVICE[file]
    found = explain_log(raised(UNUSED, file))
    (one,) = [weighed for weighed in found.causes if weighed.cause.key == 'rank-without-targets']
    assert found.framework == framework
    assert word in one.advice
    others = {'filter_empty_gt', 'RankGuardHook', 'align_losses'} - {word}
    assert framework == 'mmdet' or not any(other in one.advice for other in others)


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
    ('2026-01-01 10:00:00.0: train_loss -0.83\n', None),
    (STEP.format(50, 4000, 0.5) + STEP.format(100, 4000, 0.4), 'MG354'),
    ('Epoch 3/50\nepoch 3/50 train_loss: 0.4\n', 'MG354'),
    ('Epoch: [2]  [ 40/412]  loss: 0.4\n', 'MG354'),
    (STEP.format(4000, 4000, 0.4), None),
    ('train: WARNING No labels found in /d/pics/train.cache. See the docs.\n', 'MG355'),
    ('val: Scanning /d/pics/val... 0 images, 44 backgrounds, 0 corrupt: 100%|##| 44/44\n', 'MG355'),
    ('No labels in /d/x/train.cache. Can not train without labels.\n', 'MG355'),
    ('train: WARNING /d/images/7.jpg: ignoring corrupt image/label: labels require 5 columns, 9 columns detected\n', 'MG356'),
    ('val: WARNING /d/images/a.png: ignoring corrupt image/label: negative label values [-0.01]\n', 'MG356'),
    ('train: Scanning /d/labels... 95 images, 2 backgrounds, 5 corrupt: 100%|##| 100/100\n', 'MG356'),
    ('Epoch 1/3: 20%|##   | 9/45 [00:21<00:04, 6.7img/s, loss (batch)=nan]\n', 'MG442'),
    ('     4/99     3.3G    nan    0.03    nan    21    640: 100%|##| 8/8\n', 'MG442'),
    ('train loss: nan, val loss: nan\n', 'MG442'),
]  # fmt: skip


@pytest.mark.parametrize(('log', 'code'), SIGNS)
def test_signs_without_an_error_are_seen(log: str, code: Optional[str]) -> None:
    assert find_code(log) == code if code else explain_text([log]) is None


ERRORS = [
    ("AttributeError: 'BitMasks' object has no attribute 'polygons'", 'MG357'),
    ("AttributeError: 'BitmapMasks' object has no attribute 'polygons'", 'MG357'),
    ("AttributeError: 'PolygonMasks' object has no attribute 'masks'", 'MG357'),
    ('ValueError: No sampling location available.', 'MG358'),
    ('ValueError: Num foreground 0, Num background 99, unable to generate class balanced samples.', 'MG358'),
    ('RuntimeError: ROIs in ROIAlign cannot have non-negative size!', 'MG480'),
    ("KeyError: 'isthing'", 'MG476'),
    ('AssertionError: ground truth has different shape (torch.Size([2, 1, 8, 8])) from input (torch.Size([2, 1, 4, 4]))', 'MG426'),
    ('AssertionError: Label class 3 exceeds nc=3 in data/coco.yaml', 'MG413'),
]  # fmt: skip


@pytest.mark.parametrize(('error', 'code'), ERRORS)
def test_errors_of_loaders_and_heads_are_known(error: str, code: str) -> None:
    assert find_code(raised(error, code="x = self.coco.load_cats(ids=cat_id)[0]['isthing']")) == code
