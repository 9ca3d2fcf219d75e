"""RT-DETR, DETR and Mask2Former of transformers on two ranks; rank 1 meets no target, or labels that are no classes."""

from __future__ import annotations

from pathlib import Path
from typing import List

import pytest
from ranks import Rank, run_ranks

CHILD = """
import datetime, hashlib, os, sys, warnings
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
sys.path.insert(0, sys.argv[1])
warnings.simplefilter('ignore')
from mmguard.distributed import align_losses
from mmguard.detection import guard_targets
from transformers_models import DETECTORS, NUM_CLASSES, batch, outputs_of
dist.init_process_group('gloo', timeout=datetime.timedelta(seconds=30))
rank = dist.get_rank()

def train(detector, others, guard, align):
    torch.manual_seed(0)
    # Nobody's gradient ever reaches the last norm of some releases' Swin.
    model = DistributedDataParallel(DETECTORS[detector](), find_unused_parameters=detector == 'Mask2Former')
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=1e-3)
    for iteration in range(5):
        labels = others if rank == 1 and iteration in (1, 2, 3) else [[0, 1], [2]]
        pixels, targets = batch(*labels, seed=10 * rank + iteration)
        if guard:
            targets = guard_targets(targets, NUM_CLASSES, label_key='class_labels', box_format='cxcywh')
        outputs = outputs_of(model, pixels, targets)
        loss = sum(align_losses(outputs.loss_dict, model).values()) if align else outputs.loss.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    numbers = torch.cat([one.detach().flatten() for one in model.parameters()])
    assert numbers.isfinite().all()
    print('PARAMETERS', detector, hashlib.sha256(numbers.numpy().tobytes()).hexdigest(), flush=True)
"""

STOCK = """
train('RT-DETR', [[], []], guard=False, align=False)
"""

#: The same parameters whether targets were invalid, or never there.
GUARDED = """
for others in ([[7], [7, 600]], [[], []]):
    for detector in DETECTORS:
        train(detector, others, guard=True, align=detector == 'RT-DETR')
sys.stdout.flush()
os._exit(0)  # as in ranks.py
"""


def run(child: str) -> List[Rank]:
    return run_ranks(CHILD + child, str(Path(__file__).parent), preamble='')


@pytest.mark.slow
def test_stock_rt_detr_dies_where_a_rank_has_no_target() -> None:
    ranks = run(STOCK)
    assert all(rank.returncode for rank in ranks)
    assert not any(rank.said('PARAMETERS') for rank in ranks)


@pytest.mark.slow
def test_guarded_all_train_and_the_ranks_stay_bit_equal() -> None:
    ranks = run(GUARDED)
    assert [rank.returncode for rank in ranks] == [0, 0], ranks[1].output[-4000:]
    said = ranks[0].said('PARAMETERS')
    assert said == ranks[1].said('PARAMETERS')
    assert len(said) == 6
    assert said[:3] == said[3:]
