"""Batches as people hand them to ``check_target``, with what is really wrong, written down before the first run."""

# Expectations that were changed after the first run: the order of words in four; 'masked tokens', which warned (as
# language models are trained); 'ToTensor and long, with void', which warned (crops of two classes look the same).

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


SIX, FOUR, TWO = regions(range(6)), regions(range(4)), regions((0, 1))
VOID = SIX.masked_fill(regions((0, 1)) == 1, 255)
OPENMMLAB = ('GuardSegLabels', 'metainfo', 'reduce_zero_label', 'LoadAnnotations', 'ignore_index=-4')

BATCHES: Dict[str, Batch] = {
    # ---- several faults at once
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
    'negative marks beside the ignored one': Batch(
        '-2 is another mark, -1 ignored',
        batch(6, SIX.masked_fill(TWO == 1, -1).index_fill(1, torch.tensor([2]), -2), ignore_index=-1),
        'raises',
        ('value -2',),
        ('ignore_index=-2',),
    ),
    # ---- one channel, binary targets
    'BCE of floats': Batch('nothing is wrong', batch(1, masks(1.0).float()), 'passes'),
    'BCE of 0/255': Batch(
        '0/255 masks for a sigmoid', batch(1, masks(255.0)), 'raises', ('(target > 0).float()',), ('softmax(1)',)
    ),
    'BCE of 0/255, uint8': Batch(
        'the same, as loaded', batch(1, masks(255.0).byte()), 'raises', ('(target > 0).float()',), ('softmax(1)',)
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
    # ---- shapes that a framework wants so
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
}
