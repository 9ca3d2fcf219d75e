"""Public reports: their error as it was on the screen, with the lines of the traceback that decide.

Where the words of an error leave several causes open, the first holds the codes of what was the fault; which of them it
is, is for the scan to say.
"""

# ruff: noqa: E501  quoted lines are not broken
from __future__ import annotations

from typing import Dict, Tuple

import pytest
from explained_logs import explain_log, find_first, format_traceback

from mmguard.commands.explain.explanation import OutsideFacts
from mmguard.findings.finding import Finding

ASSERT = 'RuntimeError: CUDA error: device-side assert triggered'
ILLEGAL = 'RuntimeError: CUDA error: an illegal memory access was encountered'
NLL = '../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.\n'
INDEX = '../aten/src/ATen/native/cuda/IndexKernel.cu:92: operator(): block: [1,0,0], thread: [32,0,0] Assertion `-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.\n'
SCATTER = '../aten/src/ATen/native/cuda/ScatterGatherKernel.cu:365: operator(): block: [0,0,0], thread: [5,0,0] Assertion `idx_dim >= 0 && idx_dim < index_size && "index out of bounds"` failed.\n'
NUM = (
    'AssertionError: The `num_classes` ({}) in {} of MMDataParallel does not matches the length of `CLASSES` {}) in {}'
)
NAN = '2026/01/01 12:00:00 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.978e-03, loss_rpn_cls: 0.5, {}, loss: nan\n'
UNEXPECTED = 'Error: Unexpected labels found in file {}.\nExpected: {}\nFound: {}\n'
OF_SEG = '/opt/lib/python3.8/site-packages/mmseg'
OF_DET = '/opt/lib/python3.8/site-packages/mmdet'
SEG_LOSS = (
    f'{OF_SEG}/models/losses/cross_entropy_loss.py',
    'avg_factor = label.numel() - (label == ignore_index).sum().item()',
)
MATCHER = ('/home/me/models/matcher.py', 'cost_class = -out_prob[:, tgt_ids]')
GIOU = ('/home/me/util/box_ops.py', 'assert (boxes1[:, 2:] >= boxes1[:, :2]).all()')
FILTERED = (f'{OF_DET}/datasets/samplers/group_sampler.py', 'indices = np.concatenate(indices)')
ONE_HOT = ('/home/me/utils.py', 'return y[labels]  # one_hot_embedding')
NO_NAMES = format_traceback('ValueError: need at least one array to concatenate', FILTERED)
MASK_HEAD = format_traceback(NUM.format(80, 'FCNMaskHead', 3, 'CocoDataset'))
BELOW_ITSELF = format_traceback(ASSERT, SEG_LOSS)
NOT_ALLOWED = format_traceback(ILLEGAL, SEG_LOSS)
OUT_OF_CLASSES = NLL + format_traceback(ASSERT)
MIXED = 'WARNING Box and segment counts should be equal, but got len(segments) = 401, len(boxes) = 402. To resolve this only boxes will be used and all segments will be removed.\n'

