"""A training of mmrotate through its Runner: labels beyond the head, stock and guarded."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Dict

import pytest
from mmengine.runner import Runner
from small_rotated import CLASSES, HEAD_CLASSES, OBJECTS, make_dota, rotated_config

from mmguard import guard_config


def counted(root: Path) -> Dict[str, int]:
    """Label -> objects that the head does not know, read from the text files."""
    names = [line.split()[8] for file in (root / 'labels').glob('*.txt') for line in file.read_text().splitlines()]
    labels = (CLASSES.index(name) for name in names)
    return dict(Counter(str(label) for label in labels if label >= HEAD_CLASSES))


def lines(work_dir: Path) -> Any:
    (file,) = work_dir.rglob('label_guard.jsonl')
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_stock_dies_of_a_label_beyond_the_background(tmp_path: Path) -> None:
    config = rotated_config(make_dota(str(tmp_path / 'dota')), str(tmp_path / 'stock'))
    with pytest.raises(RuntimeError, match='Class values must be smaller than num_classes'):
        Runner.from_cfg(config).train()


def test_stock_trains_the_label_of_the_background_without_a_word(tmp_path: Path) -> None:
    root = make_dota(str(tmp_path / 'dota'), without='crane')
    Runner.from_cfg(rotated_config(root, str(tmp_path / 'stock'))).train()
    text = ''.join(file.read_text() for file in (tmp_path / 'stock').rglob('*.log'))
    assert counted(Path(root)) == {'3': 2}, 'two objects are trained as background'
    assert 'label' not in text.lower().partition('epoch(train)')[2]


def test_guarded_trains_and_counts_what_the_files_hold(tmp_path: Path) -> None:
    root = Path(make_dota(str(tmp_path / 'dota')))
    config = guard_config(rotated_config(str(root), str(tmp_path / 'guarded')))
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
