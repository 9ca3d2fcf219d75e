"""Public reports: their error as it was on the screen, with the lines of the traceback that decide.

Where the words of an error leave several causes open, the first holds the codes of what was behind it; which of them it
is, is for the scan to say.
"""

# ruff: noqa: E501  quoted lines are not broken
from __future__ import annotations

from typing import Dict, Tuple

import pytest

from mmguard.findings.finding import Finding
from mmguard.tools.explain.explained import Known, explain_text

ASSERT = 'RuntimeError: CUDA error: device-side assert triggered'
ILLEGAL = 'RuntimeError: CUDA error: an illegal memory access was encountered'
NLL = '../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.'
INDEX = '../aten/src/ATen/native/cuda/IndexKernel.cu:92: operator(): block: [1,0,0], thread: [32,0,0] Assertion `-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.'
SCATTER = '../aten/src/ATen/native/cuda/ScatterGatherKernel.cu:365: operator(): block: [0,0,0], thread: [5,0,0] Assertion `idx_dim >= 0 && idx_dim < index_size && "index out of bounds"` failed.'


def raised(error: str, *frames: Tuple[str, str]) -> str:
    rows = ''.join(f'  File "{file}", line 10, in call\n    {code}\n' for file, code in frames)
    return f'Traceback (most recent call last):\n{rows}{error}\n'


SEG_LOSS = (
    '/opt/lib/python3.8/site-packages/mmseg/models/losses/cross_entropy_loss.py',
    'avg_factor = label.numel() - (label == ignore_index).sum().item()',
)
MATCHER = ('/home/me/models/matcher.py', 'cost_class = -out_prob[:, tgt_ids]')
GIOU = ('/home/me/util/box_ops.py', 'assert (boxes1[:, 2:] >= boxes1[:, :2]).all()')
RESIZE = (
    '/opt/lib/python3.8/site-packages/mmseg/ops/wrappers.py',
    'return F.interpolate(input, size, scale_factor, mode, align_corners)',
)
NUM = (
    'AssertionError: The `num_classes` ({}) in {} of MMDataParallel does not matches the length of `CLASSES` {}) in {}'
)
FILTERED = (
    '/opt/lib/python3.8/site-packages/mmdet/datasets/samplers/group_sampler.py',
    'indices = np.concatenate(indices)',
)
NAN = '2026/01/01 12:00:00 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.978e-03, loss_rpn_cls: 0.5, {}, loss: nan\n'

