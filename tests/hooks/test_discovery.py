"""Losses, guards, samples and reports, wherever a run holds them."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, Dict, List, Sequence

import mmcv.transforms as mmcv
import numpy as np
import pytest
import torch
from mmengine.dataset import default_collate, pseudo_collate
from mmengine.model import MMDistributedDataParallel, is_model_wrapper
from mmengine.structures import BaseDataElement, InstanceData, PixelData
from torch import nn
from torch.utils.data import DataLoader

import mmguard
from mmguard.hooks.discovery import (
    KeepsReports,
    collect_rules,
    find_guarded_losses,
    find_naming_roots,
    find_offending,
    find_samples,
    keep_reports,
    select_evaluated,
    select_trained,
    unwrap,
    walk_pipelines,
    walk_rules,
)
from mmguard.labels.spaces import Space, from_loss
from mmguard.labels.tally import LABEL_GUARD, Tally, leave_in_sample, make_relative
from mmguard.log.statistics import Stats


class Head(nn.Module):
    def __init__(self, losses: Any, **names: Any) -> None:
        super().__init__()
        self.loss_decode = losses
        for name, value in names.items():
            setattr(self, name, value)


def model_of(*losses: nn.Module, **names: Any) -> nn.Module:
    return nn.ModuleDict({'decode_head': Head(nn.ModuleList(losses), **names)})


class Holder:
    """Stands for a dataset, a loader, a pipeline."""

    def __init__(self, **names: Any) -> None:
        self.__dict__.update(names)


def test_guarded_losses_by_name_each_once() -> None:
    ce, wrapped = mmguard.GuardedCrossEntropyLoss(), wrap('TverskyLoss')
    model = model_of(ce, nn.CrossEntropyLoss(), wrapped, ce)
    assert find_guarded_losses(model) == {'decode_head.loss_decode.0': ce, 'decode_head.loss_decode.2': wrapped}


def test_names_do_not_hold_the_wrappers() -> None:
    import torch.distributed as dist

    model = model_of(mmguard.GuardedCrossEntropyLoss())
    model.layer = nn.Linear(1, 1)
    dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    try:
        wrapped = MMDistributedDataParallel(model, device_ids=None)
        assert is_model_wrapper(wrapped)
        assert list(find_guarded_losses(wrapped)) == ['decode_head.loss_decode.0']
        assert from_loss(unwrap(wrapped), 'decode_head.loss_decode.0') == {}
    finally:
        dist.destroy_process_group()


def test_a_copied_model_counts_for_itself() -> None:
    model = model_of(mmguard.GuardedCrossEntropyLoss(), wrap('TverskyLoss'))
    copied = copy.deepcopy(model)
    assert len(find_guarded_losses(copied)) == 2
    for loss in find_guarded_losses(copied).values():
        loss(torch.zeros(1, 3, 2, 2, requires_grad=True), torch.full((1, 2, 2), 7))
        assert loss.take_counts().tolist() == [4, 4, 0]
    assert all(loss.take_counts() is None for loss in find_guarded_losses(model).values())


def wrap(name: str, num_classes: Any = None, ignore_index: Any = None, **arguments: Any) -> nn.Module:
    pytest.importorskip('mmseg')
    loss = dict(type=f'mmseg.{name}', **arguments)
    return mmguard.GuardedLoss(loss, num_classes=num_classes, ignore_index=ignore_index)


def element(**names: Any) -> BaseDataElement:
    return BaseDataElement(metainfo=names)


@pytest.mark.parametrize('place', ['list', 'dict', 'nested', 'dict of lists', 'tuple', 'none'])
def test_samples_of_any_batch(place: str) -> None:
    a, b = element(img_path='a'), element(img_path='b')
    batch: Any = {
        'list': [a, b],
        'dict': {'inputs': [torch.zeros(1)], 'data_samples': [a, b]},
        'nested': {'inputs': [], 'data_samples': [[a], [b]]},
        'dict of lists': {'data_samples': {'sup': [a], 'unsup': [b]}},
        'tuple': (torch.zeros(1), {'x': [a, b]}),
        'none': None,
    }[place]
    assert find_samples(batch) == ([] if place == 'none' else [a, b])


def test_a_sample_is_evaluated_once_in_all_its_views_and_each_tile_of_a_file_is_a_sample() -> None:
    tiles = [element(seg_map_path='a.png', half=half) for half in (0, 1)]
    flipped = [copy.deepcopy(tile) for tile in tiles]
    for batch in (dict(data_samples=tiles), dict(data_samples=[tiles, flipped]), tiles, [[tiles, flipped]]):
        assert [id(sample) for sample in select_evaluated(batch)] == list(map(id, tiles))


def test_pipelines_and_roots_of_wrapped_data_sets() -> None:
    a, b = mmguard.GuardSegLabels(num_classes=3), mmguard.GuardSegLabels(num_classes=4)
    one = Holder(pipeline=Holder(transforms=[a]), data_root='one')
    two = Holder(pipeline=[b], data_root='two/')
    three = Holder(dataset=Holder(datasets=[one, Holder(dataset=two)]))
    assert list(walk_pipelines(three)) == [[a], [b]]
    assert find_naming_roots(three) == []
    assert list(walk_pipelines(None)) == find_naming_roots(None) == []


def seg_guard(num_classes: int) -> Any:
    return mmguard.GuardSegLabels(num_classes=num_classes)


def test_guards_in_the_branches_of_multi_branch() -> None:
    pytest.importorskip('mmdet')
    from mmdet.datasets.transforms import MultiBranch, PackDetInputs

    pack, of_sup, of_unsup = PackDetInputs(), seg_guard(3), seg_guard(4)
    branches = MultiBranch(['sup', 'unsup', 'none'], sup=[of_sup, pack], unsup=[mmcv.RandomApply([of_unsup])], none=[])
    data = Holder(pipeline=mmcv.Compose([seg_guard(2), branches]))
    assert [rule.num_classes for rule in collect_rules(data)] == [2, 3, 4]
    assert [of_sup, pack] in list(walk_pipelines(data))


@pytest.mark.parametrize(
    'wrapper',
    [
        lambda guard: guard,
        lambda guard: mmcv.RandomApply([guard]),
        lambda guard: mmcv.TestTimeAug([[mmcv.RandomFlip(prob=0.0), mmcv.RandomFlip(prob=1.0)], [guard]]),
        lambda guard: mmcv.RandomChoice([[mmcv.RandomFlip(prob=0.5)], [guard]]),
        lambda guard: mmcv.TransformBroadcaster([guard]),
        lambda guard: Callable(steps=Callable(first=guard)),
        lambda guard: Callable(by_name={'weak': [[guard]]}),
    ],
)
def test_guards_in_transforms_that_hold_transforms(wrapper: Any) -> None:
    held = [object(), wrapper(seg_guard(5))]
    assert [rule.num_classes for rule in walk_rules(held)] == [5]
    assert [rule.num_classes for rule in collect_rules(Holder(pipeline=mmcv.Compose(held[1:])))] == [5]


def test_transforms_that_hold_each_other_and_much_data() -> None:
    one, other = Callable(cache=[[0] * 5] * 10_000), Callable()
    one.other, other.one, other.guard = other, one, seg_guard(5)
    assert [rule.num_classes for rule in walk_rules([one, other])] == [5]


class Callable:
    """A transform of a user's own, which inherits from nothing."""

    def __init__(self, **names: Any) -> None:
        self.__dict__.update(names)

    def __call__(self, results: Any) -> Any:
        return results


