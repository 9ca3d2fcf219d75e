"""What a log says besides its error decides between causes; signs of a training that does not learn are seen."""

# ruff: noqa: E501  quoted lines are not broken
from __future__ import annotations

from typing import Dict, List, Tuple

import pytest
from explained_logs import explain_log, find_code, raised

from mmguard.commands.explain.explanation import POSSIBLE, SUPPORTED, Explanation


def keys(found: Explanation) -> List[str]:
    return [weighed.cause.key for weighed in found.causes]


def refuted(found: Explanation) -> List[str]:
    return [cause.key for cause in found.refuted]


UNUSED = 'RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.\n'
TIMEOUT = (
    '[rank{0}]:[E ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: '
    'WorkNCCL(SeqNum=9, OpType=ALLGATHER, Timeout(ms)=600000) ran for 600063 milliseconds before timing out.\n'
)


@pytest.mark.parametrize(
    ('log', 'first', 'never'),
    [
        (f'num_classes=7\n{raised("IndexError: Target 7 is out of bounds.")}', 'value-one-more', 'value-raw'),
        (f'num_classes: 4\n{raised("IndexError: Target 90 is out of bounds.")}', 'value-raw', 'value-one-more'),
        (f'n_classes = 5\n{raised("IndexError: Target -1 is out of bounds.")}', 'value-negative', 'value-one-more'),
        ('model nc=80 -> nc=7\n' + raised('IndexError: Target 7 is out of bounds.'), 'value-one-more', 'masks-0-255'),
        # The value alone.
        (raised('IndexError: Target 147 is out of bounds.'), 'value-raw', 'masks-0-255'),
        ('num_classes: 21\n' + raised('IndexError: Target 255 is out of bounds.'), 'value-void', 'masks-0-255'),
        (raised('IndexError: index 255 is out of bounds for dimension 1 with size 19', '/w/loss.py'), 'value-void', 'masks-0-255'),
    ],
)  # fmt: skip
def test_the_number_of_classes_and_the_value_are_compared(log: str, first: str, never: str) -> None:
    found = explain_log(log)
    assert keys(found)[0] == first
    assert never in refuted(found)


BOXES_LOG = ''.join(
    f'Epoch [1][{n}/90] lr: 1e-3, loss_cls: {{{k}}}, loss_bbox: {{{k}}}, loss: {{{k}}}\n'
    for k, n in enumerate([30, 60, 90])
)
NOT_CLASSES = {'masks-0-255', 'value-void', 'reading', 'palette-colors', 'void'}
KERNEL = (
    '/a/Loss.cu:247: nll_loss_forward: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.\n'
)


@pytest.mark.parametrize(
    'log',
    [
        raised('AssertionError: Label class 31 exceeds nc=4 in /d/birds.yaml.'),
        'Overriding model.yaml nc=80 with nc=6\n'
        + raised('IndexError: Target 6 is out of bounds.', 'ultralytics/nn/a.py'),
        KERNEL + raised('RuntimeError: CUDA error: device-side assert triggered', '/w/modeling/roi_heads/fast_rcnn.py'),
        raised(
            'IndexError: index 9 is out of bounds for dimension 1 with size 7', '/w/rt_detr/matcher.py', 'cost_class[x]'
        ),
    ],
)
def test_labels_of_boxes_have_no_void_and_no_colors(log: str) -> None:
    assert not {*keys(explain_log(log))} & NOT_CLASSES


BOXES2 = 'assert (boxes2[:, 2:] >= boxes2[:, :2]).all()'
SEEN_BY_YOLO = 'AssertionError: Label class {0} exceeds nc={0} in /d/{1}.yaml. Possible class labels are 0-{2}'


