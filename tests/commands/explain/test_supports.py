"""A line of the log is quoted as it is, and supports only what can be read in it."""

# ruff: noqa: E501  quoted lines are not broken
from __future__ import annotations

from typing import List, Optional, Tuple

import pytest
from explained_logs import explain_log, raised

from mmguard.commands.explain.explanation import POSSIBLE, SUPPORTED, Explanation, OutsideFacts
from mmguard.config.read import ReadConfig
from mmguard.findings import diagnose

TABLE = '2025-03-02 08:00:00,000 - mmseg - INFO - \n+-------+------+-----+\n| Class | IoU  | Acc |\n+-------+------+-----+\n|  roof | 0.0  | nan |\n|  lawn | 71.2 | 80.1 |\n+-------+------+-----+\n'
PSEUDO_DICE = ''.join(
    f'2025-01-01 12:00:0{n}.5: Epoch {n}\n2025-01-01 12:00:0{n}.6: Pseudo dice [0.8{n}, nan]\n' for n in range(5)
)
UNEXPECTED = 'Error: Unexpected labels found in file {}.\nExpected: {}\nFound: {}\n'


def keys(found: Explanation) -> List[Tuple[str, str]]:
    return [(one.cause.key, one.standing) for one in found.causes]


def supported(found: Explanation) -> List[str]:
    return [key for key, standing in keys(found) if standing == SUPPORTED]


def corrupt(message: str, version: str = 'train: WARNING ⚠️ ') -> str:
    return f'{version}/d/images/a7.jpg: ignoring corrupt image/label: {message}\n'


@pytest.mark.parametrize('label', [(8, 3), (31, 4)])
def test_a_cause_that_the_log_points_to_is_not_struck_out_by_a_scan(label: Tuple[int, int]) -> None:
    log = corrupt('Label class {} exceeds dataset class count {}.'.format(*label))
    assert supported(explain_log(log)) == ['class-unlisted']
    found = explain_log(log, OutsideFacts((), read=frozenset({'config', 'files'})))
    assert supported(found) == ['class-unlisted']
    assert 'columns' in [cause.key for cause in found.refuted]


@pytest.mark.parametrize(
    ('declared', 'values', 'first'),
    [
        ('[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]', '[ 0. 12. 13. 14. 15. 18.]', 'gap'),
        ('[0, 1, 2, 3, 4, 5]', '[  0.   1.   2. 500. 510.\n 520.]', 'gap'),
        ('[0, 1, 2, 3]', '[0, 85, 170, 255]', 'gap'),
        ('[0, 1]', '[  0. 255.]', 'masks-foreground'),
        ('[0, 1, 2]', '[0, 7.5, 11]', ''),
        ('[0, 1]', '[   0.    1.    2. ... 1407. 1408. 1411.]', 'images'),
        ('[0, 1, 2]', '[-3024.  -998.   411.]', 'images'),
        ('[0, 1]', '[0, 3, 8, 17, 40, 66, 81, 102, 133, 160, 201, 240, 255]', 'gray'),
        ('[0, 1, 2]', '[0 1 2 7]', 'gap'),
    ],
)
def test_what_the_values_are_is_counted_in_the_values(declared: str, values: str, first: str) -> None:
    found = explain_log(UNEXPECTED.format('c.nii.gz', declared, values))
    assert supported(found) == ([first] if first else [])
    if first:
        assert found.causes[0].evidence.text.startswith('Found: ')


@pytest.mark.parametrize(
    ('log', 'code', 'first'),
    [
        (corrupt('Label class 8 exceeds dataset class count 3. Possible class labels are 0-2'), 'MG356', 'class-unlisted'),
        (
            'Overriding model.yaml nc=80 with nc=4\n'
            + corrupt('label class 31 exceeds nc=4 in birds.yaml. Possible class labels are 0-3', 'val: WARNING: '),
            'MG356', 'class-unlisted',
        ),
        (
            corrupt('Label class 2 exceeds dataset class count 2')
            + raised('ValueError: not enough values to unpack (expected 4, got 0)', '/opt/ultralytics/data.py'),
            'MG433', 'class-unlisted',
        ),
        (
            raised('AssertionError: negative labels: /d/labels/q.txt', '/w/yolov3/datasets.py', "assert (l >= 0).all(), 'negative labels: %s' % file"),
            'MG356', 'negative',
        ),
        (corrupt('negative label values [-2]', 'WARNING: Ignoring corrupted image and/or label '), 'MG356', 'negative'),
        (corrupt('non-normalized or out of bounds coordinates [     411.5        230]'), 'MG356', 'not-normalized'),
        (raised('AssertionError: > 5 label columns: /d/k.txt', '/w/yolov5/datasets.py', 'assert l.shape[1] == 5'), 'MG356', 'columns'),
    ],
)  # fmt: skip
def test_yolo_says_why_it_refuses_a_row(log: str, code: str, first: str) -> None:
    found = explain_log(log)
    assert (found.signature.code, supported(found)[:1]) == (code, [first])


@pytest.mark.parametrize(
    'log',
    [
        corrupt('non-normalized or out of bounds coordinates [     1.2081      1.6417]'),
        corrupt('non-normalized or out of bounds coordinates [1.98]', 'val: WARNING: '),
        raised(
            'AssertionError: non-normalized or out of bounds coordinate labels: /d/k.txt',
            '/w/yolor/datasets.py',
            'assert (l[:, 1:] <= 1).all()',
        ),
    ],
)
def test_numbers_near_one_may_also_be_columns_of_another_task(log: str) -> None:
    found = explain_log(log)
    assert (found.signature.code, supported(found), found.causes[0].cause.key) == ('MG356', [], 'columns')