@pytest.mark.parametrize(
    ('source', 'roots', 'expected'),
    [
        ('/d/a/b.png', ['/d'], 'a/b.png'),
        ('/d/a/b.png', ['/d/'], 'a/b.png'),
        ('/data/b.png', ['/d'], '/data/b.png'),
        ('/e/b.png', ['/d', '/e'], 'b.png'),
        ('d/b.png', [], 'd/b.png'),
        ('D:\\x\\b.png', ['D:\\'], 'D:\\x\\b.png'),
    ],
)
def test_relative_to(source: str, roots: List[str], expected: str) -> None:
    assert make_relative(source, roots) == expected


@pytest.mark.parametrize('field', ['data', 'sem_seg'])
def test_culprits_are_the_samples_that_a_rule_sanitizes(field: str) -> None:
    samples = []
    for name, value in (('a.png', 1), ('b.png', 9), ('c.png', 255)):
        sample = element(seg_map_path=name)
        sample.gt_sem_seg = PixelData(**{field: torch.from_numpy(np.full((1, 2, 2), value))})
        samples.append(sample)
    samples.append(element(seg_map_path='no labels'))
    found = find_offending(samples, {'pixels': Space('pixels', 3, 'decode_head.num_classes', 255)})
    (tally,) = found['pixels']
    assert found['instances'] == []
    assert (tally.source, tally.skipped, tally.values) == ('b.png', 4, {9: 4})


