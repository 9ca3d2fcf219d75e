"""Kinds of ends of trainings, and of installations, written down with their causes before anything was run on them."""

from __future__ import annotations

from typing import Dict, NamedTuple, Tuple


class LogKind(NamedTuple):
    """What stands in a log.

    Attributes:
        truth (str): What is really wrong.
        code (str): Of the signature.
        log (str): The log.
        first (str): Words of the first cause.
        says (tuple[str]): Words anywhere in what is printed.
        never (tuple[str]): What must not be said.
    """

    truth: str
    code: str
    log: str
    first: str = ''
    says: Tuple[str, ...] = ()
    never: Tuple[str, ...] = ()


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
    rows = []
    for rank, listed in indices.items():
        said = f'Parameters which did not receive grad for rank {rank}: {names}\n' if names else ''
        rows.append(
            'Traceback (most recent call last):\n  File "train.py", line 12, in <module>\n    out = model(x)\n'
            'RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This '
            'error indicates that your module has parameters that were not used in producing loss.\n'
            f'{said}Parameter indices which did not receive grad for rank {rank}: {listed}\n'
            ' In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL.\n'
        )
    return ''.join(''.join(f'[rank{rank}]: {line}\n' for line in row.splitlines()) for rank, row in zip(indices, rows))


GIOU = (
    'Epoch: [14] loss: 31.2 grad_norm: 812.4\nEpoch: [15] loss: nan grad_norm: nan\n'
    'Traceback (most recent call last):\n  File "box_ops.py", line 53, in generalized_box_iou\n'
    '    assert (boxes1[:, 2:] >= boxes1[:, :2]).all()\nAssertionError\n'
)
NAMES = 'roi_head.mask_head.convs.0.conv.weight, roi_head.mask_head.conv_logits.bias'

KINDS: Dict[str, LogKind] = {
    'one of four ranks is absent (NCCL)': LogKind(
        'rank 1 skipped the all_reduce of a metric',
        'MG454',
        watchdog(0, 812) + watchdog(2, 812) + watchdog(3, 812),
        says=('rank 1',),
    ),
    'a rank broadcasts its buffers while others reduce': LogKind(
        'rank 0 called another collective',
        'MG454',
        watchdog(0, 55, 'BROADCAST') + watchdog(1, 55) + watchdog(2, 55),
        says=('rank 0', 'BROADCAST'),
    ),
    'a rank is a collective behind': LogKind(
        'rank 3 skipped one collective in validation',
        'MG454',
        ''.join(watchdog(r, 4021, '_ALLGATHER_BASE') + enqueued(r, 4021, 4021) for r in range(3))
        + watchdog(3, 4020, '_ALLGATHER_BASE')
        + enqueued(3, 4020, 4020),
        says=('rank 3',),
    ),
    'gloo: a barrier names who is missing': LogKind(
        'rank 2 never came to the barrier',
        'MG454',
        'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\n    dist.monitored_barrier()\n'
        'RuntimeError: [../torch/csrc/distributed/c10d/ProcessGroupGloo.cpp:2721] Rank 2 failed to pass '
        'monitoredBarrier in 30000 ms\n',
        says=('rank 2',),
    ),
    'unused on all ranks (rf-detr#1093)': LogKind(
        'parameters of the backbone that no loss reads, on every rank',
        'MG450',
        unused({0: '1 44 45', 1: '1 44 45'}),
        'used on no rank',
        ('on all ranks',),
    ),
    'unused on all of four ranks': LogKind(
        'the same, more ranks', 'MG450', unused(dict.fromkeys(range(4), '7 8 9')), 'used on no rank', ('on all ranks',)
    ),
    'unused on one rank (maskrcnn-benchmark#497)': LogKind(
        'a rank had no proposals for the mask head',
        'MG450',
        unused({1: '60 61 62 63'}, NAMES),
        'drew images without any target',
        ('roi_head.mask_head',),
    ),
    'GIoU of NaN (D-FINE-seg#4)': LogKind(
        'the predictions are NaN after divergence', 'MG445', GIOU, 'training diverged', never=('renumber',)
    ),
    'GIoU in the first iteration': LogKind(
        'boxes of the annotations are corners',
        'MG445',
        'Traceback (most recent call last):\n  File "box_ops.py", line 54, in generalized_box_iou\n'
        '    assert (boxes2[:, 2:] >= boxes2[:, :2]).all()\nAssertionError\n',
        'boxes of the annotations',
    ),
    'core dumps at random places (nnUNet#1098)': LogKind(
        'faulty memory',
        'MG469',
        'epoch 12\nSegmentation fault (core dumped)\nepoch 3\nfree(): invalid pointer\nAborted (core dumped)\n'
        'epoch 41\nSegmentation fault (core dumped)\n',
        'memory',
        ('memtest',),
    ),
    'memory of the host': LogKind(
        'killed by the kernel', 'MG458', 'epoch 2\nOut of memory: Killed process 71 (python)\nKilled\n', 'Host memory'
    ),
    'a rate too high': LogKind(
        'loss of nan after growing',
        'MG443',
        '07/01 Iter 50 lr: 1.0e+00 loss: 84.2 grad_norm: 912\nIter 100 lr: 1.0e+00 loss: nan grad_norm: nan\n'
        'Loss is nan, stopping training\n',
        'learning rate',
    ),
}