REPORTS: Dict[str, Tuple[str, str]] = {
    'mmsegmentation#3864': ('MG214', f'{INDEX}\n' + raised(ASSERT, SEG_LOSS, ('a.py', 'class_weight=class_weight'))),
    'mmsegmentation#3574': (
        'MG214',
        f'{INDEX}\n'
        + raised(
            ASSERT,
            (
                '/opt/lib/python3.8/site-packages/mmseg/models/losses/accuracy.py',
                'correct = correct[:, target != ignore_index]',
            ),
        ),
    ),
    'mmsegmentation#3492': (
        'MG214',
        raised(
            'IndexError: index 255 is out of bounds for dimension 0 with size 19',
            (
                '/opt/mmseg/models/losses/cross_entropy_loss.py',
                'label_weights = torch.stack([class_weight[cls] for cls in label])',
            ),
        ),
    ),
    'mmsegmentation#3811': (
        'MG207',
        f'{INDEX}\n'
        + raised(
            ASSERT,
            (
                '/opt/lib/python3.8/site-packages/mmdet/models/dense_heads/mask2former_head.py',
                'class_weight = cls_scores.new_tensor(self.class_weight)',
            ),
        ),
    ),
    'mmsegmentation#2607': (
        'MG215',
        f'{SCATTER}\n'
        + raised(
            ASSERT,
            ('/opt/mmseg/core/seg/sampler/ohem_pixel_sampler.py', 'tmp_seg_label = seg_label.clone().unsqueeze(1)'),
        ),
    ),
    'mmsegmentation#3609': ('MG106', raised('IndexError: Target 7 is out of bounds.', SEG_LOSS)),
    'mmsegmentation#1719': (
        'MG120',
        raised(
            'ValueError: Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of [64, 64] and output size of torch.Size([512, 512, 3]). Input is 2D, size is 3',
            RESIZE,
        ),
    ),
    'mmsegmentation#1048': (
        'MG120',
        raised('AssertionError: Input and output must have the same number of spatial dimensions', RESIZE),
    ),
    'mmsegmentation#970': (
        'MG120',
        raised(
            'ValueError: too many values to unpack (expected 2)',
            ('/opt/mmseg/ops/wrappers.py', 'output_h, output_w = tuple(int(x) for x in size)'),
        ),
    ),
    'mmsegmentation#1338': ('MG136', raised(ILLEGAL, SEG_LOSS)),
    'mmsegmentation#566': ('MG107', raised(ILLEGAL, SEG_LOSS)),
    'mmsegmentation#42-a': ('MG127', raised(ILLEGAL, SEG_LOSS)),
    'mmsegmentation#42-b': ('MG201', raised(ILLEGAL, SEG_LOSS)),
    'NVlabs/SegFormer#92': ('MG101', raised(ASSERT, SEG_LOSS)),
    'mmsegmentation#578': (
        'MG128',
        raised(
            'ZeroDivisionError: division by zero',
            ('/opt/mmseg/models/losses/utils.py', 'loss = loss.sum() / avg_factor'),
        ),
    ),
    'mmdetection#4828': ('MG203', raised(NUM.format(3, 'Shared2FCBBoxHead', 80, 'CocoDataset'))),
    'mmdetection#8734': ('MG201', raised(NUM.format(80, 'Shared2FCBBoxHead', 1, 'CocoDataset'))),
    'mmdetection#6532': ('MG203', raised(NUM.format(1, 'Shared2FCBBoxHead', 8, 'RepeatDataset'))),
    'mmdetection#9606': ('MG203', raised(NUM.format(1, 'SSDHead', 80, 'RepeatDataset'))),
    'mmdetection#6218': ('MG201', raised(NUM.format(80, 'FCNMaskHead', 3, 'CocoDataset'))),
    'mmdetection#9610': ('MG140', raised('ValueError: need at least one array to concatenate', FILTERED)),
    'mmdetection#3628': ('MG145', raised('ValueError: need at least one array to concatenate', FILTERED)),
    'mmdetection#3068': (
        'MG202',
        raised(
            'IndexError: list index out of range',
            ('/opt/mmdet/core/visualization/image.py', 'label_text = class_names[label]'),
        ),
    ),
    'LiWentomng/BoxInstSeg#9': (
        'MG207',
        raised(
            'RuntimeError: weight tensor should be defined either for all 2 classes or no classes but got weight tensor of shape: [81]'
        ),
    ),
    'mmdetection#3397': ('MG109', NAN.format('loss_bbox: nan') * 5),
    'mmdetection#7116': (
        'MG146',
        raised(
            'AssertionError: loss log variables are different across GPUs!\nrank 0 len(log_vars): 4 keys: loss_cls,loss_bbox,loss'
        ),
    ),
    'mmdetection#2047': (
        'MG138',
        raised(
            ASSERT,
            (
                '/opt/mmdet/core/bbox/assigners/max_iou_assigner.py',
                'assigned_labels[pos_inds] = gt_labels[assigned_gt_inds[pos_inds] - 1]',
            ),
        ),
    ),
    'lightly-ai/lightly-train#446': (
        'MG146',
        raised(
            'RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[21]), but Rank 1 is running collective: CollectiveFingerPrint(OpType=ALLREDUCE, TensorShape=[39])'
        ),
    ),
    'lyuwenyu/RT-DETR#70': ('MG138', f'{INDEX}\n' + raised(ASSERT, GIOU)),
    'lyuwenyu/RT-DETR#99': ('MG138', f'{INDEX}\n' + raised(ASSERT, MATCHER)),
    'roboflow/rf-detr#413': ('MG138', f'{INDEX}\n' + raised(ASSERT, MATCHER)),
    'facebookresearch/detr#28': ('MG138', f'{INDEX}\n' + raised('AssertionError', GIOU)),
    'facebookresearch/detr#190': (
        'MG138',
        raised('IndexError: index 3 is out of bounds for dimension 0 with size 3', MATCHER),
    ),
    'ArgoHA/D-FINE-seg#4': ('', 'epoch 15 loss: nan lr 0.0002\n' + raised('AssertionError', GIOU)),
    'kuangliu/pytorch-retinanet#24': (
        'MG117',
        raised(
            'IndexError: index 81 is out of bounds for dimension 0 with size 80',
            ('/home/me/utils.py', 'return y[labels]  # one_hot_embedding'),
        ),
    ),
    'kuangliu/pytorch-retinanet#24, torch 0.2': (
        'MG117',
        raised(
            'RuntimeError: index 85 is out of range for dimension 0 (out of range at /pytorch/aten/src/TH/THGeneral.c:277)',
            ('/home/me/utils.py', 'return y[labels]  # one_hot_embedding'),
        ),
    ),
    'zylo117/Yet-Another-EfficientDet-Pytorch#373': (
        'MG102',
        raised(
            'IndexError: index 2 is out of bounds for dimension 1 with size 2',
            (
                '/home/me/efficientdet/loss.py',
                'targets[positive_indices, assigned_annotations[positive_indices, 4].long()] = 1',
            ),
        ),
    ),
    'facebookresearch/detectron2#546': (
        'MG201',
        raised(
            'IndexError: list index out of range',
            ('/opt/detectron2/utils/visualizer.py', 'labels = [class_names[i] for i in classes]'),
        ),
    ),
    'nnUNet#2500': ('MG185', 'Unexpected labels in nnunet\nfree(): invalid pointer\n'),
    'nnUNet#2500, its values': (
        'MG116',
        'Error: Unexpected labels found in file a.nii.gz.\nExpected: [0, 1, 2, 3, 4]\nFound: [0 2 3 4 5]\n',
    ),
    'nnUNet#1777': ('MG103', 'Error: Unexpected labels found in file a.png.\nExpected: [0, 1]\nFound: [  0. 255.]\n'),
    'nnUNet#2404': (
        'MG106',
        'Error: Unexpected labels found in file a.png.\nExpected: [0, 1]\nFound: [  0.   1.   2.   3.   4.   5.   6.   7.   8.   9.  10.  11.  12.  13.  14.]\n',
    ),
    'nnUNet#1007': (
        'MG131',
        'Error: Unexpected labels found in file a.nii.gz.\nExpected: [0, 1]\nFound: [-1024. -1023. -1022.]\n',
    ),
    'nnUNet#946': ('MG181', 'Error: Unexpected labels found in file a.nii.gz.\nExpected: []\nFound: [0. 1.]\n'),
    'nnUNet#1183': (
        'MG118',
        'Error: Unexpected labels found in file BraTS_001.nii.gz.\nExpected: [0, 1, 2, 3]\nFound: [0. 1. 2. 4.]\n',
    ),
    'nnUNet#274': (
        'MG116',
        f'{SCATTER}\n'
        + raised(ASSERT, ('/opt/nnunet/training/loss_functions/dice_loss.py', 'y_onehot.scatter_(1, gt, 1)')),
    ),
    'nnUNet#898': (
        'MG107',
        raised(
            'RuntimeError: index 655 is out of bounds for dimension 1 with size 2',
            ('/opt/nnunet/training/loss_functions/dice_loss.py', 'y_onehot.scatter_(1, gt, 1)'),
        ),
    ),
    'hszhao/semseg#29': ('MG106', f'{NLL}\n' + raised(ASSERT)),
    'chenxi116/DeepLabv3.pytorch#17': ('MG101', raised(ILLEGAL)),
    'XuJiacong/PIDNet#65': (
        'MG128',
        raised(
            'IndexError: index -1 is out of bounds for dimension 0 with size 0',
            ('/home/me/utils/criterion.py', 'min_value = pred[min(self.min_kept, pred.numel() - 1)]'),
        ),
    ),
    'LiheYoung/UniMatch#29': ('MG103', f'{NLL}\n' + raised(ASSERT)),
    'milesial/Pytorch-UNet#258': ('MG102', f'{NLL}\n' + raised(ASSERT)),
    'PaddlePaddle/PaddleSeg#2270': (
        'MG104',
        raised(
            'OSError: (External) CUDA error(719), unspecified launch failure.',
            ('/opt/paddleseg/models/losses/dice_loss.py', 'labels_one_hot = F.one_hot(labels, num_classes=num_class)'),
        ),
    ),
    'pytorch/vision#8376': (
        'MG109',
        raised(
            'AssertionError: All bounding boxes should have positive height and width. Found invalid box [500.0, 728.0, 508.0, 728.0] for target at index 0.'
        ),
    ),
    'sovit-123/fasterrcnn#44': (
        'MG109',
        raised('ValueError: x_max is less than or equal to x_min for bbox (0.25, 0.1, 0.25, 0.2, 1).'),
    ),
    'CompVis/taming-transformers#8': (
        'MG120',
        raised(
            'IndexError: index 183 is out of bounds for axis 0 with size 182',
            ('/home/me/taming/data/base.py', 'onehot = np.eye(self.n_labels)[segmentation]'),
        ),
    ),
    'endernewton/tf-faster-rcnn#107': (
        'MG109',
        'iter: 20 / 70000, total loss: nan\n >>> rpn_loss_cls: 0.69\n >>> loss_box: nan\n',
    ),
}

