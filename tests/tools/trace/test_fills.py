"""Which arguments of a transform are fill values of label maps."""

from __future__ import annotations

from mmcv.transforms import Pad, RandomApply, Resize
from mmdet.datasets.transforms import Rotate
from mmseg.datasets.transforms import RandomRotate

from mmguard.tools.trace.changes import fills, interpolations


def test_the_argument_of_the_label_map_is_named() -> None:
    assert fills(Pad(size=(8, 8), pad_val=dict(img=3, seg=255))) == {255: 'pad_val.seg=255'}
    assert fills(RandomRotate(prob=1.0, degree=10, seg_pad_val=7))[7] == 'seg_pad_val=7'
    assert fills(Rotate(seg_ignore_label=254))[254] == 'seg_ignore_label=254'


def test_sizes_probabilities_and_scales_are_no_fill_values() -> None:
    assert fills(Resize(scale=(225, 77))) == {}
    assert 10 not in fills(RandomRotate(prob=1.0, degree=10))


def test_transforms_inside_are_reported_by_their_own_arguments() -> None:
    inside = RandomApply([dict(type='Pad', size=(225, 9), pad_val=dict(img=0, seg=33))], prob=1.0)
    assert fills(inside) == {33: 'pad_val.seg=33'}
    assert ('interpolation', 'bicubic') in interpolations(
        RandomApply([dict(type='Resize', scale=(9, 9), interpolation='bicubic')])
    )
