"""Counts travel through nnU-Net's data loader as one more tensor of the target."""

from __future__ import annotations

import pytest

pytest.importorskip('nnunetv2')

import torch
from hypothesis import given
from hypothesis import strategies as st

from mmguard.labels.tally import Tally
from mmguard.nnunet.transforms import VALUES, append_tally, from_tensor, take_tallies, to_tensor

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