def index(value: int, size: int, file: str, code: str) -> str:
    return raised(f'RuntimeError: index {value} is out of bounds for dimension 1 with size {size}', file, code)


@pytest.mark.parametrize(
    ('log', 'first', 'standing', 'never'),
    [
        (index(1501, 751, '/w/fast-reid/loss.py', 'y.scatter_(1, pids, 1)'), 'identities', SUPPORTED, 'value-one-more'),
        (index(640, 576, '/w/veri/train.py', 'one_hot.scatter_(1, pid.view(-1, 1), 1)'), 'identities', SUPPORTED, 'value-one-more'),
        (index(19, 7, '/w/unet/dice.py', 'y.scatter_(1, mask, 1)'), 'value-raw', POSSIBLE, 'identities'),
        (
            index(255, 3, '/w/transformers/models/mask2former/modeling.py', 'cost_class = -p[:, labels]'),
            'masks-0-255', POSSIBLE, 'ids-as-labels',
        ),
        (index(255, 2, '/w/smp/train.py', 'y.scatter_(1, mask, 1)'), 'masks-0-255', POSSIBLE, 'ids-as-labels'),
        (
            'Epoch [1][10/80] loss: 812.5, grad_norm: 90123456.5\nEpoch [1][20/80] loss: nan, grad_norm: nan\n',
            'diverged', SUPPORTED, '',
        ),
        ('step 10 total_loss: 7300412.0\nstep 20 total_loss: nan\n', 'diverged', SUPPORTED, ''),
        (
            'step 1 loss: 41230991\n'
            + raised('FloatingPointError: Loss became infinite or NaN at iteration=2!', '/w/d2/train_loop.py', 'raise'),
            'diverged', SUPPORTED, '',
        ),
        (
            'index created!\n'
            + raised('ValueError: num_samples should be a positive integer value, but got num_samples=0', '/w/birds/coco.py'),
            'key-missing', POSSIBLE, '',
        ),
    ],
)  # fmt: skip
def test_the_log_puts_the_cause_first(log: str, first: str, standing: str, never: str) -> None:
    found = explain_log(log)
    names = dict(keys(found))
    assert names[first] == standing
    assert never not in names
    assert list(names).index(first) == 0 or (standing == POSSIBLE and list(names).index(first) < 3)


@pytest.mark.parametrize(
    'log',
    [
        TABLE,
        raised('IndexError: Target 9 is out of bounds.', '/w/mmseg/losses.py'),
        raised('ValueError: need at least one array to concatenate', '/w/mmdet/samplers.py'),
    ],
)
def test_a_config_of_another_version_did_not_end_a_training_of_that_version(log: str) -> None:
    old = diagnose(config=ReadConfig(dict(data=dict(train=dict(img_dir='a', ann_dir='b')))))
    assert 'MG227' in [finding.code for finding in old]
    found = explain_log(log, OutsideFacts((*old,)))
    assert 'unforeseen' not in dict(keys(found))
    assert 'MG227' in [finding.code for finding in found.more]


@pytest.mark.parametrize(
    ('declared', 'values'),
    [
        ('[0, 1, 2, 3]', '[  0.   1.   2. 205.]'),
        ('[0, 1]', '[0, 1, 2]'),
        ('[0, 1, 2, 3, 4]', '[0 11 12 13 14]'),
    ],
)
def test_values_without_255_are_not_masks_of_255(declared: str, values: str) -> None:
    refuted = [cause.key for cause in explain_log(UNEXPECTED.format('d.nii.gz', declared, values)).refuted]
    assert 'masks-foreground' in refuted


def table_of(*rows: Tuple[str, str, str]) -> str:
    text = ''.join(f'| {name:>8} | {iou:>5} | {acc:>5} |\n' for name, iou, acc in rows)
    return f'+----------+-------+-------+\n|  Class   |  IoU  |  Acc  |\n+----------+-------+-------+\n{text}'


@pytest.mark.parametrize(
    ('rows', 'decided'),
    [
        ([('0', '0.0', 'nan'), ('1', '81.2', '90.3')], False),
        ([('sky', '77.1', '83.0'), ('void', '0.0', 'nan'), ('tree', '64.9', '70.2')], False),
        ([('a', '0.0', 'nan'), ('b', '0.0', 'nan'), ('c', '50.0', '61.0')], False),
        ([('bg', '99.1', '99.9'), ('crack', 'nan', 'nan')], True),
        ([('x', '0.0', 'nan'), ('y', 'nan', 'nan'), ('z', '40.4', '52.0')], True),
    ],
)
def test_a_class_that_is_predicted_may_only_be_left_out_of_the_evaluation(
    rows: List[Tuple[str, str, str]], decided: bool
) -> None:
    shown = keys(explain_log(table_of(*rows)))
    assert {('no-file-has-it', POSSIBLE), ('metric-ignores', POSSIBLE)} <= {*shown}
    assert shown[0][0] == ('no-file-has-it' if decided else 'metric-ignores')


@pytest.mark.parametrize(
    ('line', 'standing'),
    [
        ('assert label.max() <= 1, \\', POSSIBLE),
        ('assert label[label != ignore_index].max() <= 1, \\', None),
        ('', POSSIBLE),
    ],
)
def test_a_check_that_leaves_out_ignored_pixels_does_not_count_padding(line: str, standing: Optional[str]) -> None:
    message = 'AssertionError: For pred with shape [N, 1, H, W], its label must have at most 2 classes'
    found = explain_log(raised(message, '/w/mmseg/models/losses/cross_entropy_loss.py', line))
    assert found.signature.code == 'MG413'
    assert dict(keys(found)).get('padding-counted') == standing
    assert 'value-negative' not in dict(keys(found))
