"""The parts of a replay on their own: paths, samples, batches, batch norm, label spaces."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mmengine.model import BaseModel
from torch import nn

from mmguard.errors import CannotRun
from mmguard.labels.heads import from_model
from mmguard.labels.instances import InstanceRule
from mmguard.log.flight_record import Flight, FlightBatch, FlightSample
from mmguard.tools.replay.network import run_sample
from mmguard.tools.replay.outcome import judge, read_batches
from mmguard.tools.samples import Samples, count_common_tail, split_folders
from mmguard.tools.trace.snapshot import Instance, Snapshot

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


def test_an_image_without_instances_has_none_that_is_invalid() -> None:
    judged = judge(Snapshot('trained', instances=[]), {'instances': InstanceRule(3)}, 'a.png')
    assert not judged['instances'].is_invalid


def batch(iteration: int, *paths: str, losses: Optional[Dict[str, float]] = None) -> FlightBatch:
    return FlightBatch([FlightSample(path, path[1:]) for path in paths], iteration, losses)


def test_the_newest_batch_comes_first() -> None:
    batches = [batch(1, '/t/a.png', '/v/a.png', losses={'loss': 1.0}), batch(2, '/t/b.png', '/t/b.png')]
    newest, oldest = read_batches(Flight(batches=batches), 'file')
    assert [(r.path, r.iteration, r.unfinished) for r in newest] == [('/t/b.png', 2, True)]
    assert [(r.path, r.iteration, r.unfinished) for r in oldest] == [('/t/a.png', 1, False), ('/v/a.png', 1, False)]


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
    result = run_sample(model, {'inputs': torch.rand(3, 4, 4)}, seed=0)
    assert not result.fails
    assert result.losses['loss'] > 0
    assert result.notes == []
    assert torch.equal(model.norm.running_mean, torch.zeros(3))
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_loss_that_is_not_finite_fails_and_leaves_no_trace() -> None:
    model = PooledModel()
    result = run_sample(model, {'inputs': torch.full((3, 4, 4), float('nan'))}, seed=0)
    assert (result.fails, result.nonfinite_losses) == (True, ['loss'])
    assert result.nonfinite_gradients == ['norm.bias', 'norm.weight']
    assert not run_sample(model, {'inputs': torch.rand(3, 4, 4)}, seed=0).fails


class Head(nn.Module):
    def __init__(self, num_classes: int, **more: Any) -> None:
        super().__init__()
        self.num_classes = num_classes
        for name, value in more.items():
            setattr(self, name, value)


def test_labels_and_boxes_are_judged_apart_from_what_is_ignored() -> None:
    model = nn.Module()
    model.decode_head, model.bbox_head = Head(3, ignore_index=255), Head(3)
    shot = Snapshot('', label=np.array([[0, 3, 255]]), size=(10, 10))
    shot.instances = [
        Instance(3, (0, 0, 5, 5)),
        Instance(3, (0, 0, 5, 5), ignored=True),
        Instance(1, (4, 4, 4, 8)),
        Instance(2, (20, 20, 30, 30)),
    ]
    judged = judge(shot, from_model(model).build_rules(), 'a.png')
    assert judged['pixels'].tally.values == {3: 1}
    assert judged['instances'].tally.values == {3: 1}
    assert judged['instances'].tally.reasons == {'box_no_area': 1, 'box_outside': 1, 'label': 1}
    assert len(judged['instances'].examples) == 3
