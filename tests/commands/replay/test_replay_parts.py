"""The parts of a replay on their own: paths, samples, batches, batch norm."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mmengine.model import BaseModel
from torch import nn

from mmguard.commands.replay.run import run_sample
from mmguard.commands.samples import Samples, count_common_tail, split_folders
from mmguard.errors import CannotRun

pytest.importorskip('mmseg')

names = st.text('abc', min_size=1, max_size=3)
folders = st.lists(names, min_size=1, max_size=5)


@given(tail=folders, one=folders, other=folders, separator=st.sampled_from('/\\'))
def test_a_common_end_is_found_below_any_two_roots(
    tail: List[str], one: List[str], other: List[str], separator: str
) -> None:
    mine, yours = ['', *one, 'x', *tail], ['D:', *other, 'y', *tail]
    assert count_common_tail('/'.join(mine), separator.join(yours)) == len(tail)
    assert split_folders(separator.join(yours)) == yours
    assert count_common_tail('/'.join(mine), '/'.join(mine)) == len(mine) - 1


class Listed:
    """A data set as far as paths go."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def get_data_info(self, index: int) -> Dict[str, Any]:
        return {'img_path': self.paths[index]}

    def prepare_data(self, index: int) -> Dict[str, Any]:
        return {'path': self.paths[index]}


class Wrapper:
    def __init__(self, **inner: Any) -> None:
        vars(self).update(inner)


def test_the_longest_end_wins_and_ties_are_reported() -> None:
    samples = Samples(Listed('/here/train/a.png', '/here/val/a.png', '/here/val/b.png'))
    assert samples.find('/there/val/a.png')[0] == '/here/val/a.png'
    assert samples.find('C:\\there\\train\\a.png')[0] == '/here/train/a.png'
    assert samples.find('elsewhere/b.png')[0] == '/here/val/b.png'
    for path, named in {
        '/there/test/a.png': '/here/train/a.png, /here/val/a.png',
        '/there/train/c.png': 'c.png',
        '<unknown>': 'meta_keys',
    }.items():
        with pytest.raises(CannotRun, match=named):
            samples.find(path)


def test_wrappers_are_followed_to_the_sample_itself() -> None:
    first, second = Listed('/d/a.png'), Listed('/d/b.png', '/d/c.png')
    wrapped = Wrapper(dataset=Wrapper(datasets=[first, Wrapper(dataset=second, repeat_indices=[1, 1, 0])]), times=3)
    samples = Samples(wrapped)
    assert len(samples) == 3
    _, (sample,) = samples.find('/e/d/c.png')
    assert (sample.dataset, sample.index, sample.load()) == (second, 1, {'path': '/d/c.png'})
    with pytest.raises(CannotRun, match='Wrapper'):
        Samples(Wrapper())


def test_a_file_that_is_listed_twice_has_two_samples() -> None:
    _, found = Samples(Wrapper(datasets=[Listed('/d/a.png'), Listed('/d/a.png')])).find('a.png')
    assert len(found) == 2


class PooledModel(BaseModel):
    """Batch norm behind a global pooling, as in PSPNet and ASPP: a batch of one cannot be trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(3)

    def forward(self, inputs: Any, data_samples: Any = None, mode: str = 'tensor') -> Any:
        pooled = torch.stack(inputs).mean(dim=(2, 3), keepdim=True)
        return {'loss': (self.norm(pooled) - 1).square().mean()}


def test_a_batch_of_one_that_batch_norm_refuses_is_trained_on() -> None:
    model = PooledModel()
    run_sample(model, {'inputs': torch.rand(3, 4, 4)}, seed=0)
    assert torch.equal(model.norm.running_mean, torch.zeros(3))
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_loss_that_is_not_finite_fails_and_leaves_no_trace() -> None:
    model = PooledModel()
    with pytest.raises(FloatingPointError, match='loss is nan'):
        run_sample(model, {'inputs': torch.full((3, 4, 4), float('nan'))}, seed=0)
    run_sample(model, {'inputs': torch.rand(3, 4, 4)}, seed=0)