#: The words alone leave it open, and other causes come up more often: which it is, only the labels say.
OPEN = {
    'mmsegmentation#42-a': 'a stray value of an annotator',
    'mmsegmentation#42-b': 'num_classes of the base config',
    'mmsegmentation#566': 'the class list was cut to two names',
    'milesial/Pytorch-UNet#258': 'the background was not counted',
    'mmdetection#3628': 'images smaller than min_size',
    'NVlabs/SegFormer#92': 'raw values; in MMSegmentation class_weight is as likely',
}  # fmt: skip


def first_codes(text: str) -> Tuple[str, Tuple[str, ...]]:
    found = explain_text([text])
    assert found is not None
    assert found.signature is not None, found.raised.said
    first = found.causes[0].cause
    return first.text, first.codes


@pytest.mark.parametrize('name', [name for name in REPORTS if name not in OPEN])
def test_the_true_cause_stands_first(name: str) -> None:
    code, text = REPORTS[name]
    words, codes = first_codes(text)
    assert code in codes if code else 'diverged' in words, words


#: Further errors as they were on the screen, and what their first cause says.
SAID = {
    'mmdetection#4828': ('falls back to its own', REPORTS['mmdetection#4828'][1]),
    'mmdetection#8734': ('one head was not changed', REPORTS['mmdetection#8734'][1]),
    'mmdetection#6218': ('one head was not changed', REPORTS['mmdetection#6218'][1]),
    'mmdetection#3563': (
        'without any target',
        '[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3127, OpType=ALLREDUCE, '
        'Timeout(ms)=1800000) ran for 1805204 milliseconds before timing out.\n',
    ),
    'mmsegmentation#42-a': (
        'values that are no class',
        raised(ILLEGAL, ('/opt/mmcv/runner/hooks/optimizer.py', "runner.outputs['loss'].backward()")),
    ),
    'mmcv, an operation': (
        'custom operation',
        raised(ILLEGAL, ('/opt/mmcv/ops/modulated_deform_conv.py', 'ext_module.modulated_deform_conv_forward(')),
    ),
    'ArgoHA/D-FINE-seg#4': ('predictions are NaN', raised('AssertionError', GIOU)),
    'roboflow/rf-detr#413': ('raw ids', f'{SCATTER}\n' + raised(ASSERT, MATCHER)),
    'divamgupta/image-segmentation-keras#117': (
        'cv2.imread reads its colours',
        raised('AssertionError: The pixel values of seg image are out of range: 128 found while n_classes is 12'),
    ),
    'keras, the background not counted': (
        'one too small',
        raised('AssertionError: The pixel values of seg image are out of range: 12 found while n_classes is 12'),
    ),
    'ArgoHA/D-FINE-seg#4, what to do': ('Lower the learning rate', raised('AssertionError', GIOU)),
    'open-edge-platform/geti#3264': (
        'another ignore_index',
        raised('ValueError: The highest label in `target` should be smaller than `num_classes`.'),
    ),
}


