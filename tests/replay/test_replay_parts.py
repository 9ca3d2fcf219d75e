"""The parts of a replay on their own: paths, places, batches, batch norm, label spaces."""

from __future__ import annotations

from typing import Any, Dict, List

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mmengine.model import BaseModel
from torch import nn

from mmguard.replay.errors import CannotReplay
from mmguard.replay.forward import run_sample
from mmguard.replay.labels import judge
from mmguard.replay.paths import common_tail, parts_of
from mmguard.replay.places import Places
from mmguard.replay.recorded import chosen, recorded_batches
from mmguard.replay.spaces import spaces_of
from mmguard.trace.snapshot import Instance, Snapshot

names = st.text('abc', min_size=1, max_size=3)
folders = st.lists(names, min_size=1, max_size=5)


@given(tail=folders, one=folders, other=folders, separator=st.sampled_from('/\\'))
def test_a_common_end_is_found_below_any_two_roots(
    tail: List[str], one: List[str], other: List[str], separator: str
) -> None:
    mine, yours = ['', *one, 'x', *tail], ['D:', *other, 'y', *tail]
    assert common_tail('/'.join(mine), separator.join(yours)) == len(tail)
    assert parts_of(separator.join(yours)) == yours
    assert common_tail('/'.join(mine), '/'.join(mine)) == len(mine) - 1


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


def test_the_longest_end_wins_and_ties_are_told() -> None:
    places = Places(Listed('/here/train/a.png', '/here/val/a.png', '/here/val/b.png'))
    assert places.find('/there/val/a.png')[0] == '/here/val/a.png'
    assert places.find('C:\\there\\train\\a.png')[0] == '/here/train/a.png'
    assert places.find('elsewhere/b.png')[0] == '/here/val/b.png'
    with pytest.raises(CannotReplay, match=r'2 files .* fit equally well: /here/train/a.png, /here/val/a.png'):
        places.find('/there/test/a.png')
    with pytest.raises(CannotReplay, match='none of the 3 training samples'):
        places.find('/there/train/c.png')
    with pytest.raises(CannotReplay, match='meta_keys'):
        places.find('<unknown>')


def test_wrappers_are_followed_to_the_sample_itself() -> None:
    first, second = Listed('/d/a.png'), Listed('/d/b.png', '/d/c.png')
    wrapped = Wrapper(dataset=Wrapper(datasets=[first, Wrapper(dataset=second, repeat_indices=[1, 1, 0])]), times=3)
    places = Places(wrapped)
    assert places.count == 3
    _, (place,) = places.find('/e/d/c.png')
    assert (place.dataset, place.index, place.load()) == (second, 1, {'path': '/d/c.png'})
    with pytest.raises(CannotReplay, match='no data set of mmengine'):
        Places(Wrapper())


def test_a_file_that_is_listed_twice_has_two_places() -> None:
    _, found = Places(Wrapper(datasets=[Listed('/d/a.png'), Listed('/d/a.png')])).find('a.png')
    assert len(found) == 2


def batch(iteration: int, *paths: str, losses: Any = None) -> Dict[str, Any]:
    return {'iter': iteration, 'losses': losses, 'samples': [{'path': path, 'source': path[1:]} for path in paths]}


def test_the_newest_batch_comes_first() -> None:
    record = {'batches': [batch(1, '/t/a.png', '/v/a.png', losses={'loss': 1.0}), batch(2, '/t/b.png', '/t/b.png')]}
    newest, oldest = recorded_batches(record, 'file')
    assert [(r.path, r.iteration, r.unfinished) for r in newest] == [('/t/b.png', 2, True)]
    assert [(r.path, r.iteration, r.unfinished) for r in oldest] == [('/t/a.png', 1, False), ('/v/a.png', 1, False)]
    assert chosen([newest, oldest], 'v/a.png').iteration == 1
    assert chosen([newest, oldest], 'other.png').iteration is None
    with pytest.raises(CannotReplay, match='2 recorded samples end so'):
        chosen([newest, oldest], 'a.png')


class PooledModel(BaseModel):
    """Batch norm behind a global pooling, as in PSPNet and ASPP: a batch of one cannot be trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(3)

    def forward(self, inputs: Any, data_samples: Any = None, mode: str = 'tensor') -> Any:
        pooled = torch.stack(inputs).mean(dim=(2, 3), keepdim=True)
        return {'loss': (self.norm(pooled) - 1).square().mean()}


def test_where_batch_norm_refuses_one_sample_it_is_taken_twice() -> None:
    model = PooledModel()
    result = run_sample(model, {'inputs': torch.rand(3, 4, 4)}, seed=0)
    assert not result.fails
    assert result.losses['loss'] > 0
    assert 'taken twice' in result.notes[0]
    assert model.norm.running_mean is not None
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


def test_the_rpn_knows_no_classes_and_a_cascade_is_as_wide_as_its_narrowest() -> None:
    model = nn.Module()
    model.rpn_head = Head(1)
    model.roi_head = nn.Module()
    model.roi_head.bbox_head = nn.ModuleList([Head(20), Head(19)])
    spaces = spaces_of(model)
    assert list(spaces) == ['instances']
    assert spaces['instances'].num_classes == 19


def test_the_ignored_label_is_the_heads() -> None:
    model = nn.Module()
    model.decode_head = Head(7, ignore_index=7, loss_decode=nn.CrossEntropyLoss())
    model.auxiliary_head = Head(2)
    space = spaces_of(model)['pixels']
    assert (space.num_classes, space.ignore_index) == (7, 7)
    assert spaces_of(nn.Linear(1, 1)) == {}


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
    judged = judge(shot, spaces_of(model), 'a.png')
    assert judged['pixels'].tally.values == {3: 1}
    assert judged['instances'].tally.values == {3: 1}
    assert judged['instances'].tally.reasons == {'box_no_area': 1, 'box_outside': 1, 'label': 1}
    assert len(judged['instances'].examples) == 3
    assert 'box no area' in judged['instances'].examples[1]
