"""RT-DETR's training loop on two ranks: `torchrun --nproc-per-node 2 examples/rtdetr_det_engine.py`

The loop is from lyuwenyu/RT-DETR, solver/det_engine.py; the model is a small RT-DETR of Hugging Face's transformers,
which returns its losses. `# mmguard` marks the added lines. In iterations 5 to 14, the labels of rank 1 are out of
range. `--stock` crashes on them, because denoising embeds labels. `--targets-only` excludes these instances, so rank 1
has no denoising loss, and DistributedDataParallel crashes or waits. Needs torchrun (part of torch) and transformers.
"""

import hashlib
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

try:
    import scipy  # noqa: F401  (the matcher needs it)
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig
except ImportError as error:
    raise SystemExit(f'this example needs transformers, `pip install transformers scipy pillow`: {error}') from None

from mmguard import Tally
from mmguard.detection import guard_targets  # mmguard
from mmguard.distributed import align_losses  # mmguard

NUM_CLASSES, ITERS = 3, 20


def small_rtdetr():
    sizes = dict(embedding_size=8, hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1], layer_type='basic')
    backbone = RTDetrResNetConfig(out_features=['stage2', 'stage3', 'stage4'], **sizes)
    heads = dict(encoder_in_channels=[16] * 3, encoder_hidden_dim=16, decoder_in_channels=[16] * 3, d_model=16)
    queries = dict(num_queries=6, num_denoising=4, decoder_layers=2, num_labels=NUM_CLASSES)
    no_timm = dict(backbone=None, use_timm_backbone=False)
    return RTDetrForObjectDetection(RTDetrConfig(backbone_config=backbone, **heads, **queries, **no_timm))


def batches(rank):
    generator = torch.Generator().manual_seed(rank)
    for i in range(ITERS):
        shift = 600 if rank == 1 and 5 <= i < 15 else 0
        targets = []
        for n in (2, 1):
            boxes = torch.rand(n, 4, generator=generator) * 0.4 + 0.3  # cx, cy, w, h, normalized
            labels = torch.randint(NUM_CLASSES, (n,), generator=generator) + shift
            targets.append({'boxes': boxes, 'class_labels': labels, 'image_id': torch.tensor([10 * i + n])})
        yield torch.randn(2, 3, 32, 32, generator=generator), targets


def reduce_dict(data):
    """Return losses averaged over ranks, reduced in the order of the sorted keys, as in src/misc/dist.py."""
    keys = sorted(data)
    values = torch.stack([data[key].detach() for key in keys])
    dist.all_reduce(values)
    return dict(zip(keys, values / dist.get_world_size()))


def train_one_epoch(model, data_loader, optimizer, guard=True, align=True):
    tally, history = Tally(), []
    for samples, targets in data_loader:
        if guard:
            targets, tallies = guard_targets(  # mmguard
                targets, NUM_CLASSES, label_key='class_labels', box_format='cxcywh', return_tally=True
            )
            tally = sum(tallies, tally)
        loss_dict = model(samples, labels=targets).loss_dict
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
    model = DistributedDataParallel(small_rtdetr(), find_unused_parameters=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    guard, align = '--stock' not in sys.argv, not {'--stock', '--targets-only'} & set(sys.argv)
    history, tally = train_one_epoch(model, batches(rank), optimizer, guard, align)
    print(f'RANK {rank}: {tally.skipped} of {tally.total} instances left out, values {tally.values}', flush=True)
    print(f'LOSS {history[0]:.4f} -> {history[-1]:.4f}', flush=True)
    parameters = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    print('PARAMETERS', hashlib.sha256(parameters.numpy().tobytes()).hexdigest(), flush=True)


if __name__ == '__main__':
    if 'RANK' not in os.environ:
        raise SystemExit('start it with `torchrun --nproc-per-node 2`, which tells each process its rank')
    dist.init_process_group('gloo')
    main()
    dist.destroy_process_group()  # after main(), whose model is deleted: otherwise torch may wait forever
