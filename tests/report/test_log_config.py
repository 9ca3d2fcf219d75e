"""What a config beside a log says, read without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmguard.report.log_config import has_hook, logged_space, read_config

TEXT = """
import os
os.makedirs({marker!r})
custom_hooks = [dict(type='mmguard.hooks.LabelGuardHook')]
model = dict(
    decode_head=[dict(num_classes=7, ignore_index=250), dict(num_classes=7)],
    roi_head=dict(bbox_head=[dict(num_classes=12)]))
train_dataloader = dict(dataset=dict(type='RepeatDataset', dataset=dict(
    data_root='data/x', metainfo=dict(classes=('a', 'b')),
    pipeline=[dict(type='mmseg.PackSegInputs'),
              dict(type='GuardSegLabels', num_classes=5, ignore_index=9, label_map={{11: 9, -1: 0}})])))
val_dataloader = dict(dataset=dict(pipeline=[dict(type=len)]))
"""


@pytest.fixture
def config(tmp_path: Path) -> dict:
    path = tmp_path / 'config.py'
    path.write_text(TEXT.format(marker=str(tmp_path / 'was_run')))
    read = read_config(path)
    assert not (tmp_path / 'was_run').exists()
    return read


def test_the_guard_says_what_is_valid(config: dict) -> None:
    space = logged_space(config, 'train', 'pixels')
    assert space is not None
    assert (space.num_classes, space.ignore_index, space.label_map) == (5, 9, {11: 9, -1: 0})
    assert (space.data_roots, space.class_names) == (['data/x'], ['a', 'b'])


def test_without_a_guard_the_heads_do(config: dict) -> None:
    space = logged_space(config, 'val', 'pixels')
    assert space is not None
    assert (space.num_classes, space.ignore_index) == (7, 250)
    instances = logged_space(config, 'val', 'instances')
    assert instances is not None
    assert (instances.num_classes, instances.ignore_index) == (12, None)


def test_neither_says_so(config: dict) -> None:
    del config['model']
    assert logged_space(config, 'val', 'pixels') is None
    assert logged_space({}, 'train', 'pixels') is None


def test_the_hook_is_seen(config: dict) -> None:
    assert has_hook(config)
    assert not has_hook({'custom_hooks': [{'type': 'EMAHook'}]})


def test_no_python_is_told(tmp_path: Path) -> None:
    path = tmp_path / 'config.py'
    path.write_text('a = (')
    with pytest.raises(ValueError, match='no config'):
        read_config(path)
