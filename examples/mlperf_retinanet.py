"""MLPerf's RetinaNet, 264 classes, on annotations that know 601: `python examples/mlperf_retinanet.py`

The loop is that of mlcommons/training, single_stage_detector/ssd/engine.py; `# mmguard` marks what it needs. The stock
loop dies on the first image with a label beyond the classes. The guarded one trains on every other object.
"""

import torch
from small_retinanet import SIZE, SmallRetinaNet

from mmguard import Tally
from mmguard.functional import guard_batch  # mmguard

NUM_CLASSES = 264


def batches(number=40, size=4):
    """Images with two squares each; a square's brightness is its class. Every fifth image knows class 600, too."""
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
    model = SmallRetinaNet(NUM_CLASSES)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    try:
        train_one_epoch(model, optimizer, batches(), guarded=False)
    except IndexError as error:
        print(f'stock: dies, IndexError: {error} (on a GPU: device-side assert triggered)')
    history, tally = train_one_epoch(model, optimizer, batches())
    print(f'guarded: loss {history[0]:.2f} -> {history[-1]:.2f} in {len(history)} iterations')
    print(f'left out: {tally.skipped} of {tally.total} instances, values {tally.values}')


if __name__ == '__main__':
    main()
