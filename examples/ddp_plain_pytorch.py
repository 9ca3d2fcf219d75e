"""A detector with a branch that needs targets, trained on several ranks without mmengine.

    torchrun --nproc-per-node 2 examples/ddp_plain_pytorch.py

Rank 1 draws only images without a target. The denoising branch returns nothing for these, so rank 1 lacks its loss, and
DistributedDataParallel waits for gradients that never come. `align_losses` (one line) fills in the missing loss; with
`--stock` this line is left out, and the training hangs or crashes. Needs torchrun, which comes with torch.
"""

import argparse
import hashlib
import os
from typing import Dict

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from mmguard.distributed import align_losses


class SmallDETR(nn.Module):
    """Model that predicts a class and a box, with a denoising branch that runs only for images with targets."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.cls, self.box = nn.Linear(32, classes), nn.Linear(32, 4)
        self.label_embedding, self.denoise = nn.Embedding(classes, 32), nn.Linear(32, 4)

    def forward(self, images: Tensor, labels: Tensor, boxes: Tensor) -> Dict[str, Tensor]:
        features = self.backbone(images)
        losses = {'loss_background': F.softplus(self.cls(features)).mean() + 0 * self.box(features).sum()}
        if len(labels):  # one target per image here
            losses['loss_cls'] = F.cross_entropy(self.cls(features), labels)
            losses['loss_box'] = F.l1_loss(self.box(features), boxes)
            noisy = self.label_embedding(labels) + features
            losses['dn_loss_box'] = F.l1_loss(self.denoise(noisy), boxes)
        return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--stock', action='store_true', help='without align_losses')
    parser.add_argument('--targets-everywhere', action='store_true', help='clean data: every rank has targets')
    parser.add_argument('--iters', type=int, default=20)
    args = parser.parse_args()
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(SmallDETR(), find_unused_parameters=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    torch.manual_seed(1 + rank)
    for iteration in range(args.iters):
        targets = 4 if rank == 0 or args.targets_everywhere or iteration == args.iters // 2 else 0
        losses = model(torch.randn(4, 3, 16, 16), torch.randint(0, 3, (targets,)), torch.rand(targets, 4))
        if not args.stock:
            losses = align_losses(losses, model)
        total = sum(losses.values())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    numbers = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    print('PARAMETERS', hashlib.sha256(numbers.numpy().tobytes()).hexdigest(), flush=True)


if __name__ == '__main__':
    if 'RANK' not in os.environ:
        raise SystemExit('start it with `torchrun --nproc-per-node 2`, which tells each process its rank')
    dist.init_process_group('gloo')
    main()
    dist.destroy_process_group()  # after main(), whose model is deleted: otherwise torch may wait forever
