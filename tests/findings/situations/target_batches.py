"""Batches as people hand them to ``check_target``, with what is really wrong."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Tuple

import torch
from torch import Tensor

RANDOM = torch.Generator().manual_seed(16)


class Batch(NamedTuple):
    """One call.

    Attributes:
        truth (str): The true cause.
        make (callable): Returns the arguments of ``check_target``, options last.
        outcome (str): ``'raises'``, ``'warns'`` or ``'passes'``.
        says (tuple[str]): In this order in what is said; what is said first comes first.
        never (tuple[str]): What would do harm, or is another framework's.
    """

    truth: str
    make: Callable[[], Tuple[Tensor, Tensor, Dict[str, Any]]]
    outcome: str = 'raises'
    says: Tuple[str, ...] = ()
    never: Tuple[str, ...] = ()


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
OPENMMLAB = ('GuardSegLabels', 'metainfo', 'reduce_zero_label', 'LoadAnnotations', 'ignore_index=-4')
SEVEN = regions(range(7), (2, 48, 48))


BATCHES: Dict[str, Batch] = {
    'PIDNet#81': Batch(
        'tables of Cityscapes (weights, label_mapping) kept for 6 classes of my own',
        batch(6, torch.full((4, 32, 64), 255), weight=torch.ones(19), ignore_index=255),
        'raises',
        ('19', 'here 6', 'Cityscapes', 'ignored'),
        ('Leave such crops out',),
    ),
    'Pytorch-UNet#258': Batch(
        'n_classes=3 counts the foreground alone; labels 0..3',
        batch(3, FOUR),
        'raises',
        ('MG102', 'background', '4 outputs', '3 is void'),
        ('target - 1', *OPENMMLAB),
    ),
    'pytorch#12670': Batch(
        '-4 is no label; -1 is ignored already',
        call(torch.zeros(6, 5), torch.tensor([0, -1, 4, -4, 2, 1]), ignore_index=-1),
        'raises',
        ('value -4', 'ignore_index=-1'),
        ('ignore_index=-4',),
    ),
    'weight of ADE20K, labels from one': Batch(
        'weights of 150 classes, a head of 4, labels 1..4',
        batch(4, FOUR + 1, weight=torch.ones(150)),
        'raises',
        ('weight', '150', 'ADE20K', 'MG115', 'target - 1'),
        OPENMMLAB,
    ),
    'one channel and 0/255': Batch(
        'one output channel, class indices 0/255, softmax loss',
        batch(1, regions((0, 255))),
        'raises',
        ('single channel', '255'),
        OPENMMLAB,
    ),
    'weight too short, one stray value': Batch(
        '5 weights for 6 outputs, and one pixel of 77',
        batch(6, SIX.index_fill(2, torch.tensor([3]), 77), weight=torch.ones(5)),
        'raises',
        ('weight has shape (5)', 'value 77'),
    ),
    'sizes differ and values out of range': Batch(
        'half the size of the target, and labels 1..6 for 6',
        batch(6, SIX + 1, size=(2, 12, 16)),
        'raises',
        ('sizes differ', 'MG115'),
    ),
    'weights of Cityscapes for Cityscapes': Batch(
        'nothing is wrong', batch(19, regions(range(12)), weight=torch.ones(19)), 'passes'
    ),
    'BCE of floats': Batch('nothing is wrong', batch(1, masks(1.0).float()), 'passes'),
    'BCE of 0/255': Batch(
        '0/255 masks for a sigmoid', batch(1, masks(255.0)), 'raises', ('(target > 0).float()',), ('softmax(1)',)
    ),
    'BCE of 0/255 after resize': Batch(
        '0/255 masks with fractions at the edges',
        batch(1, masks(255.0).index_fill(3, torch.tensor([7, 8]), 127.5)),
        'raises',
        ('> 127',),
        ('softmax(1)', 'target / target.sum'),
    ),
    'BCE of 0/255 with 255 ignored': Batch(
        '255 is the object and is ignored', batch(1, masks(255.0), ignore_index=255), 'warns', ('255',), ('softmax',)
    ),
    'BCE of class indices': Batch(
        'three classes for one output',
        batch(1, channel(regions((0, 1, 2))).float()),
        'raises',
        ('class',),
        ('softmax(1)',),
    ),
    'one-hot of 0/255': Batch(
        'a PNG per class, 0/255',
        batch(3, torch.nn.functional.one_hot(regions(range(3)), 3).movedim(-1, 1).float() * 255),
        'raises',
        ('/ 255',),
        ('softmax(1)',),
    ),
    'squeezed binary': Batch(
        'sigmoid scores (N, H, W) and masks (N, H, W)',
        call(torch.zeros(2, 24, 32), TWO.float()),
        'raises',
        ('multilabel',),
    ),
    'MONAI': Batch(
        'nothing for MONAI with to_onehot_y; F.cross_entropy wants it without the channel',
        batch(4, channel(FOUR)),
        'raises',
        ('target.squeeze(1)', 'to_onehot_y'),
    ),
    'MONAI with a value too many': Batch(
        'labels 0..4 for 4 outputs; the channel is as MONAI wants it',
        batch(4, channel(regions(range(5)))),
        'raises',
        ('value 4', 'to_onehot_y'),
    ),
    'vision#2497': Batch(
        'ToTensor on the masks',
        batch(5, channel(regions(range(5))) / 255),
        'raises',
        ('k/255', 'target.squeeze(1)'),
    ),
    'channels last target': Batch(
        'one-hot of TensorFlow',
        batch(4, torch.nn.functional.one_hot(FOUR, 4), size=(2, 24, 32)),
        'raises',
        ('classes last',),
    ),
    'channels last logits': Batch(
        'scores with the classes last', call(torch.zeros(2, 24, 32, 4), FOUR), 'raises', ('logits.movedim(-1, 1)',)
    ),
    'one image without batch': Batch(
        'the target lacks the batch', batch(4, FOUR[0], size=(1, 24, 32)), 'raises', ('target.unsqueeze(0)',)
    ),
    'no batch at all': Batch('neither has a batch', call(torch.zeros(4, 24, 32), FOUR[0]), 'raises', ('unsqueeze(0)',)),
    'masks of bool for one channel': Batch(
        'binary masks, right but for their type',
        batch(1, regions((0, 1), (2, 48, 48)).unsqueeze(1).bool()),
        'raises',
        ('.float()',),
        ('softmax(1)', 'squeeze(1)'),
    ),
    'the channel last, as in TensorFlow': Batch(
        'class indices (N, H, W, 1)',
        batch(7, SEVEN.unsqueeze(-1), size=(2, 48, 48)),
        'raises',
        ('target.squeeze(-1)',),
        ('one-hot of', 'argmax'),
    ),
    'a Dice that clamps': Batch(
        'its ignored pixels become the last class',
        batch(4, regions((0, 1, 2, 3, 255)), ignore_index=255, loss=clamped),
        'raises',
        ('ignore',),
    ),
    'ToTensor and long': Batch(
        'ToTensor, then .long(): all zeros',
        batch(5, (regions(range(5)) / 255).long()),
        'warns',
        ('class 0', 'ToTensor'),
    ),
    'ToTensor and long, with void': Batch(
        'the same of labels with 255: 1 where nobody labelled',
        batch(19, (VOID / 255).long(), ignore_index=255),
        'passes',
        ('Only 0 and 1 of 19', 'ToTensor'),
    ),
    'all background': Batch('crops of background', batch(2, torch.zeros(2, 24, 32).long()), 'warns', ('class 0',)),
    'UniMatch#29': Batch(
        '0/255 masks where 255 is ignored',
        batch(2, regions((0, 255)), ignore_index=255),
        'warns',
        ('255', '(target > 0).long()'),
    ),
    'PaddleSeg#2270': Batch(
        'Dice makes one-hot of 255; the labels are right',
        batch(19, VOID, ignore_index=255),
        'passes',
        ('255', 'one-hot'),
    ),
    'PaddleSeg#1499': Batch(
        'weights looked up by label, 255 included',
        batch(10, VOID, ignore_index=255, weight=torch.ones(10)),
        'passes',
        ('255', 'weights'),
    ),
    'geti#3264': Batch(
        'the metric ignores K, the padding is 255',
        batch(7, VOID, ignore_index=6),
        'raises',
        ('MG104', 'ignore_index=255'),
    ),
    'pytorch#15508': Batch(
        'a bug of torch 1.0 with reduction="none"; the labels are right',
        call(torch.zeros(6, 3), torch.tensor([0, 1, 255, 0, 1, 2]), ignore_index=255),
        'passes',
        ('valid', '255'),
    ),
    'gray levels of two': Batch(
        'levels of 128', batch(3, regions((0, 128, 255))), 'raises', ('mmguard scan',), ('bucketize', 'torch.tensor([')
    ),
    'palette as gray': Batch(
        'the VOC palette converted to gray',
        batch(21, regions((0, 38, 75, 113, 14, 147))),
        'raises',
        (),
        ('bucketize', '148 outputs', 'torch.tensor(['),
    ),
    '94 % ignored': Batch(
        'a label map sends nearly all to 255',
        batch(19, torch.where(torch.arange(32) < 30, 255, SIX), ignore_index=255),
        'warns',
        ('93.', 'ignored'),
    ),
    'masked tokens': Batch(
        'nothing: language models are trained on few tokens',
        call(torch.zeros(90, 19), torch.where(torch.arange(90) < 80, -100, torch.arange(90) % 5)),
        'passes',
        ('88.9',),
        ('rotation',),
    ),
    'all ignored': Batch(
        'the label map is of another data set',
        batch(6, torch.full((2, 8, 8), 255), ignore_index=255),
        'raises',
        ('map',),
    ),
    'FreeMask#4, 150': Batch(
        'COCO-Stuff ids minus one, 255 made 254, 150 outputs',
        batch(150, regions((254, 0, 2, 12, 52, 104, 158, 165, 176, 173, 167, 111)), ignore_index=255),
        'raises',
        ('COCO',),
        ('255 outputs', '177 outputs'),
    ),
    'FreeMask#4, 183': Batch(
        '255 became 254 by a shift',
        batch(183, regions((254, 0, 2, 12, 52, 104, 158, 165, 176)), ignore_index=255),
        'raises',
        ('254', 'no shift', 'COCO-Stuff'),
    ),
}
