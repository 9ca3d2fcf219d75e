"""One more instance of fourteen kinds that show in a batch, in a log, in what is installed, or in what is typed.

Written by somebody who had not read the rules, before the first run on any.
"""

from __future__ import annotations

from pathlib import Path
from typing import Dict

import numpy as np
import torch
from drawn_scenes import scenes
from kinds_batches import Batch, batch, regions
from kinds_fresh_2_runs import Typed, scanned, traced
from kinds_logs import LogKind
from situation import masks

NO_LABELS = ('renumber', 'num_classes=')


def world_cover(root: Path) -> Path:
    """ESA WorldCover 2021: tens, and 95 for the mangroves."""
    values = np.array([10, 20, 30, 40, 50, 60, 80, 90, 95], np.uint8)
    path, _ = masks([values[label] for label in scenes(range(9), 8)], 7)(root)
    return path


def contours(root: Path) -> Path:
    """BSDS500 holds MATLAB's files."""
    for number in (2018, 3063, 5096):
        (root / f'{number}.mat').write_bytes(b'MATLAB 5.0 MAT-file, Platform: GLNXA64'.ljust(128) + bytes(64))
    return root


TYPED: Dict[str, Typed] = {
    'fresh 3: incomplete map: WorldCover without wetlands and mangroves': Typed(
        '90 and 95 are not in the map',
        scanned(world_cover, '--num-classes', '7', '--label-map', '10:0,20:1,30:2,40:3,50:4,60:5,80:6'),
        1,
        ('90', '95', "'*': 255", '--label-map 10:0,20:1,30:2,40:3,50:4,60:5,80:6,90:255,95:255'),
        ('num_classes=96', 'num_classes=9', 'Your labels are fine'),
    ),
    'fresh 3: unreadable: MATLAB': Typed(
        'scan does not read .mat',
        scanned(contours, '--num-classes', '2'),
        2,
        ('.mat',),
        ('Your labels are fine', 'Nothing found'),
    ),
}

SPARSE = torch.zeros(4, 1, 48, 48)
SPARSE[1:, :, 10:30, 12:20] = 1
LEFT = torch.full((2, 64, 64), 255)
LEFT[:, :2], LEFT[:, 2:4] = 3, 7

BATCHES: Dict[str, Batch] = {
    'fresh 3: nearly all ignored': Batch(
        'a map meant for raw ids was applied to train ids: 2 of 9 classes are left, 15 of 16 pixels are 255',
        batch(9, LEFT, ignore_index=255),
        'warns',
        ('ignored',),
        ('num_classes=',),
    ),
    'fresh 3: gray levels: five rooms drawn in steps of 51': Batch(
        'one batch does not show all levels',
        batch(6, regions((0, 51, 102, 204))),
        'raises',
        ('gray',),
        ('bucketize', 'num_classes=205', 'num_classes=256'),
    ),
}


def mismatch(rank: int, mine: str, theirs: str) -> str:
    """As torch 2.3 writes it with TORCH_DISTRIBUTED_DEBUG=DETAIL."""
    return (
        f'[rank{rank}]: RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} is running '
        f'collective: CollectiveFingerPrint(SequenceNumber=418, OpType={mine}, TensorShape=[1], TensorDtypes=Float, '
        'TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided (default), '
        'requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))), but Rank '
        f'{1 - rank} is running collective: CollectiveFingerPrint(SequenceNumber=418, OpType={theirs}).'
        'Collectives differ in the following aspects: \t Op type: '
        f'{mine}vs {theirs}\n'
    )


LOGS: Dict[str, LogKind] = {
    'fresh 3: torchmetrics counts 255 as a class': LogKind(
        'the metric was built without ignore_index; the labels are right',
        'MG422',
        'Epoch 0:  12%|#2        | 31/250 [00:14<01:41,  2.15it/s, v_num=3]\n'
        + traced(
            'File "/opt/conda/lib/python3.10/site-packages/torchmetrics/classification/confusion_matrix.py", line 279, '
            'in update\n    _multiclass_confusion_matrix_tensor_validation(preds, target, self.num_classes, '
            'self.ignore_index)',
            'File "/opt/conda/lib/python3.10/site-packages/torchmetrics/functional/classification/confusion_matrix.py",'
            ' line 285, in _multiclass_confusion_matrix_tensor_validation\n    raise RuntimeError(',
            error='RuntimeError: Detected more unique values in `target` than expected. Expected only 8 but found 9 in '
            "`target`. Found values: tensor([  0,   1,   2,   3,   4,   5,   6,   7, 255], device='cuda:0').",
        ),
        first='ignore',
        never=('num_classes=9', 'num_classes=256'),
    ),
    'fresh 3: background workers of nnU-Net': LogKind(
        'the memory of the machine ran out; batchgenerators says it last',
        'MG465',
        'Exception in thread Thread-4 (results_loop):\n'
        + traced(
            'File "/venv/lib/python3.11/site-packages/batchgenerators/dataloading/nondet_multi_threaded_augmenter.py", '
            'line 125, in results_loop\n    raise e',
            error='RuntimeError: One or more background workers are no longer alive. Exiting. Please check the print '
            'statements above for the actual error message',
        ),
        'memory',
        never=NO_LABELS,
    ),
    'fresh 3: one rank logs, the other reduces': LogKind(
        'rank 0 gathers a metric of its own while rank 1 is in the loss',
        'MG453',
        mismatch(0, 'ALLGATHER', 'ALLREDUCE') + mismatch(1, 'ALLREDUCE', 'ALLGATHER'),
        first='skipped a collective or called another',
        never=NO_LABELS,
    ),
}