@pytest.mark.parametrize('name', SAID)
def test_the_first_cause_says_what_the_log_shows(name: str) -> None:
    words, text = SAID[name]
    assert words in first_codes(text)[0]


def test_of_causes_with_one_finding_the_one_that_the_log_points_to_stands_first() -> None:
    found = Finding('MG201', 'FCNMaskHead has 80 classes, the data set 3', '', '', 0.9)
    explained = explain_text([REPORTS['mmdetection#6218'][1]], Known(findings=(found,)))
    assert explained is not None
    assert 'one head was not changed' in explained.causes[0].cause.text


@pytest.mark.parametrize('name', OPEN)
def test_where_the_words_leave_it_open_the_true_cause_is_among_them(name: str) -> None:
    code, text = REPORTS[name]
    found = explain_text([text])
    assert found is not None
    assert any(code in weighed.cause.codes for weighed in found.causes)


def test_an_assert_of_the_cpu_is_no_kernels() -> None:
    error = (
        "RuntimeError: Assertion `cur_target >= 0 && cur_target < n_classes' failed.  at "
        '/pytorch/aten/src/THNN/generic/ClassNLLCriterion.c:93'
    )
    found = explain_text([raised(error, ('/home/me/train.py', 'loss = F.cross_entropy(logits, labels)'))])
    assert found is not None
    assert found.signature is not None
    assert found.signature.code == 'MG413'
    assert not found.is_asynchronous
