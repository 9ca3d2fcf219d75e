"""Batches as in ``kinds_batches``: values that are valid and teach nothing, marks, gray levels, ids of known sets."""

from __future__ import annotations

from typing import Dict

import torch
from kinds_batches import SIX, VOID, Batch, batch, call, regions

BATCHES: Dict[str, Batch] = {
    # ---- ToTensor, fills, 0/255
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
    'LaneAF#18': Batch(
        'rotation fills with 255, which is ignored',
        batch(6, VOID, ignore_index=255),
        'passes',
        ('255', 'fill'),
    ),
    # ---- a metric or an auxiliary loss that makes one-hot of 255
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
    # ---- gray levels
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
    # ---- nearly everything is ignored
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
    # ---- ids of well-known data sets
    'FreeMask#4, 150': Batch(
        'COCO-Stuff ids minus one, 255 made 254, 150 outputs',
        batch(150, regions((254, 0, 2, 12, 52, 104, 158, 165, 176, 173, 167, 111)), ignore_index=255),
        'raises',
        ('COCO',),
        ('255 outputs', '177 outputs'),
    ),
    'FreeMask#4, no shift, 150': Batch(
        'COCO-Stuff ids, 150 outputs',
        batch(150, regions((255, 1, 3, 13, 53, 105, 159, 166, 177, 174, 168, 112)), ignore_index=255),
        'raises',
        ('COCO',),
        ('178 outputs',),
    ),
    'FreeMask#4, 183': Batch(
        '255 became 254 by a shift',
        batch(183, regions((254, 0, 2, 12, 52, 104, 158, 165, 176)), ignore_index=255),
        'raises',
        ('254', 'no shift', 'COCO-Stuff'),
    ),
}