@pytest.mark.parametrize(
    ('log', 'first', 'later', 'never'),
    [
        # The map of one's own code, or the one that is made of `categories`.
        (raised('KeyError: 3', '/w/yolact/data/coco.py', 'label = self.label_map[label] - 1'), 'own-map', ['unlisted-id'], ''),
        (raised('KeyError: 0', '/w/ssd.py', 'labels = [label2idx[one] for one in ids]  # cat_ids'), 'own-map', ['unlisted-id'], ''),
        (raised('KeyError: 91', '/w/mmdet/coco.py', "self.cat2label[ann['category_id']]"), 'unlisted-id', ['own-map'], 'unknown-name'),
        # Predictions are looked at first: they are finite.
        (raised('AssertionError', '/w/deim/box_ops.py', BOXES2), 'panoptic-png', ['box-format'], 'nan-predictions'),
        (
            raised('ValueError: boxes2 must be in [x0, y0, x1, y1] (corner) format, but got tensor([[9., 4., 3., 7.]])', '/opt/transformers/loss.py'),
            'panoptic-png', ['box-format'], 'nan-predictions',
        ),
        # 255 of masks with two values, or of void.
        (raised('IndexError: Target 255 is out of bounds.'), 'masks-0-255', ['value-void'], 'value-negative'),
        ('n_classes=2\n' + raised('IndexError: Target 255 is out of bounds.', '/w/unet/train.py'), 'masks-0-255', ['value-void'], ''),
        (raised('IndexError: index 255 is out of bounds for dimension 1 with size 2', '/w/lovasz_loss.py', 'p.gather(1, y)'), 'masks-0-255', ['value-void'], ''),
        # The highest label of all files: one row is enough.
        (raised(SEEN_BY_YOLO.format(12, 'pets', 11), '/w/yolov5/train.py'), 'slip', ['value-one-more'], 'masks-0-255'),
        ('ultralytics 8\n' + raised('ValueError: label class 80 exceeds dataset class count 80. Possible class labels are 0-79'), 'slip', [], ''),
    ],
)  # fmt: skip
def test_the_less_harmful_of_causes_that_a_log_does_not_separate_comes_first(
    log: str, first: str, later: List[str], never: str
) -> None:
    found = explain_log(log)
    assert keys(found)[0] == first
    assert {*later} <= {*keys(found)}
    assert not never or never in refuted(found)
    assert {one.standing for one in found.causes} == {POSSIBLE}
    assert all(one.cause.look for one in found.causes[:2])


@pytest.mark.parametrize('file', ['solov2_head.py', 'losses.py', 'hungarian_matcher.py'])
@pytest.mark.parametrize(
    'error',
    [
        'RuntimeError: torch.cat(): expected a non-empty list of Tensors',
        'NotImplementedError: There were no tensor arguments to this function (e.g., you passed an empty list of Tensors)',
        'RuntimeError: grid_sampler(): expected 4D or 5D input, but got input with sizes [0, 1] and grid with sizes [0, 9]',
    ],
)
def test_an_empty_list_in_a_loss_is_not_an_empty_data_set(file: str, error: str) -> None:
    found = explain_log(raised(error, f'/w/models/{file}', 'x = torch.cat(found).mean()'))
    assert keys(found)[0] == 'empty-batch'
    assert {'class-names', 'all-filtered', 'key-missing'} <= {*refuted(found)}
    elsewhere = explain_log(raised(error, '/w/data/group_sampler.py', 'x = torch.cat(found)'))
    assert keys(elsewhere)[0] == 'class-names'


