"""RT-DETR's training loop on two ranks: `torchrun --nproc-per-node 2 examples/rtdetr_det_engine.py`

The loop is that of lyuwenyu/RT-DETR, solver/det_engine.py; `# mmguard` marks what it needs. From iteration 5 on, the
labels of rank 1 are beyond the classes. `--stock` dies on them: the denoising embeds labels. `--targets-only` leaves
those instances out, which leaves rank 1 without a denoising loss, and DistributedDataParallel waits for it.
"""

import hashlib
import sys

import torch
import torch.distributed as dist
from small_rtdetr import SetCriterion, SmallRTDETR
from torch.nn.parallel import DistributedDataParallel

from mmguard import Tally
from mmguard.distributed import align_losses  # mmguard
from mmguard.functional import guard_targets  # mmguard

NUM_CLASSES, ITERS = 3, 20


def batches(rank):
    generator = torch.Generator().manual_seed(rank)
    for i in range(ITERS):
        shift = 600 if rank == 1 and 5 <= i < 15 else 0
        targets = []
        for n in (2, 1):
            boxes = torch.rand(n, 4, generator=generator) * 0.4 + 0.3  # cx, cy, w, h, normalised
            labels = torch.randint(NUM_CLASSES, (n,), generator=generator) + shift
            targets.append({'boxes': boxes, 'labels': labels, 'image_id': torch.tensor([10 * i + n])})
        yield torch.randn(2, 3, 32, 32, generator=generator), targets


def reduce_dict(data):
    """Averages over ranks, stacked in the order of the sorted keys, as in src/misc/dist.py."""
    keys = sorted(data)
    values = torch.stack([data[key].detach() for key in keys])
    dist.all_reduce(values)
    return dict(zip(keys, values / dist.get_world_size()))


def train_one_epoch(model, criterion, data_loader, optimizer, guard=True, align=True):
    tally, history = Tally(), []
    for samples, targets in data_loader:
        if guard:
            targets, tallies = guard_targets(targets, NUM_CLASSES, box_format='cxcywh', return_tally=True)  # mmguard
            tally = sum(tallies, tally)
        outputs = model(samples, targets)
        loss_dict = criterion(outputs, targets)
        if align:
            loss_dict = align_losses(loss_dict, model)  # mmguard
        loss = sum(loss_dict.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(sum(reduce_dict(loss_dict).values()).item())
    return history, tally


def main():
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(SmallRTDETR(NUM_CLASSES), find_unused_parameters=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard, align = '--stock' not in sys.argv, not {'--stock', '--targets-only'} & set(sys.argv)
    history, tally = train_one_epoch(model, SetCriterion(NUM_CLASSES), batches(rank), optimizer, guard, align)
    print(f'RANK {rank}: {tally.skipped} of {tally.total} instances left out, values {tally.values}', flush=True)
    print(f'LOSS {history[0]:.4f} -> {history[-1]:.4f}', flush=True)
    parameters = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    print('PARAMETERS', hashlib.sha256(parameters.numpy().tobytes()).hexdigest(), flush=True)


if __name__ == '__main__':
    dist.init_process_group('gloo')
    main()
    dist.destroy_process_group()  # the model is gone by now: torch may wait for ever if it goes later
