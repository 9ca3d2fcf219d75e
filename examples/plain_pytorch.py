"""A segmentation model in a plain PyTorch loop with a mask value that is not a class.

    python examples/plain_pytorch.py            # trains, and reports the excluded pixels
    python examples/plain_pytorch.py --check    # says what is wrong with the first batch, and how to correct it
    python examples/plain_pytorch.py --stock    # torch.nn.CrossEntropyLoss: crashes at the first invalid pixel

Two lines differ from the stock loop; `# mmguard` marks them. Counts stay on the device until they are read.
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from mmguard.functional import check_target
from mmguard.nn import CrossEntropyLoss  # mmguard

NUM_CLASSES, VOID = 3, 255


class Squares(Dataset):
    """Colored squares on a background. Every fourth mask has the value 3 in a corner, but the model has 3 classes."""

    def __len__(self):
        return 64

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        mask = torch.zeros(32, 32, dtype=torch.long)
        for label in (1, 2):
            y, x = torch.randint(0, 20, (2,), generator=generator)
            mask[y : y + 12, x : x + 12] = label
        image = nn.functional.one_hot(mask, NUM_CLASSES).movedim(-1, 0).float()
        image += 0.3 * torch.randn(image.shape, generator=generator)
        mask[-1] = VOID
        if index % 4 == 3:
            mask[:4, :4] = NUM_CLASSES
        return image, mask


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--stock', action='store_true', help='with torch.nn.CrossEntropyLoss')
    parser.add_argument('--check', action='store_true', help='check the first batch, and stop if it is wrong')
    parser.add_argument('--epochs', type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, NUM_CLASSES, 1))
    criterion = (nn.CrossEntropyLoss if args.stock else CrossEntropyLoss)(ignore_index=VOID)  # mmguard
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(Squares(), batch_size=8)
    if args.check:
        images, masks = next(iter(loader))
        check_target(model(images), masks, ignore_index=VOID)
    for epoch in range(args.epochs):
        for images, masks in loader:
            loss = criterion(model(images), masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'epoch {epoch}: loss {loss.item():.3f}', end='')
        if not args.stock:  # once per epoch, because reading waits for the device
            tally = criterion.tally()
            print(f', {tally.skipped:,} of {tally.total:,} pixels left out', end='')
            criterion.reset_tally()
        print()


if __name__ == '__main__':
    main()