@pytest.mark.parametrize(
    ('error', 'key', 'tagged'),
    [
        ('ValueError: Expected x_max for bbox (0.9, 0.5, 1.004, 0.6, 0) to be in the range [0.0, 1.0], got 1.004.', 'boxes-area', False),
        ('ValueError: Expected y_min for bbox (0.1, -0.01, 0.2, 0.6) to be in the range [0.0, 1.0], got -0.01.', 'boxes-area', False),
        ('ValueError: Expected y_min for bbox (0.2, 61.5, 0.7, 90.1) to be in the range [0.0, 1.0], got 61.5.', 'box-format', False),
        ('ValueError: Target size (torch.Size([2, 1, 512, 512])) must be the same as input size (torch.Size([2, 1, 128, 128]))', 'not-resized', False),
        ('ValueError: Target size (torch.Size([2, 1, 500, 375])) must be the same as input size (torch.Size([2, 1, 480, 360]))', 'label-size', False),
        ('AssertionError: All bounding boxes should have positive height and width. Found invalid box [31.5, 90.0, 44.5, 90.0] for target at index 1.', 'boxes-area', False),
        ('ValueError: All bounding boxes should have positive height and width. Found invaid box [610.0, 80.0, 55.25, 120.0] for target at index 0.', 'box-format', False),
        ('RuntimeError: expected scalar type Long but found Float', 'image-transform', True),
        ("RuntimeError: Expected object of scalar type Long but got scalar type Int for argument #2 'target'", 'integer-type', True),
        ("RuntimeError: Expected object of scalar type Long but got scalar type Float for argument #3 'index'", 'image-transform', True),
        ('IndexError: tensors used as indices must be long, int, byte or bool tensors', 'empty-tensor', False),
        ('RuntimeError: only batches of spatial targets supported (3D tensors) but got targets of size: : [4, 11, 96, 96]', 'one-hot', False),
        ('AssertionError: A prediction has class=7, but the dataset only has 3 classes', 'head-classes', True),
        ('KeyError: "Encountered category_id=7 but this id does not exist in \'categories\' of the json file."', 'unlisted-id', True),
        ('AssertionError: A prediction has category_id=12, which is not available in the dataset.', 'head-classes', True),
        ("AssertionError: The number of subfolders (5) doesn't match the number of specified classes (1000).", 'default-classes', True),
    ],
)  # fmt: skip
def test_numbers_of_the_message_decide_and_only_what_it_says_is_tagged(error: str, key: str, tagged: bool) -> None:
    (first, *_) = explain_log(raised(error, '/w/data/load_coco_json.py')).causes
    assert first.cause.key == key
    assert (first.standing == SUPPORTED) is tagged


@pytest.mark.parametrize('code', ['tp = torch.sum(t * p, dim=(2, 3))', 'x.permute(0, 3, 1, 2)', 'y = pool(x, (1, 3))'])
def test_numbers_of_the_code_are_not_those_of_a_shape(code: str) -> None:
    error = 'RuntimeError: The size of tensor a (4) must match the size of tensor b (18) at non-singleton dimension 1'
    assert {one.standing for one in explain_log(raised(error, '/w/losses.py', code)).causes} == {POSSIBLE}


@pytest.mark.parametrize(('value', 'first'), [(61, 'raw-ids'), (23, 'raw-ids'), (144, 'raw-ids'), (255, 'image-mode')])
def test_a_table_is_shorter_than_the_values_or_the_file_is_read_as_another(value: int, first: str) -> None:
    error = f'IndexError: index {value} is out of bounds for axis 0 with size 20'
    assert keys(explain_log(raised(error, '/w/data.py', 'y = table[ids]')))[0] == first


@pytest.mark.parametrize('key', ['bbox', 'segmentation', 'image_id', 'file_name'])
@pytest.mark.parametrize('code', ["cat2label[a['category_id']]", "names.append(class_to_idx[x['id']])"])
def test_a_missing_key_of_a_record_is_not_a_class_name(key: str, code: str) -> None:
    assert find_code(raised(f"KeyError: '{key}'", code=code)) == 'MG476'


@pytest.mark.parametrize('line', ['before_epoch:199 - ---> start train epoch1', 'trainer.after_epoch:12 done'])
def test_a_line_number_is_not_an_epoch(line: str) -> None:
    assert 'unused-everywhere' in keys(explain_log(f'2026-01-01 10:00:00 | INFO | {line}\n{raised(UNUSED)}'))


@pytest.mark.parametrize(
    ('file', 'command'),
    [
        ('/opt/site-packages/mmseg/a.py', 'mmguard scan CONFIG'),
        ('/opt/site-packages/ultralytics/a.py', 'mmguard scan data.yaml'),
        ('/opt/site-packages/nnunetv2/a.py', 'mmguard scan $nnUNet_raw/DatasetXXX_NAME'),
        ('/opt/site-packages/detectron2/a.py', 'mmguard scan DATA --num-classes N'),
        ('/home/me/train.py', 'mmguard scan CONFIG'),
    ],
)
def test_the_command_is_for_the_framework(file: str, command: str) -> None:
    assert explain_log(raised('IndexError: Target 9 is out of bounds.', file)).command == command


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
    # It does not prove that a rank skipped a collective: one may be slow.
    assert (keys(found)[0] == 'other-collective') is is_validation
    assert 'slow-rank' in keys(found)
    assert ('rank-without-targets' in refuted(found)) is is_validation
    assert {one.standing for one in found.causes} == {POSSIBLE}


