"""RetinaNet with MLPerf's 264 classes on annotations that know 601: labels 264 and 600 in one of the images."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple

import pytest
import torch
from mmdet.registry import TRANSFORMS
from mmengine.structures import InstanceData
from small_det_data import make_openimages
from small_det_runs import build, one_step, small_config

from mmguard.cli import main

NUM_CLASSES = 264
#: A clean image, one with labels 600, 4, 7, 264, and another clean one.
BATCH = (0, 3, 5)
BAD = 1  # its place in the batch
ALL_INVALID = 4  # labels 600, 600

Sample = Dict[str, Any]


class Bench(NamedTuple):
    """mmdet's own model with the assigner of the guarded config, the guarded model, and mmdet's own samples."""

    stock: torch.nn.Module
    guarded: torch.nn.Module
    samples: List[Sample]

    def batch(self, numbers: Any = BATCH) -> List[Sample]:
        return [copy.deepcopy(self.samples[number]) for number in numbers]


@pytest.fixture(scope='module')
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    path = tmp_path_factory.mktemp('mlperf')
    root = make_openimages(str(path / 'data'))
    stock, data = build(small_config('retinanet', root, str(path), stock=True))
    guarded, _ = build(small_config('retinanet', root, str(path)))
    guarded.load_state_dict(stock.state_dict())
    stock.bbox_head.assigner.ignore_iof_thr = 0.5  # what a user would have to write, too
    return Bench(stock, guarded, [data[number] for number in range(len(data))])


def guard(batch: List[Sample], on_invalid: str) -> List[Sample]:
    transform = TRANSFORMS.build(
        dict(type='GuardInstanceLabels', num_classes=NUM_CLASSES, on_invalid=on_invalid, _scope_='mmdet')
    )
    return [transform(sample) for sample in batch]


def ignored_by_hand(sample: Sample) -> None:
    """What a user would have to write: invalid instances become ignore regions."""
    data = sample['data_samples']
    valid = data.gt_instances.labels < NUM_CLASSES
    data.ignored_instances = InstanceData.cat([data.ignored_instances, data.gt_instances[~valid]])
    data.gt_instances = data.gt_instances[valid]


def dropped_by_hand(sample: Sample) -> None:
    data = sample['data_samples']
    data.gt_instances = data.gt_instances[data.gt_instances.labels < NUM_CLASSES]


BY_HAND: Dict[str, Callable[[Sample], None]] = {'ignore': ignored_by_hand, 'drop': dropped_by_hand}


@pytest.mark.slow
@pytest.mark.parametrize('on_invalid', BY_HAND)
def test_loss_and_gradients_equal_those_of_the_batch_that_was_sanitized_by_hand(bench: Bench, on_invalid: str) -> None:
    by_hand, guarded = bench.batch(), guard(bench.batch(), on_invalid)
    BY_HAND[on_invalid](by_hand[BAD])
    labels = [sample['data_samples'].gt_instances.labels for sample in bench.batch()]
    assert [sorted(set(one.tolist()) & {264, 600}) for one in labels] == [[], [264, 600], []]
    reference = one_step(bench.stock, by_hand)
    assert all(torch.isfinite(value).all() for part in reference for value in part.values())
    assert one_step(bench.guarded, guarded).distance(reference) <= 1e-5


@pytest.mark.slow
def test_ignored_is_not_dropped_and_the_loss_alone_is_neither(bench: Bench) -> None:
    """What the test above can tell apart."""
    ignored, dropped = (one_step(bench.guarded, guard(bench.batch(), on_invalid)) for on_invalid in BY_HAND)
    assert ignored.distance(dropped) > 1e-4  # 10 times the tolerance
    # Without the transform the guarded loss leaves label 600 out, but the boxes are still regressed to the object,
    # and label 264 is the head's background.
    loss_alone = one_step(bench.guarded, bench.batch())
    assert loss_alone.distance(ignored) > 1e-4
    assert loss_alone.distance(dropped) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize('on_invalid', BY_HAND)
def test_an_image_of_invalid_instances_alone_stays_usable(bench: Bench, on_invalid: str) -> None:
    numbers = (0, ALL_INVALID)
    by_hand, guarded = bench.batch(numbers), guard(bench.batch(numbers), on_invalid)
    BY_HAND[on_invalid](by_hand[1])
    assert len(guarded[0]['data_samples'].gt_instances) == 2
    assert len(guarded[1]['data_samples'].gt_instances) == 0
    assert len(guarded[1]['data_samples'].ignored_instances) == (2 if on_invalid == 'ignore' else 0)
    step = one_step(bench.guarded, guarded)
    assert all(torch.isfinite(value).all() for part in step for value in part.values())
    assert step.distance(one_step(bench.stock, by_hand)) <= 1e-5
    # And as the only image of a batch: nothing to find, something to learn, no NaN.
    alone = one_step(bench.guarded, guarded[1:])
    assert all(torch.isfinite(value).all() for part in alone for value in part.values())
    assert any(value.abs().max() > 0 for value in alone.gradients.values())


def test_the_labels_above_264_are_traced_and_the_scan_says_so(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """`scan` does not read csv: what the data set makes of it, `trace` does."""
    config = small_config('retinanet', make_openimages(str(tmp_path / 'data')), str(tmp_path), stock=True)
    config.dump(str(tmp_path / 'config.py'))
    assert main(['scan', str(tmp_path / 'config.py'), '--split', 'train']) == 2
    assert 'trace CONFIG --samples' in capsys.readouterr().out
    assert main(['trace', str(tmp_path / 'config.py'), '--samples', '8', '--json', '-']) == 1
    story = json.loads(capsys.readouterr().out)
    assert 264 in story['invalid']['instances']