def test_culprits_among_instances() -> None:
    samples = []
    for name, labels in (('a.jpg', [0, 2]), ('b.jpg', [3, 1, 7]), ('c.jpg', [])):
        sample = element(img_path=name)
        sample.gt_instances = InstanceData(labels=torch.tensor(labels, dtype=torch.long))
        samples.append(sample)
    (tally,) = find_offending(samples, {'instances': Space('instances', 3, 'bbox_head.num_classes')})['instances']
    assert (tally.source, tally.skipped, tally.values) == ('b.jpg', 2, {3: 1, 7: 1})


def packed(number: int) -> Dict[str, Any]:
    """A sample with as many instances as its number, the last of which was skipped."""
    sample = BaseDataElement(metainfo=dict(img_path=f'{number}.jpg', img_shape=(8, 8)))
    sample.gt_instances = InstanceData(labels=torch.arange(number))
    leave_in_sample(sample, 'instances', Tally(number + 1, skipped=1, values={9: 1}, source=f'{number}.jpg'), {})
    return dict(inputs=torch.zeros(3, 8, 8), data_samples=sample)


def one_tensor(batch: Sequence[Dict[str, Any]], scale: int = 1) -> Dict[str, Any]:
    """The labels of the whole batch, with the number of their image."""
    labels = [one['data_samples'].gt_instances.labels * scale for one in batch]
    rows = [torch.stack((torch.full_like(found, at), found), dim=1) for at, found in enumerate(labels)]
    return dict(inputs=torch.stack([one['inputs'] for one in batch]), data_samples=dict(labels=torch.cat(rows)))


@pytest.mark.parametrize('workers', [0, 2])
def test_the_reports_travel_beside_the_tensors(workers: int) -> None:
    loader = DataLoader(
        [packed(n) for n in range(4)], batch_size=2, collate_fn=partial(one_tensor, scale=2), num_workers=workers
    )
    keep_reports(loader)
    keep_reports(loader)  # a second loop over the same loader
    first, second = loader
    assert first['data_samples']['labels'].tolist() == [[1, 0]]
    assert second['data_samples']['labels'].tolist() == [[0, 0], [0, 2], [1, 0], [1, 2], [1, 4]]
    span = Stats.from_samples(select_trained(first))
    assert [tally.source for tally in span.offending['instances']] == ['0.jpg', '1.jpg']
    assert (span.kinds['instances'].skipped, span.kinds['instances'].total, span.empty_images) == (2, 3, 1)
    span = Stats.from_samples(select_trained(second))
    assert [tally.source for tally in span.offending['instances']] == ['2.jpg', '3.jpg']
    assert span.empty_images == 0


@pytest.mark.parametrize('collate', [pseudo_collate, default_collate, partial(pseudo_collate)])
def test_what_keeps_the_samples_stays_as_it_is(collate: Any) -> None:
    loader = DataLoader([packed(1)], collate_fn=collate)
    keep_reports(loader)
    assert loader.collate_fn is collate


@pytest.mark.parametrize(
    'collate',
    [
        lambda batch: dict(data_samples=dict(sup=[one['data_samples'] for one in batch])),
        lambda batch: dict(data_samples=[one['data_samples'] for one in batch]),
        lambda batch: [one['inputs'] for one in batch],
    ],
)
def test_a_batch_that_holds_its_samples_or_nothing_of_them_is_as_the_function_made_it(collate: Any) -> None:
    batch: List[Dict[str, Any]] = [packed(1), packed(2)]
    made = KeepsReports(collate)(batch)
    assert LABEL_GUARD not in (made['data_samples'] if isinstance(made, dict) else made)
    assert str(made) == str(collate(batch))


def test_a_list_of_plain_callables_is_a_pipeline_for_the_guard_as_well() -> None:
    from mmguard.hooks.guard_run import _describe_dataset, _Steps

    steps = [Callable(), seg_guard(3)]
    for held in (steps, [Callable(data=[1, 2], classes=[Callable], steps=steps)]):
        lists: List[_Steps] = []
        data = Holder(pipeline=held)
        _describe_dataset(data, lists)
        assert sorted(map(len, walk_pipelines(data))) == sorted(len(one.built) for one in lists)
        assert any(one.built is steps for one in lists)
