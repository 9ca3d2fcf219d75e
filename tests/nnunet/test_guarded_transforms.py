"""The guard among nnU-Net's own transforms."""

from __future__ import annotations

from typing import Any, List, Optional

import pytest

pytest.importorskip('nnunetv2')

import torch
from batchgeneratorsv2.transforms.utils.compose import ComposeTransforms
from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
from nnunetv2.utilities.label_handling.label_handling import LabelManager
from small_nnunet import IGNORING, IGNORING_REGIONS, PLAIN, REGIONS
from torch import Tensor

from mmguard.nnunet.label_space import MARK, label_rule
from mmguard.nnunet.sample_tally import from_tensor
from mmguard.nnunet.transforms import GuardedTransforms

SCALES = [[1.0, 1.0, 1.0], [0.5, 0.5, 0.5]]


def guarded(labels: Any, scales: Optional[List[List[float]]] = SCALES, cascaded: bool = False) -> GuardedTransforms:
    manager = LabelManager(labels, [1, 2])
    stock = nnUNetTrainer.get_validation_transforms(
        scales,
        is_cascaded=cascaded,
        foreground_labels=manager.foreground_labels,
        regions=manager.foreground_regions if manager.has_regions else None,
        ignore_label=manager.ignore_label,
    )
    return GuardedTransforms(stock, label_rule(manager))


def segmentation() -> Tensor:
    """Labels 0, 1, 2; -1 outside of the image; and 40 voxels of 7, 9 of 3."""
    labels = torch.zeros(1, 8, 8, 8, dtype=torch.int16)
    labels[0, :2] = -1
    labels[0, 3] = 1
    labels[0, 4] = 2
    labels[0, 5, :5] = 7
    labels[0, 6, :3, :3] = 3
    return labels


def apply(transforms: Any, labels: Tensor) -> Any:
    return transforms(image=torch.zeros(1, 8, 8, 8), segmentation=labels.clone())


@pytest.mark.parametrize('scales', [None, SCALES])
@pytest.mark.parametrize(('labels', 'ignored', 'values'), [(PLAIN, MARK, {7: 40, 3: 9}), (IGNORING, 3, {7: 40})])
def test_invalid_labels_are_left_out_and_counted(labels: Any, ignored: int, values: dict, scales: Any) -> None:
    *resolutions, counts = apply(guarded(labels, scales), segmentation())['segmentation']
    assert len(resolutions) == (2 if scales else 1)
    raw = segmentation()[0]
    outside = raw == -1
    full = resolutions[0][0]
    assert (full[outside] == 0).all()  # nnU-Net's own doing; no invalid label
    assert (full[(raw == 7) | (raw == 3)] == ignored).all()
    valid = (raw >= 0) & (raw <= 2)
    assert torch.equal(full[valid], raw[valid])
    tally = from_tensor(counts, 'case')
    assert (tally.total, tally.skipped, tally.values) == (512, sum(values.values()), values)
    if scales:
        assert set(resolutions[1].unique().tolist()) <= {0, 1, 2, ignored}


@pytest.mark.parametrize(('labels', 'left_out'), [(REGIONS, [7, 3]), (IGNORING_REGIONS, [7, 3])])
def test_regions_have_a_channel_of_what_is_left_out(labels: Any, left_out: List[int]) -> None:
    full, _, counts = apply(guarded(labels), segmentation())['segmentation']
    raw = segmentation()[0]
    expected = torch.stack([(raw == 1) | (raw == 2), raw == 2, (raw == 7) | (raw == 3)])
    assert full.dtype == torch.bool
    assert torch.equal(full, expected)
    assert from_tensor(counts, None).skipped == (49 if labels is REGIONS else 40)


@pytest.mark.parametrize('labels', [PLAIN, IGNORING])
def test_valid_labels_pass_unchanged(labels: Any) -> None:
    manager = LabelManager(labels, None)
    stock = nnUNetTrainer.get_validation_transforms(SCALES, ignore_label=manager.ignore_label)
    raw = segmentation()
    raw[raw > 2] = 3 if manager.has_ignore_label else 2
    *ours, counts = apply(guarded(labels), raw)['segmentation']
    theirs = apply(stock, raw)['segmentation']
    assert len(ours) == len(theirs)
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(ours, theirs))
    assert not from_tensor(counts, None)


def test_the_previous_stage_of_a_cascade_is_no_label() -> None:
    both = torch.cat([segmentation(), torch.full((1, 8, 8, 8), 2, dtype=torch.int16)])
    out = guarded(PLAIN, cascaded=True)(image=torch.zeros(1, 8, 8, 8), segmentation=both)
    assert tuple(out['image'].shape) == (3, 8, 8, 8)  # one channel of the image, one per foreground label
    assert (out['image'][2] == 1).all()
    assert from_tensor(out['segmentation'][-1], None).values == {7: 40, 3: 9}


def test_transforms_that_are_no_list_are_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError, match=r'function.*ComposeTransforms'):
        GuardedTransforms(apply, label_rule(LabelManager(PLAIN, None)))


def test_without_the_stock_transforms_it_looks_at_the_end() -> None:
    transforms = GuardedTransforms(ComposeTransforms([]), label_rule(LabelManager(PLAIN, None)))
    full, counts = apply(transforms, segmentation())['segmentation']
    assert set(full.unique().tolist()) == {-1, 0, 1, 2}
    assert from_tensor(counts, None).values == {7: 40, 3: 9}