@pytest.mark.parametrize('operation', ['BROADCAST', 'BARRIER', 'ALLREDUCE'])
def test_ranks_that_gather_nothing_in_a_validation_wait_for_a_slow_one(operation: str) -> None:
    waits = TIMEOUT.format(1).replace('ALLGATHER', operation)
    assert keys(explain_log(f'validation: 3/4\n{waits}'))[0] == 'slow-rank'


@pytest.mark.parametrize(
    ('line', 'first'),
    [
        ('Epoch [1][50/90]\tlr: 1e-3, loss_cls: 0.7, loss_bbox: nan, loss: nan\n', 'boxes'),
        ("{'loss_classifier': tensor(1.5), 'loss_rpn_box_reg': tensor(nan), 'loss_mask': tensor(0.4)}\n", 'boxes'),
        ('step 9 cls_loss: 0.31 giou_loss: nan dfl_loss: 0.2 loss: nan\n', 'boxes'),
        ('      3/90      2.1G        nan      1.311      0.912         14        512: 100%|##| 9/9\n', 'boxes'),
        ('Epoch [1][50/90]\tlr: 1e-3, loss_cls: nan, loss_bbox: nan, loss: nan\n', 'diverged'),
        (BOXES_LOG.format(3.9, 2.7, 'nan'), 'boxes'),
        (BOXES_LOG.format(3.9, 81.5, 'nan'), 'diverged'),
        (
            '      1/90      2.1G        nan        nan        nan         14        512: 100%|##| 9/9\n',
            'half-precision',
        ),
        ("{'loss_cls': tensor(nan), 'loss_box_reg': tensor(0.31)}\n", 'diverged'),
        ('AMP: checks passed\n  1/90  2.1G  nan  nan  nan  14  512: 100%|##| 9/9\n', 'half-precision'),
    ],
)
def test_a_loss_that_is_nan_orders_the_causes_and_proves_none(line: str, first: str) -> None:
    found = explain_log(line)
    assert find_code(line) == 'MG442'
    assert keys(found)[0] == first
    assert {'boxes', 'diverged'} <= {*keys(found)}
    assert {one.standing for one in found.causes} == {POSSIBLE}


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


ERRORS = [
    ("AttributeError: 'BitMasks' object has no attribute 'polygons'", 'MG357'),
    ("AttributeError: 'BitmapMasks' object has no attribute 'polygons'", 'MG357'),
    ("AttributeError: 'PolygonMasks' object has no attribute 'masks'", 'MG357'),
    ('ValueError: No sampling location available.', 'MG358'),
    ('ValueError: Num foreground 0, Num background 99, unable to generate class balanced samples.', 'MG358'),
    ('RuntimeError: ROIs in ROIAlign cannot have non-negative size!', 'MG480'),
    ("KeyError: 'isthing'", 'MG476'),
    ('AssertionError: ground truth has different shape (torch.Size([2, 1, 8, 8])) from input (torch.Size([2, 1, 4, 4]))', 'MG426'),
]  # fmt: skip


@pytest.mark.parametrize(('error', 'code'), ERRORS)
def test_errors_of_loaders_and_heads_are_known(error: str, code: str) -> None:
    assert find_code(raised(error, code="x = self.coco.load_cats(ids=cat_id)[0]['isthing']")) == code


@pytest.mark.parametrize(
    'frame',
    [
        '  File "/opt/lib/smp/utils/functional.py", line 34, in iou',
        '[rank1]:   File "C:\\users\\me\\metrics\\functional.py", line 7, in f_score',
        '/home/me/nets/functional.py in iou(pr, gt, eps)',
    ],
)
def test_a_frame_is_quoted_as_the_log_has_it(frame: str) -> None:
    mark = frame.partition(' ')[0] + ' ' if frame[0] == '[' else ''
    error = 'RuntimeError: The size of tensor a (4) must match the size of tensor b (6) at non-singleton dimension 1'
    rows = [
        f'{mark}Traceback (most recent call last):',
        frame,
        f'{mark}    both = torch.sum(gt * pr)',
        f'{mark}{error}',
    ]
    (first, *_) = explain_log('\n'.join(rows)).causes
    assert first.cause.key == 'metric-one-hot'
    assert first.evidence.line == 2
    assert first.evidence.text == frame[len(mark) :].strip()
