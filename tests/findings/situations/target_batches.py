"""Batches as people hand them to ``check_target``, with what is really wrong."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Type

import torch
from torch import Tensor

from mmguard.functional.target_checks import TargetShapeError, TargetTypeError
from mmguard.labels.errors import LabelGuardError

RANDOM = torch.Generator().manual_seed(16)


class Batch(NamedTuple):
    """One call.

    Attributes:
        truth (str): The true cause.
        make (callable): Returns the arguments of ``check_target``, options last.
        raised (type, optional): The exception that is raised, or the warning; ``None``: the batch passes.
        code (str): The finding that it names first; empty: none, shapes and dtypes are no findings.
    """

    truth: str
    make: Callable[[], Tuple[Tensor, Tensor, Dict[str, Any]]]
    raised: Optional[Type[Exception]] = None
    code: str = ''


def regions(values: Any, shape: Tuple[int, ...] = (2, 24, 32), cell: int = 8) -> Tensor:
    """A label map of blocks of these values, each value at least once."""
    n, h, w = shape
    blocks = torch.randint(0, len(values), (n, h // cell, w // cell), generator=RANDOM)
    flat = blocks.flatten()
    flat[: len(values)] = torch.arange(len(values))[: len(flat)]
    table = torch.tensor(list(values))
    return table[flat.view_as(blocks)].repeat_interleave(cell, 1).repeat_interleave(cell, 2)


def batch(classes: int, target: Tensor, size: Any = None, **options: Any) -> Any:
    """Scores (N, C, H, W) beside a target of whatever shape."""

    def make() -> Tuple[Tensor, Tensor, Dict[str, Any]]:
        n, h, w = size or (target.shape[0], *target.shape[-2:])
        return torch.zeros(n, classes, h, w), target, options

    return make


def call(logits: Tensor, target: Tensor, **options: Any) -> Any:
    return lambda: (logits, target, options)


def channel(target: Tensor) -> Tensor:
    return target.unsqueeze(1)


def masks(top: float) -> Tensor:
    return channel(regions((0, 1)) * top)


def clamped(scores: Tensor, target: Tensor) -> Tensor:
    """A Dice loss as people write it: what does not fit one_hot is clamped first."""
    classes = scores.shape[1]
    wanted = torch.nn.functional.one_hot(target.clamp(0, classes - 1), classes).movedim(-1, 1).float()
    found = scores.softmax(1)
    return 1 - 2 * (found * wanted).sum() / (found.sum() + wanted.sum())


SIX, FOUR, TWO = regions(range(6)), regions(range(4)), regions((0, 1))
VOID = SIX.masked_fill(regions((0, 1)) == 1, 255)
SEVEN = regions(range(7), (2, 48, 48))


BATCHES: Dict[str, Batch] = {
    'PIDNet#81': Batch(
        'tables of Cityscapes (weights, label_mapping) kept for 6 classes of my own',
        batch(6, torch.full((4, 32, 64), 255), weight=torch.ones(19), ignore_index=255),
        TargetShapeError,
    ),
    'Pytorch-UNet#258': Batch(
        'n_classes=3 counts the foreground alone; labels 0..3', batch(3, FOUR), LabelGuardError, 'MG102'
    ),
    'pytorch#12670': Batch(
        '-4 is no label; -1 is ignored already',
        call(torch.zeros(6, 5), torch.tensor([0, -1, 4, -4, 2, 1]), ignore_index=-1),
        LabelGuardError,
        'MG105',
    ),
    'weight of ADE20K, labels from one': Batch(
        'weights of 150 classes, a head of 4, labels 1..4',
        batch(4, FOUR + 1, weight=torch.ones(150)),
        TargetShapeError,
        'MG115',
    ),
    'one channel and 0/255': Batch(
        'one output channel, class indices 0/255, softmax loss', batch(1, regions((0, 255))), TargetShapeError, 'MG103'
    ),
    'weight too short, one stray value': Batch(
        '5 weights for 6 outputs, and one pixel of 77',
        batch(6, SIX.index_fill(2, torch.tensor([3]), 77), weight=torch.ones(5)),
        TargetShapeError,
        'MG107',
    ),
    'sizes differ and values out of range': Batch(
        'half the size of the target, and labels 1..6 for 6',
        batch(6, SIX + 1, size=(2, 12, 16)),
        TargetShapeError,
        'MG115',
    ),
    'weights of Cityscapes for Cityscapes': Batch(
        'nothing is wrong', batch(19, regions(range(12)), weight=torch.ones(19))
    ),
    'BCE of floats': Batch('nothing is wrong', batch(1, masks(1.0).float())),
    'BCE of 0/255': Batch('0/255 masks for a sigmoid', batch(1, masks(255.0)), LabelGuardError),
    'BCE of 0/255 after resize': Batch(
        '0/255 masks with fractions at the edges',
        batch(1, masks(255.0).index_fill(3, torch.tensor([7, 8]), 127.5)),
        LabelGuardError,
    ),
    'BCE of 0/255 with 255 ignored': Batch(
        '255 is the object and is ignored', batch(1, masks(255.0), ignore_index=255), UserWarning
    ),
    'BCE of class indices': Batch(
        'three classes for one output', batch(1, channel(regions((0, 1, 2))).float()), LabelGuardError
    ),
    'one-hot of 0/255': Batch(
        'a PNG per class, 0/255',
        batch(3, torch.nn.functional.one_hot(regions(range(3)), 3).movedim(-1, 1).float() * 255),
        LabelGuardError,
    ),
    'squeezed binary': Batch(
        'sigmoid scores (N, H, W) and masks (N, H, W)', call(torch.zeros(2, 24, 32), TWO.float()), LabelGuardError
    ),
    'MONAI': Batch(
        'nothing for MONAI with to_onehot_y; F.cross_entropy wants it without the channel',
        batch(4, channel(FOUR)),
        TargetShapeError,
    ),
    'MONAI with a value too many': Batch(
        'labels 0..4 for 4 outputs; the channel is as MONAI wants it',
        batch(4, channel(regions(range(5)))),
        LabelGuardError,
        'MG102',
    ),
    'vision#2497': Batch('ToTensor on the masks', batch(5, channel(regions(range(5))) / 255), TargetTypeError),
    'channels last target': Batch(
        'one-hot of TensorFlow', batch(4, torch.nn.functional.one_hot(FOUR, 4), size=(2, 24, 32)), TargetShapeError
    ),
    'channels last logits': Batch(
        'scores with the classes last', call(torch.zeros(2, 24, 32, 4), FOUR), TargetShapeError
    ),
    'one image without batch': Batch(
        'the target lacks the batch', batch(4, FOUR[0], size=(1, 24, 32)), TargetShapeError
    ),
    'no batch at all': Batch('neither has a batch', call(torch.zeros(4, 24, 32), FOUR[0]), TargetShapeError),
    'masks of bool for one channel': Batch(
        'binary masks, right but for their type',
        batch(1, regions((0, 1), (2, 48, 48)).unsqueeze(1).bool()),
        TargetTypeError,
    ),
    'the channel last, as in TensorFlow': Batch(
        'class indices (N, H, W, 1)', batch(7, SEVEN.unsqueeze(-1), size=(2, 48, 48)), TargetShapeError
    ),
    'a Dice that clamps': Batch(
        'its ignored pixels become the last class',
        batch(4, regions((0, 1, 2, 3, 255)), ignore_index=255, loss=clamped),
        TargetShapeError,
    ),
    'ToTensor and long': Batch(
        'ToTensor, then .long(): all zeros', batch(5, (regions(range(5)) / 255).long()), UserWarning
    ),
    'ToTensor and long, with void': Batch(
        'the same of labels with 255: 1 where nobody labelled', batch(19, (VOID / 255).long(), ignore_index=255)
    ),
    'all background': Batch('crops of background', batch(2, torch.zeros(2, 24, 32).long()), UserWarning),
    'UniMatch#29': Batch(
        '0/255 masks where 255 is ignored', batch(2, regions((0, 255)), ignore_index=255), UserWarning
    ),
    'PaddleSeg#2270': Batch('Dice makes one-hot of 255; the labels are right', batch(19, VOID, ignore_index=255)),
    'PaddleSeg#1499': Batch(
        'weights looked up by label, 255 included', batch(10, VOID, ignore_index=255, weight=torch.ones(10))
    ),
    'geti#3264': Batch(
        'the metric ignores K, the padding is 255', batch(7, VOID, ignore_index=6), LabelGuardError, 'MG104'
    ),
    'pytorch#15508': Batch(
        'a bug of torch 1.0 with reduction="none"; the labels are right',
        call(torch.zeros(6, 3), torch.tensor([0, 1, 255, 0, 1, 2]), ignore_index=255),
    ),
    'gray levels of two': Batch('levels of 128', batch(3, regions((0, 128, 255))), LabelGuardError, 'MG125'),
    'palette as gray': Batch(
        'the VOC palette converted to gray', batch(21, regions((0, 38, 75, 113, 14, 147))), LabelGuardError, 'MG121'
    ),
    '94 % ignored': Batch(
        'a label map sends nearly all to 255',
        batch(19, torch.where(torch.arange(32) < 30, 255, SIX), ignore_index=255),
        UserWarning,
    ),
    'masked tokens': Batch(
        'nothing: language models are trained on few tokens',
        call(torch.zeros(90, 19), torch.where(torch.arange(90) < 80, -100, torch.arange(90) % 5)),
    ),
    'all ignored': Batch(
        'the label map is of another data set', batch(6, torch.full((2, 8, 8), 255), ignore_index=255), LabelGuardError
    ),
    'FreeMask#4, 150': Batch(
        'COCO-Stuff ids minus one, 255 made 254, 150 outputs',
        batch(150, regions((254, 0, 2, 12, 52, 104, 158, 165, 176, 173, 167, 111)), ignore_index=255),
        LabelGuardError,
        'MG107',
    ),
    'FreeMask#4, 183': Batch(
        '255 became 254 by a shift',
        batch(183, regions((254, 0, 2, 12, 52, 104, 158, 165, 176)), ignore_index=255),
        LabelGuardError,
        'MG133',
    ),
}
