"""A config of each folder of mmrotate; `every_config.py` has all."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy as np
import pytest
from mmengine.config import Config
from mmengine.runner import Runner
from mmrotate.structures.bbox import QuadriBoxes, RotatedBoxes
from oriented_configs import holds, one_per_folder
from small_rotated import CLASSES, HEAD_CLASSES, OBJECTS, make_dota, rotated_config, rtmdet_config

from mmguard import guard_config
from mmguard.config.read import from_mmengine
from mmguard.labels.tally import get_tallies
from mmguard.tools.apply.guarded import build_tree, guard_tree
from mmguard.transforms import GuardInstanceLabels
from mmguard.transforms.instance_fields import find_box_faults


@pytest.mark.parametrize('name', one_per_folder())
def test_a_config_is_guarded_and_raises_no_false_alarm(name: str) -> None:
    holds(name)


def test_a_framework_that_is_not_known_is_named() -> None:
    pipeline = [dict(type='LoadImage'), dict(type='PackPoseInputs')]
    config = Config(
        dict(
            default_scope='mmpose',
            model=dict(type='TopdownPoseEstimator', head=dict(type='HeatmapHead', out_channels=17)),
            train_dataloader=dict(dataset=dict(type='CocoDataset', pipeline=pipeline)),
        )
    )
    left = guard_tree(build_tree(config)).left
    assert all(any(named in line for line in left) for named in ("default_scope = 'mmpose'", 'PackPoseInputs')), left
    assert any("default_scope = 'mmpose'" in note for note in from_mmengine(config).notes)


#: In an image of 100 x 100: inside; its centre outside but a part of it inside; wholly outside; no area; not finite.
ROTATED = [
    [50, 50, 30, 10, 0.7],
    [-5, 50, 40, 10, 0.0],
    [-50, 50, 40, 10, 0.0],
    [50, 50, 0, 10, 0.7],
    [50, 50, 30, 10, float('nan')],
]
QUADRI = [
    [10, 10, 20, 12, 18, 22, 8, 20],
    [-30, 0, 10, 0, 10, 10, -30, 10],
    [-30, 0, -10, 0, -10, 10, -30, 10],
    [10, 10, 20, 20, 5, 5, 15, 15],
    [10, 10, 20, 12, 18, 22, 8, float('inf')],
]


@pytest.mark.parametrize(('kind', 'boxes'), [(RotatedBoxes, ROTATED), (QuadriBoxes, QUADRI)])
def test_faults_are_those_of_the_box_as_it_lies(kind: Any, boxes: List[List[float]]) -> None:
    faults = find_box_faults(kind(boxes), (100, 100))
    assert faults is not None
    assert faults.tolist() == [0, 0, 3, 2, 1]
    assert find_box_faults(kind(boxes[:2]), (100, 100)) is None


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize(('kind', 'boxes'), [(RotatedBoxes, ROTATED), (QuadriBoxes, QUADRI)])
def test_the_guard_keeps_the_type_of_the_boxes(kind: Any, boxes: List[List[float]]) -> None:
    results = {
        'gt_bboxes': kind(boxes),
        'gt_bboxes_labels': np.array([1, 15, 2, 2, 2]),
        'gt_ignore_flags': np.zeros(5, bool),
        'img_shape': (100, 100),
        'img_path': 'P0001.png',
    }
    results = GuardInstanceLabels(15)(results)
    assert type(results['gt_bboxes']) is kind
    assert results['gt_bboxes_labels'].tolist() == [1, 15]
    assert results['gt_ignore_flags'].tolist() == [False, True]
    tally = get_tallies(results)['instances']
    assert tally.reasons == {'label': 1, 'box_outside': 1, 'box_no_area': 1, 'box_not_finite': 1}


ROTATED_CONFIGS = {'rotated_retinanet': rotated_config, 'rotated_rtmdet': rtmdet_config}


def counted(root: Path) -> Dict[str, int]:
    """Label -> objects that the head does not know, read from the text files."""
    names = [line.split()[8] for file in (root / 'labels').glob('*.txt') for line in file.read_text().splitlines()]
    labels = (CLASSES.index(name) for name in names)
    return dict(Counter(str(label) for label in labels if label >= HEAD_CLASSES))


def lines(work_dir: Path) -> Any:
    (file,) = work_dir.rglob('label_guard.jsonl')
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize('made', ROTATED_CONFIGS.values(), ids=ROTATED_CONFIGS)
def test_guarded_trains_and_counts_what_the_files_hold(made: Callable[..., Config], tmp_path: Path) -> None:
    root = Path(make_dota(str(tmp_path / 'dota')))
    config = guard_config(made(str(root), str(tmp_path / 'guarded')))
    Runner.from_cfg(config).train()
    found: Counter = Counter()
    sources = set()
    for line in lines(tmp_path / 'guarded'):
        for sample in line['samples']:
            found.update(sample['values'])
            sources.add(Path(sample['source']).stem)
    assert dict(found) == counted(root) == {'3': 2, '4': 2}
    assert sources == {stem for stem, names in OBJECTS.items() if {'bridge', 'crane'} & set(names)}
    assert sum(line['skipped_instances'] for line in lines(tmp_path / 'guarded')) == 4


def test_rtmdet_trains_on_valid_labels_as_without_guards(tmp_path: Path) -> None:
    root = make_dota(str(tmp_path / 'dota'), without='bridge')
    (Path(root) / 'labels' / 'P0002.txt').write_text('')  # cranes
    losses: List[List[float]] = []
    for guarded in (False, True):
        config = rtmdet_config(root, str(tmp_path / f'guarded{guarded}'))
        config.randomness = dict(seed=0)
        runner = Runner.from_cfg(guard_config(config) if guarded else config)
        runner.train()
        losses.append([float(value) for value in runner.message_hub.get_scalar('train/loss').data[0]])
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    assert all(map(math.isfinite, losses[0]))
