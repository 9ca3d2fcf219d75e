"""The guard among nnU-Net's own transforms."""

from __future__ import annotations

from typing import Any, List, Optional

import numpy as np
import pytest
import torch
from batchgeneratorsv2.transforms.utils.compose import ComposeTransforms
from hypothesis import given
from hypothesis import strategies as st
from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
from nnunetv2.utilities.label_handling.label_handling import LabelManager
from small_nnunet import IGNORING, IGNORING_REGIONS, PLAIN, REGIONS
from torch import Tensor

from mmguard.labels.tally import Tally
from mmguard.nnunet.label_space import (
    EXCLUDED_LABEL,
    WithIgnoreLabel,
    build_label_rule,
    find_labels_without_output,
    ignore_label_of,
    list_valid_labels,
)
from mmguard.nnunet.transforms import VALUES, GuardedTransforms, append_tally, from_tensor, take_tallies, to_tensor

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
    return GuardedTransforms(stock, build_label_rule(manager))


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
@pytest.mark.parametrize(
    ('labels', 'ignored', 'values'), [(PLAIN, EXCLUDED_LABEL, {7: 40, 3: 9}), (IGNORING, 3, {7: 40})]
)
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
        GuardedTransforms(apply, build_label_rule(LabelManager(PLAIN, None)))


def test_without_the_stock_transforms_it_looks_at_the_end() -> None:
    transforms = GuardedTransforms(ComposeTransforms([]), build_label_rule(LabelManager(PLAIN, None)))
    full, counts = apply(transforms, segmentation())['segmentation']
    assert set(full.unique().tolist()) == {-1, 0, 1, 2}
    assert from_tensor(counts, None).values == {7: 40, 3: 9}


counts = st.integers(1, 2**40)
tallies = st.builds(
    Tally,
    total=st.integers(0, 2**45),
    skipped=st.integers(0, 2**45),
    remapped=st.integers(0, 2**45),
    values=st.dictionaries(st.integers(-(2**15), 2**15 - 1), counts, max_size=VALUES),
)


@given(tallies)
def test_a_tally_comes_back_whole(tally: Tally) -> None:
    # Each voxel that was skipped or remapped had one value.
    tally.other_values = tally.skipped + tally.remapped - sum(tally.values.values())
    assert from_tensor(to_tensor(tally), None) == tally


def test_of_many_values_the_most_frequent_are_reported_and_the_sum_holds_all() -> None:
    values = {value: value for value in range(1, 101)}
    back = from_tensor(to_tensor(Tally(skipped=sum(values.values()), values=values)), None)
    assert back.skipped == 5050
    assert back.values == {value: value for value in range(100 - VALUES + 1, 101)}


@pytest.mark.parametrize('several', [False, True])
def test_a_batch_is_parted_as_nnunet_knows_it(several: bool) -> None:
    found = [Tally(total=8, skipped=3, values={7: 3}), Tally(total=8)]
    label = torch.zeros(1, 2, 2, 2, dtype=torch.int16)
    samples = [append_tally([label, label[..., :1]] if several else label, tally) for tally in found]
    target = [torch.stack(parts) for parts in zip(*samples)]  # as nnU-Net's data loader collates
    batch = {'data': torch.zeros(2, 1, 2, 2, 2), 'target': target, 'keys': ['case_001', 'case_002']}
    parted, tallies = take_tallies(batch)
    assert tallies is not None
    assert [(t.source, t.skipped, t.values) for t in tallies] == [('case_001', 3, {7: 3}), ('case_002', 0, {})]
    if several:
        assert [tuple(part.shape) for part in parted['target']] == [(2, 1, 2, 2, 2), (2, 1, 2, 2, 1)]
    else:
        assert tuple(parted['target'].shape) == (2, 1, 2, 2, 2)
    assert len(batch['target']) == 2 + several  # the loader's own batch is left as it was


def test_a_batch_that_carries_none_is_left_alone() -> None:
    batch = {'data': torch.zeros(1, 1, 2, 2), 'target': [torch.zeros(1, 1, 2, 2, dtype=torch.int64)]}
    assert take_tallies(batch) == (batch, None)
    assert take_tallies({**batch, 'target': batch['target'][0]})[1] is None


def manager(labels: Any) -> LabelManager:
    return LabelManager(labels, [1, 2])


@pytest.mark.parametrize(
    ('labels', 'valid', 'ignored'),
    [
        (PLAIN, [0, 1, 2], EXCLUDED_LABEL),
        (IGNORING, [0, 1, 2], 3),
        (REGIONS, [0, 1, 2], EXCLUDED_LABEL),
        (IGNORING_REGIONS, [0, 1, 2], 3),
        # Labels with a gap: three outputs, so that 5 has none, and 2 would train an output that nobody declared.
        ({'background': 0, 'a': 1, 'b': 5}, [0, 1], EXCLUDED_LABEL),
        # Regions may leave a gap, as BraTS' own labels do: outputs are regions there.
        ({'background': 0, 'whole': [1, 2, 4], 'core': [1, 4]}, [0, 1, 2, 4], EXCLUDED_LABEL),
    ],
)
def test_valid_are_the_labels_that_can_be_trained(labels: Any, valid: list, ignored: int) -> None:
    described = manager(labels)
    assert list_valid_labels(described) == valid
    assert ignore_label_of(described) == ignored
    volume = np.array([*range(-3, 9), 255, 32767], dtype=np.int16)
    sanitized, tally = build_label_rule(described).sanitize(volume)
    wanted = [v if v in valid or v == ignored else ignored for v in volume.tolist()]
    assert sanitized.tolist() == wanted
    assert tally.values == {v: 1 for v in volume.tolist() if v not in valid and v != ignored}
    assert tally.skipped == len(tally.values)


def test_labels_above_a_gap_have_no_output() -> None:
    assert find_labels_without_output(manager({'background': 0, 'a': 1, 'b': 5, 'c': 7})) == [5, 7]
    assert find_labels_without_output(manager(IGNORING)) == []
    assert find_labels_without_output(manager({'background': 0, 'whole': [1, 2, 4], 'core': [1, 4]})) == []


def test_clip_leads_into_the_declared_labels() -> None:
    sanitized, tally = build_label_rule(manager(PLAIN), 'clip').sanitize(np.array([0, 7, -9, 2], dtype=np.int16))
    assert sanitized.tolist() == [0, 2, 0, 2]
    assert (tally.skipped, tally.remapped) == (0, 2)


def test_a_manager_with_an_ignore_label_is_otherwise_the_same() -> None:
    plain = manager(PLAIN)
    ignoring = WithIgnoreLabel(plain, EXCLUDED_LABEL)
    assert (ignoring.has_ignore_label, ignoring.ignore_label) == (True, EXCLUDED_LABEL)
    assert ignoring.num_segmentation_heads == plain.num_segmentation_heads == 3
    assert not plain.has_ignore_label