#: Key of the first cause, a code that confirms it (empty: none does), and the log.
REPORTS: Dict[str, Tuple[str, str, str]] = {
    'mmsegmentation#3864': ('class-weight-void', 'MG214', INDEX + format_traceback(ASSERT, SEG_LOSS, ('a.py', 'class_weight=class_weight'))),
    'mmsegmentation#3811': ('class-weight-short', 'MG207', INDEX + format_traceback(
        ASSERT, (f'{OF_DET}/models/dense_heads/mask2former_head.py', 'class_weight = cls_scores.new_tensor(self.class_weight)'))),
    'mmsegmentation#2607': ('one-channel', 'MG215', SCATTER + format_traceback(
        ASSERT, (f'{OF_SEG}/core/seg/sampler/ohem_pixel_sampler.py', 'tmp_seg_label = seg_label.clone().unsqueeze(1)'))),
    'mmsegmentation#3609': ('value-raw', 'MG106', format_traceback('IndexError: Target 7 is out of bounds.', SEG_LOSS)),
    'mmsegmentation#1338': ('raw-values', 'MG136', NOT_ALLOWED),
    'mmsegmentation#42-a': ('raw-values', '', format_traceback(
        ILLEGAL, ('/opt/mmcv/runner/hooks/optimizer.py', "runner.outputs['loss'].backward()"))),
    'mmdetection#4828': ('default-classes', 'MG203', format_traceback(NUM.format(3, 'Shared2FCBBoxHead', 80, 'CocoDataset'))),
    'mmdetection#6218': ('head-classes', 'MG201', MASK_HEAD),
    'mmdetection#9610': ('class-names', 'MG140', NO_NAMES),
    'mmdetection#3397': ('boxes', 'MG109', NAN.format('loss_bbox: nan') * 5),
    'mmdetection#7116': ('rank-without-targets', 'MG146', format_traceback(
        'AssertionError: loss log variables are different across GPUs!\nrank 0 len(log_vars): 4 keys: loss_cls,loss_bbox,loss')),
    'mmdetection#3563': ('rank-without-targets', 'MG146',
        '[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3127, OpType=ALLREDUCE, '
        'Timeout(ms)=1800000) ran for 1805204 milliseconds before timing out.\n'),
    'mmdetection#2047': ('category-ids', 'MG138', format_traceback(
        ASSERT, (f'{OF_DET}/core/bbox/assigners/max_iou_assigner.py', 'assigned_labels[pos_inds] = gt_labels[assigned_gt_inds[pos_inds] - 1]'))),
    'lightly-ai/lightly-train#446': ('rank-without-targets', 'MG146', format_traceback(
        'RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint('
        'SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[21]), but Rank 1 is running collective: CollectiveFingerPrint('
        'OpType=ALLREDUCE, TensorShape=[39])')),
    'lyuwenyu/RT-DETR#70': ('category-ids', 'MG138', INDEX + format_traceback(ASSERT, GIOU)),
    'roboflow/rf-detr#413': ('gap', 'MG138', SCATTER + format_traceback(ASSERT, MATCHER)),
    'facebookresearch/detr#28': ('category-ids', 'MG138', INDEX + format_traceback('AssertionError', GIOU)),
    'facebookresearch/detr#190': ('ids-as-labels', 'MG138', format_traceback(
        'IndexError: index 3 is out of bounds for dimension 0 with size 3', MATCHER)),
    'ArgoHA/D-FINE-seg#4': ('nan-predictions', '', 'epoch 15 loss: nan lr 0.0002\n' + format_traceback('AssertionError', GIOU)),
    'ArgoHA/D-FINE-seg#4, its last lines': ('nan-predictions', '', format_traceback('AssertionError', GIOU)),
    'kuangliu/pytorch-retinanet#24': ('ids-as-labels', 'MG117', format_traceback(
        'IndexError: index 81 is out of bounds for dimension 0 with size 80', ONE_HOT)),
    'facebookresearch/detectron2#546': ('names-too-few', 'MG201', format_traceback(
        'IndexError: list index out of range', ('/opt/detectron2/utils/visualizer.py', 'labels = [class_names[i] for i in classes]'))),
    'nnUNet#2500': ('label-range', 'MG185', 'Unexpected labels in nnunet\nfree(): invalid pointer\n'),
    'nnUNet#2500, its values': ('gap', 'MG116', UNEXPECTED.format('a.nii.gz', '[0, 1, 2, 3, 4]', '[0 2 3 4 5]')),
    'nnUNet#1777': ('masks-foreground', 'MG103', UNEXPECTED.format('a.png', '[0, 1]', '[  0. 255.]')),
    'nnUNet#1007': ('images', 'MG196', UNEXPECTED.format('a.nii.gz', '[0, 1]', '[-1024. -1023. -1022.]')),
    'nnUNet#946': ('labels-empty', 'MG181', UNEXPECTED.format('a.nii.gz', '[]', '[0. 1.]')),
    'nnUNet#1183': ('gap', 'MG116', UNEXPECTED.format('BraTS_001.nii.gz', '[0, 1, 2, 3]', '[0. 1. 2. 4.]')),
    'hszhao/semseg#29': ('raw-values', 'MG106', OUT_OF_CLASSES),
    'XuJiacong/PIDNet#65': ('no-pixel-qualifies', 'MG128', format_traceback(
        'IndexError: index -1 is out of bounds for dimension 0 with size 0',
        ('/home/me/utils/criterion.py', 'min_value = pred[min(self.min_kept, pred.numel() - 1)]'))),
    'PaddlePaddle/PaddleSeg#2270': ('void-one-hot', 'MG104', format_traceback(
        'OSError: (External) CUDA error(719), unspecified launch failure.',
        ('/opt/paddleseg/models/losses/dice_loss.py', 'labels_one_hot = F.one_hot(labels, num_classes=num_class)'))),
    'sovit-123/fasterrcnn#44': ('boxes-area', 'MG109', format_traceback(
        'ValueError: x_max is less than or equal to x_min for bbox (0.25, 0.1, 0.25, 0.2, 1).')),
    'CompVis/taming-transformers#8': ('image-mode', 'MG120', format_traceback(
        'IndexError: index 183 is out of bounds for axis 0 with size 182',
        ('/home/me/taming/data/base.py', 'onehot = np.eye(self.n_labels)[segmentation]'))),
    'mmcv, an operation': ('custom-op', '', format_traceback(
        ILLEGAL, ('/opt/mmcv/ops/modulated_deform_conv.py', 'ext_module.modulated_deform_conv_forward('))),
    'divamgupta/image-segmentation-keras#117': ('palette-colors', 'MG120', format_traceback(
        'AssertionError: The pixel values of seg image are out of range: 128 found while n_classes is 12')),
    'open-edge-platform/geti#3264': ('metric-void', 'MG104', format_traceback(
        'ValueError: The highest label in `target` should be smaller than `num_classes`.')),
    'milesial/Pytorch-UNet#244': ('three-channels', 'MG120', format_traceback(
        'ValueError: Target size (torch.Size([1, 3, 256, 256])) must be the same as input size (torch.Size([1, 1, 256, 256]))')),
    'ultralytics/ultralytics#897': ('mixed-rows', 'MG165', MIXED + format_traceback(
        'RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 1 but got size 0 for tensor number 1 in the list.',
        ('/opt/lib/python3.8/site-packages/ultralytics/yolo/data/dataset.py', 'value = torch.cat(value, 0)'))),
    'ultralytics/ultralytics#1008': ('mixed-rows', 'MG165', MIXED),
    'mmsegmentation#3715': ('image-channels', '', format_traceback(
        'RuntimeError: The size of tensor a (3) must match the size of tensor b (6) at non-singleton dimension 0',
        (f'{OF_SEG}/models/data_preprocessor.py', 'inputs = [(_input - self.mean) / self.std for _input in inputs]'))),
    'treeebooor/object-remove#2': ('image-channels', '', format_traceback(
        'RuntimeError: The size of tensor a (4) must match the size of tensor b (3) at non-singleton dimension 0',
        ('/opt/torchvision/models/detection/transform.py', 'return (image - mean[:, None, None]) / std[:, None, None]'))),
    'bowang-lab/U-Mamba#8': ('half-precision', '', 'Epoch 0\ntrain_loss nan\nval_loss nan\nPseudo dice [0.0, 0.0, 0.0]\n'),
}  # fmt: skip

