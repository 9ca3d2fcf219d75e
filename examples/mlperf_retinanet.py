"""MLPerf's RetinaNet with 264 classes on annotations with 601: `python examples/mlperf_retinanet.py`

The loop is from mlcommons/training, single_stage_detector/ssd/engine.py; the model is torchvision's RetinaNet, on which
MLPerf's is based, with a backbone of one layer. `# mmguard` marks the added lines. The stock loop crashes at the first
image with a label >= 264. The guarded loop excludes such objects and trains on all others. Needs torchvision.
"""

import torch
from torch import nn

try:
    from torchvision.models.detection import RetinaNet
    from torchvision.models.detection.anchor_utils import AnchorGenerator
except ImportError as error:
    raise SystemExit(f'this example needs torchvision, `pip install torchvision`: {error}') from None

from mmguard import Tally
from mmguard.detection import guard_batch  # mmguard

NUM_CLASSES, SIZE = 264, 64


def small_retinanet():
    """Build a RetinaNet with one level of stride 8, and one square anchor of 16 pixels per position."""
    backbone = nn.Sequential(nn.Conv2d(3, 32, 8, 8), nn.ReLU())
    backbone.out_channels = 32
    anchors = AnchorGenerator(sizes=((16,),), aspect_ratios=((1.0,),))
    model = RetinaNet(backbone, NUM_CLASSES, min_size=SIZE, max_size=SIZE, anchor_generator=anchors)
    for layer in model.head.modules():
        if isinstance(layer, nn.Conv2d) and layer.out_channels == 32:
            nn.init.kaiming_normal_(layer.weight)  # torchvision's smaller weights need many epochs
    return model


def batches(number=40, size=4):
    """Return batches of images with two squares, whose brightness is their class; every fifth has class 600."""
    generator = torch.Generator().manual_seed(0)
    samples = []
    for i in range(number * size):
        labels = torch.tensor([i % 3, 600 if i % 5 == 0 else 2])
        image, corner = torch.zeros(3, SIZE, SIZE), torch.randint(0, 48, (2, 2), generator=generator)
        for label, (x, y) in zip(labels.tolist(), corner.tolist()):
            image[:, y : y + 16, x : x + 16] = (label % 7 + 1) / 7
        boxes = torch.cat([corner, corner + 16], 1).float()
        samples.append((image, {'boxes': boxes, 'labels': labels, 'image_id': torch.tensor([i])}))
    return [tuple(zip(*samples[i : i + size])) for i in range(0, len(samples), size)]


def train_one_epoch(model, optimizer, data_loader, guarded=True):
    history, tally = [], Tally()
    for images, targets in data_loader:
        if guarded:
            images, targets, tallies = guard_batch(  # mmguard
                images, targets, NUM_CLASSES, box_format='xyxy', return_tally=True
            )
            tally = sum(tallies, tally)
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        losses.backward()
        optimizer.step()
        optimizer.zero_grad()
        history.append(losses.item())
    return history, tally


def main():
    torch.manual_seed(0)
    model = small_retinanet()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    try:
        train_one_epoch(model, optimizer, batches(), guarded=False)
    except IndexError as error:
        print(f'stock: dies, IndexError: {error} (on a GPU: device-side assert triggered)')
    history, tally = train_one_epoch(model, optimizer, batches())
    print(f'guarded: loss {history[0]:.2f} -> {history[-1]:.2f} in {len(history)} iterations')
    print(f'left out: {tally.skipped} of {tally.total} instances, values {tally.values}')


if __name__ == '__main__':
    main()
