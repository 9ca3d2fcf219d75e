"""Ends of trainings, and of installations: the first cause is the true one, with the line that supports it."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Tuple

import pytest
from explained_logs import explain_log, format_traceback

from mmguard.commands.explain.explanation import SUPPORTED
from mmguard.commands.explain.render import as_json


class LogKind(NamedTuple):
    """End of a training, and what has to be known of it."""

    truth: str
    code: str
    log: str
    first: str  #: Key of the first cause.
    line: int = 0  #: Line of the log that supports it; 0: none does.
    refuted: Tuple[str, ...] = ()  #: Keys of causes that are not named.
    ranks: Tuple[str, ...] = ()  #: Ranks, and parts of the model, that the ranks of the log name.


def watchdog(rank: int, number: int, operation: str = 'ALLREDUCE') -> str:
    """As torch 2.1 to 2.7 write it."""
    return (
        f'[rank{rank}]:[E ProcessGroupNCCL.cpp:563] [Rank {rank}] Watchdog caught collective operation timeout: '
        f'WorkNCCL(SeqNum={number}, OpType={operation}, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 '
        f'milliseconds before timing out.\n'
    )


def enqueued(rank: int, number: int, last: int) -> str:
    """As torch from 2.3 on writes it beside."""
    return (
        f'[rank{rank}]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank {rank}] Exception (either an error or timeout) '
        f'detected by watchdog at work: {number}, last enqueued NCCL work: {last}, last completed NCCL work: '
        f'{number - 1}.\n'
    )


def unused(indices: Dict[int, str], names: str = '') -> str:
    """What DistributedDataParallel raises, on each rank."""
    rows: List[str] = []
    for rank, listed in indices.items():
        said = f'Parameters which did not receive grad for rank {rank}: {names}\n' if names else ''
        text = format_traceback(
            'RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This '
            'error indicates that your module has parameters that were not used in producing loss.\n'
            f'{said}Parameter indices which did not receive grad for rank {rank}: {listed}\n'
            ' In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL.',
            ('train.py', 'out = model(x)'),
        )
        rows += [f'[rank{rank}]: {line}\n' for line in text.splitlines()]
    return ''.join(rows)


PACKAGES = '/opt/lib/python3.11/site-packages'
NAMES = 'roi_head.mask_head.convs.0.conv.weight, roi_head.mask_head.conv_logits.bias'


LOGS: Dict[str, LogKind] = {
    'one of four ranks is absent (NCCL)': LogKind(
        'rank 1 skipped the all_reduce of a metric',
        'MG454',
        watchdog(0, 812) + watchdog(2, 812) + watchdog(3, 812),
        'rank-without-targets',
        ranks=('rank 1',),
    ),
    'a rank is a collective behind': LogKind(
        'rank 3 skipped one collective in validation',
        'MG454',
        ''.join(watchdog(r, 4021, '_ALLGATHER_BASE') + enqueued(r, 4021, 4021) for r in range(3))
        + watchdog(3, 4020, '_ALLGATHER_BASE')
        + enqueued(3, 4020, 4020),
        'rank-without-targets',
        ranks=('rank 3',),
    ),
    'unused on all ranks (rf-detr#1093)': LogKind(
        'parameters of the backbone that no loss reads, on every rank',
        'MG450',
        unused({0: '1 44 45', 1: '1 44 45'}),
        'unused-everywhere',
        5,
        ('rank-without-targets',),
        ('on all ranks',),
    ),
    'unused on one rank (maskrcnn-benchmark#497)': LogKind(
        'a rank had no proposals for the mask head',
        'MG450',
        unused({1: '60 61 62 63'}, NAMES),
        'rank-without-targets',
        5,
        ranks=('roi_head.mask_head',),
    ),
    'GIoU of the targets': LogKind(
        'a segment without a pixel has no box',
        'MG445',
        format_traceback('AssertionError', ('box_ops.py', 'assert (boxes2[:, 2:] >= boxes2[:, :2]).all()')),
        'panoptic-png',
        refuted=('nan-predictions',),
    ),
    'core dumps at random places (nnUNet#1098)': LogKind(
        'faulty memory',
        'MG469',
        'epoch 12\nSegmentation fault (core dumped)\nepoch 3\nfree(): invalid pointer\nAborted (core dumped)\n'
        'epoch 41\nSegmentation fault (core dumped)\n',
        'faulty-memory',
        4,
    ),
    'a rate too high': LogKind(
        'loss of nan after growing',
        'MG443',
        '07/01 Iter 50 lr: 1.0e+00 loss: 84.2 grad_norm: 912\nIter 100 lr: 1.0e+00 loss: nan grad_norm: nan\n'
        'Loss is nan, stopping training\n',
        'diverged',
    ),
    'MONAI makes one-hot of 255': LogKind(
        'the ignored label goes through one_hot; the labels are right',
        'MG586',
        format_traceback(
            'RuntimeError: index 255 is out of bounds for dimension 1 with size 6',
            ('train_abdomen.py', 'loss = loss_function(outputs, labels)'),
            (f'{PACKAGES}/monai/losses/dice.py', 'dice_loss = self.dice(input, target)'),
            (f'{PACKAGES}/monai/losses/dice.py', 'target = one_hot(target, num_classes=n_pred_ch)'),
            (f'{PACKAGES}/monai/networks/utils.py', 'labels = o.scatter_(dim=dim, index=labels.long(), value=1)'),
        ),
        'void-one-hot',
        7,
    ),
    'the confusion matrix of mmdet, a list too short': LogKind(
        'the test set of the config names fewer classes than the annotations and results have',
        'MG417',
        format_traceback(
            'IndexError: index 7 is out of bounds for axis 1 with size 4',
            ('tools/analysis_tools/confusion_matrix.py', 'main()'),
            ('tools/analysis_tools/confusion_matrix.py', 'confusion_matrix[gt_label, det_label] += 1'),
        ),
        'script-classes',
    ),
    'background workers of nnU-Net': LogKind(
        'the memory of the machine ran out; batchgenerators says it last',
        'MG465',
        'Exception in thread Thread-4 (results_loop):\n'
        + format_traceback(
            'RuntimeError: One or more background workers are no longer alive. Exiting. Please check the print '
            'statements above for the actual error message',
            (f'{PACKAGES}/batchgenerators/dataloading/nondet_multi_threaded_augmenter.py', 'raise e'),
        ),
        'host-memory',
    ),
}


@pytest.mark.parametrize('name', LOGS)
def test_the_first_cause_is_the_true_one(name: str) -> None:
    kind = LOGS[name]
    record = as_json(explain_log(kind.log), 'train.log')
    assert record['error']['code'] == kind.code
    first = record['causes'][0]
    assert first['key'] == kind.first
    assert (first['evidence'] or {'line': 0})['line'] == kind.line
    assert set(kind.refuted) <= set(record['refuted'])
    assert all(any(part in said for said in record['ranks']) for part in kind.ranks)


@pytest.mark.parametrize('name', LOGS)
def test_what_supports_a_cause_is_a_line_of_the_log(name: str) -> None:
    found = explain_log(LOGS[name].log)
    rows = LOGS[name].log.split('\n')
    assert found.causes
    for weighed in found.causes:
        assert (weighed.standing == SUPPORTED) is (weighed.evidence is not None)
        if weighed.evidence is not None and weighed.evidence.text not in found.ranks:
            assert weighed.evidence.text in rows[weighed.evidence.line - 1]


@pytest.mark.parametrize(
    ('before', 'frame', 'first'),
    [
        ('', ('/w/pspnet/train.py', 'out = model(x)'), 'batch-of-one'),
        ('batch_size: 1\n', ('/w/deeplab.py', 'y = self.aspp(x)'), 'batch-of-one'),
        ('Epoch 1/9: 12/13 [00:31<00:02]\n', ('/w/unet/fit.py', 'out = net(batch)'), 'last-batch'),
        ('step 640 loss 0.31\n', ('/w/pointnet.py', 'x = self.bn(x)'), 'last-batch'),
        ('', ('/w/seg/demo.py', 'show_result(inference_segmentor(model, image))'), 'training-mode'),
    ],
)
def test_the_log_says_which_batch_had_one_image(before: str, frame: Tuple[str, str], first: str) -> None:
    error = 'ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 96, 1, 1])'
    found = explain_log(before + format_traceback(error, frame))
    assert found.causes[0].cause.key == first
    assert not any(one.cause.codes for one in found.causes)