#: The words leave it open, and other causes come up more often: which it is, only the labels say.
OPEN = {
    'a stray value of an annotator': ('MG127', NOT_ALLOWED),
    'num_classes of the base config': ('MG201', NOT_ALLOWED),
    'the class list was cut to two names': ('MG107', NOT_ALLOWED),
    'the background was not counted': ('MG102', OUT_OF_CLASSES),
    'images smaller than min_size': ('MG174', NO_NAMES),
    'raw values; in MMSegmentation class_weight is as likely': ('MG101', BELOW_ITSELF),
}


@pytest.mark.parametrize('name', REPORTS)
def test_the_true_cause_comes_first(name: str) -> None:
    key, code, text = REPORTS[name]
    first, codes = find_first(text)
    assert first == key
    assert not code or code in codes


def test_of_causes_with_one_finding_the_one_that_the_log_points_to_comes_first() -> None:
    found = Finding('MG201', 'FCNMaskHead has 80 classes, the data set 3', '', '', 0.9)
    assert explain_log(MASK_HEAD, OutsideFacts(findings=(found,))).causes[0].cause.key == 'head-classes'


@pytest.mark.parametrize('name', OPEN)
def test_where_the_words_leave_it_open_the_true_cause_is_among_them(name: str) -> None:
    code, text = OPEN[name]
    assert any(code in weighed.cause.codes for weighed in explain_log(text).causes)


def test_an_assert_of_the_cpu_is_not_one_of_a_kernel() -> None:
    error = (
        "RuntimeError: Assertion `cur_target >= 0 && cur_target < n_classes' failed.  at "
        '/pytorch/aten/src/THNN/generic/ClassNLLCriterion.c:93'
    )
    found = explain_log(format_traceback(error, ('/home/me/train.py', 'loss = F.cross_entropy(logits, labels)')))
    assert found.signature.code == 'MG413'
    assert not found.is_asynchronous
