"""A training of mmrotate through its Runner: labels beyond the head, stock and guarded."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from mmengine.config import Config
from mmengine.runner import Runner
from small_rotated import CLASSES, HEAD_CLASSES, OBJECTS, make_dota, rotated_config, rtmdet_config

from mmguard import guard_config

CONFIGS = {'rotated_retinanet': rotated_config, 'rotated_rtmdet': rtmdet_config}


def counted(root: Path) -> Dict[str, int]:
    """Label -> objects that the head does not know, read from the text files."""
    names = [line.split()[8] for file in (root / 'labels').glob('*.txt') for line in file.read_text().splitlines()]
    labels = (CLASSES.index(name) for name in names)
    return dict(Counter(str(label) for label in labels if label >= HEAD_CLASSES))


def lines(work_dir: Path) -> Any:
    (file,) = work_dir.rglob('label_guard.jsonl')
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize('made', CONFIGS.values(), ids=CONFIGS)
def test_stock_dies_of_a_label_beyond_the_background(made: Callable[..., Config], tmp_path: Path) -> None:
    config = made(make_dota(str(tmp_path / 'dota')), str(tmp_path / 'stock'))
    with pytest.raises(RuntimeError):
        Runner.from_cfg(config).train()


def test_stock_trains_the_label_of_the_background_without_a_word(tmp_path: Path) -> None:
    root = make_dota(str(tmp_path / 'dota'), without='crane')
    Runner.from_cfg(rotated_config(root, str(tmp_path / 'stock'))).train()
    assert counted(Path(root)) == {'3': 2}, 'two objects are trained as background'


def test_stock_rtmdet_dies_of_the_label_of_the_background(tmp_path: Path) -> None:
    config = rtmdet_config(make_dota(str(tmp_path / 'dota'), without='crane'), str(tmp_path / 'stock'))
    with pytest.raises(RuntimeError):
        Runner.from_cfg(config).train()


@pytest.mark.parametrize('made', CONFIGS.values(), ids=CONFIGS)
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
