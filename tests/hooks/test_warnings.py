"""Warnings before the first iteration, and at the first offence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, List

import pytest
from mmdet.registry import MODELS
from mmdet.utils import register_all_modules
from mmengine.config import Config
from small_det_runs import load, load_stock, shrink_model
from small_runs import GUARD, LOAD, PACK, add_loop, runner_of, tiny_config
from torch import nn
from window_stats import make_stats

from mmguard import GuardInstanceLabels, GuardSegLabels, Tally
from mmguard.hooks.discovery import walk_assigners
from mmguard.hooks.runs import build_warnings, describe_background, describe_mixing, start_warnings
from mmguard.log.statistics import group_tallies


def start_warnings_of(config: Config) -> List[str]:
    return start_warnings(runner_of(config))


def camvid_config(root: str, work_dir: str, head: int = 11, **guard: Any) -> Config:
    """A data set of 11 classes."""
    config = tiny_config(root, work_dir, pipeline=[*LOAD, PACK, dict(type='GuardSegLabels', **guard)])
    suffixes = dict(img_suffix='.png', seg_map_suffix='.png')
    dataset = dict(
        type='BaseSegDataset', data_root=root, **suffixes, metainfo=dict(classes=[f'c{i}' for i in range(11)])
    )
    prefix = dict(img_path='train', seg_map_path='trainannot')
    config.train_dataloader.dataset = dict(
        dataset, data_prefix=prefix, pipeline=config.train_dataloader.dataset.pipeline
    )
    config.model.decode_head.num_classes = head
    return config


def test_nothing_is_said_of_what_agrees(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    add_loop(config, 'val')
    assert start_warnings_of(config) == []


@pytest.mark.parametrize(
    ('code', 'arguments'),
    [
        ('MG225', dict(num_classes=19)),  # of a head of 11
        ('MG201', dict(num_classes=19, head=19)),  # of a data set of 11
        ('MG208', dict(num_classes=11, ignore_index=11)),  # the head ignores 255
    ],
)
def test_a_guard_that_does_not_fit_is_named(code: str, arguments: Any, camvid: str, work_dir: str) -> None:
    (warning,) = start_warnings_of(camvid_config(camvid, work_dir, **arguments))
    assert warning.split()[0] == code


@pytest.mark.parametrize('guarded_loss', [True, False])
def test_validation_without_a_guard_is_named_once(guarded_loss: bool, cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK] if guarded_loss else None)
    if not guarded_loss:
        config.model.decode_head.loss_decode.type = 'CrossEntropyLoss'
    for mode in ('val', 'test'):
        add_loop(config, mode, [*LOAD, PACK])
    (warning,) = start_warnings_of(config)
    assert warning.split()[0] == 'MG230'


def test_nothing_is_said_of_a_run_without_any_guard(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK])
    config.model.decode_head.loss_decode.type = 'CrossEntropyLoss'
    add_loop(config, 'val', [*LOAD, PACK])
    assert start_warnings_of(config) == []


def one_channel(config: Config) -> None:
    config.model.decode_head.update(num_classes=2, out_channels=1)
    binary(config)


def one_class(config: Config) -> None:
    config.model.decode_head.update(num_classes=1)
    binary(config)


def binary(config: Config) -> None:
    config.model.decode_head.loss_decode.use_sigmoid = True
    config.train_dataloader.dataset.metainfo = dict(classes=['road', 'car'])
    config.train_dataloader.dataset.pipeline[3]['num_classes'] = 2


def reduced(config: Config) -> None:
    config.train_dataloader.dataset.update(type='BaseSegDataset', reduce_zero_label=True)
    config.train_dataloader.dataset.metainfo = dict(classes=[f'c{i}' for i in range(19)])


def own_ignore_index(config: Config) -> None:
    config.model.decode_head.ignore_index = 254
    config.train_dataloader.dataset.pipeline[3]['ignore_index'] = 254
    config.model.data_preprocessor.seg_pad_val = 254


def auxiliary_head(config: Config) -> None:
    config.model.auxiliary_head = dict(config.model.decode_head, in_index=1)


@pytest.mark.parametrize('change', [one_channel, one_class, reduced, own_ignore_index, auxiliary_head])
def test_nothing_is_said_of_heads_that_count_in_their_own_way(change: Any, cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK, dict(GUARD)])
    change(config)
    assert start_warnings_of(config) == []


def test_a_runner_without_a_config() -> None:
    assert start_warnings(_ModuleHead()) == []


class _ModuleHead:
    cfg = Config()


def test_a_config_that_cannot_be_read_ends_no_training(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    runner = runner_of(config)
    runner.cfg.train_dataloader.dataset.pipeline = [dict(type='GuardSegLabels', num_classes=_Odd())]
    (warning,) = start_warnings(runner)
    assert 'RuntimeError: no number' in warning


class _Odd(int):
    def __repr__(self) -> str:
        raise RuntimeError('no number')


def said(kind: str, tally: Tally, guard: Any, mode: str = 'train') -> str:
    dataset = SimpleNamespace(pipeline=SimpleNamespace(transforms=[guard]))
    span = make_stats(1, 1, 4, 1, offending=group_tallies(**{kind: [tally]}))
    text, *_ = build_warnings(mode, kind, span, nn.Linear(1, 1), dataset)
    return text


def to_do(text: str) -> str:
    (line,) = (line for line in text.splitlines() if line.startswith('  do: '))
    return line


def test_every_branch_of_a_question_is_there() -> None:
    text = said('pixels', Tally(100, 9, 0, {11: 9}, 'a.png'), GuardSegLabels(num_classes=11))
    for branch in ('label_map={11: 255}', 'reduce_zero_label=True', 'num_classes=12'):
        assert branch in to_do(text)


@pytest.mark.parametrize('kind', ['labelIds', 'labelTrainIds'])
def test_the_rules_are_given_the_names_of_the_files(kind: str) -> None:
    tally = Tally(100, 9, 0, {24: 8, 26: 1}, f'aachen/aachen_000002_000019_gtFine_{kind}.png')
    text = said('pixels', tally, GuardSegLabels(num_classes=19))
    assert 'MG101' in text
    assert ('seg_map_suffix' in to_do(text)) == (kind == 'labelIds')
    assert ('label_map={24: 11, 26: 13}' in to_do(text)) == (kind == 'labelTrainIds')


@pytest.mark.parametrize('reason', ['box_no_area', 'box_outside', 'box_not_finite'])
def test_nobody_is_advised_to_check_boxes_that_are_checked(reason: str) -> None:
    found = Tally(9, 3, 0, {}, 'a.jpg', {reason: 3})
    text = said('instances', found, GuardInstanceLabels(num_classes=80, check_boxes=True))
    assert 'MG109' in text
    assert 'check_boxes' not in text
    assert len(to_do(text)) > 40


@pytest.mark.parametrize('case', ['train skipped', 'train remapped', 'val skipped'])
def test_what_becomes_of_them(case: str, snapshot: Any) -> None:
    mode, what = case.split()
    tally = Tally(9, **{what: 1}, values={7: 1}, source='a')
    snapshot(
        'log',
        f'test_warnings::test_what_becomes_of_them {case}',
        said('pixels', tally, GuardSegLabels(num_classes=5), mode),
    )


def model_of(config: Any) -> nn.Module:
    register_all_modules()
    return MODELS.build(shrink_model(config).model)


@pytest.mark.parametrize('family', ['retinanet', 'faster_rcnn'])
def test_stock_assigners_train_ignored_regions_as_background(family: str) -> None:
    warning = describe_background(model_of(load_stock(family)))
    assert warning is not None
    assert all(named in warning for named in ('MaxIoUAssigner', 'ignore_iof_thr=-1', 'ignore_iof_thr=0.5'))


@pytest.mark.parametrize('family', ['retinanet', 'faster_rcnn', 'mask_rcnn', 'panoptic_fpn'])
def test_the_shipped_configs_heed_them(family: str) -> None:
    model = model_of(load(family))
    assert list(walk_assigners(model))
    assert describe_background(model) is None


def test_a_single_assigner_that_does_not_is_found() -> None:
    config = load('faster_rcnn')
    config.model.train_cfg.rcnn.assigner.ignore_iof_thr = -1
    assert 'MaxIoUAssigner' in (describe_background(model_of(config)) or '')


def test_detr_like_heads_know_no_ignored_instances() -> None:
    warning = describe_background(model_of(load('dino')))
    assert warning is not None
    assert all(named in warning for named in ('HungarianAssigner', "on_invalid='drop'"))


def test_a_model_without_assigners_is_no_offence() -> None:
    assert describe_background(nn.Linear(2, 2)) is None


class Mosaic:
    def __call__(self, results: Any) -> Any:
        return results


class RandomApply:
    def __init__(self, transforms: List[Any]) -> None:
        self.transforms = transforms

    def __call__(self, results: Any) -> Any:
        return results


def data_set(*steps: Any) -> Any:
    return SimpleNamespace(pipeline=SimpleNamespace(transforms=list(steps)))


def test_a_mixing_transform_is_named_wherever_it_stands() -> None:
    wrapped = SimpleNamespace(pipeline=[RandomApply([Mosaic()])], dataset=data_set(RandomApply([])))
    for dataset in (data_set(Mosaic()), wrapped):
        assert 'Mosaic' in (describe_mixing(dataset) or '')


def test_nothing_is_said_where_each_sample_is_one_image() -> None:
    assert describe_mixing(data_set(RandomApply([]))) is None
    assert describe_mixing(SimpleNamespace()) is None
