"""What a config beside a log says, read without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmguard.config.label_spaces import from_config
from mmguard.config.read import ReadConfig
from mmguard.labels.spaces import LabelSpaces
from mmguard.tools.report.log_config import data_roots, read_config

TEXT = """
import os
os.makedirs({marker!r})
custom_hooks = [dict(type='mmguard.hooks.LabelGuardHook')]
model = dict(
    decode_head=[dict(type='evil.Head', num_classes=7, ignore_index=250), dict(type='FCNHead', num_classes=7)],
    roi_head=dict(bbox_head=[dict(type='BBoxHead', num_classes=12)]))
train_dataloader = dict(dataset=dict(type='RepeatDataset', dataset=dict(
    type='evil.Data', data_root='data/x', metainfo=dict(classes=('a', 'b')),
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


def spaces(config: dict, mode: str) -> LabelSpaces:
    return from_config(ReadConfig(config), mode, imports=False)


def test_the_guard_says_what_is_valid(config: dict) -> None:
    found = spaces(config, 'train')
    assert found.pixels is not None
    assert (found.pixels.num_classes, found.pixels.ignore_index, found.pixels.label_map) == (5, 9, {11: 9, -1: 0})
    assert found.pixels.place == 'train_dataloader.dataset.dataset.pipeline[1].num_classes'
    assert (data_roots(config, 'train'), found.names) == (['data/x'], ('a', 'b'))


def test_without_a_guard_the_heads_do(config: dict) -> None:
    found = spaces(config, 'val')
    assert found.pixels is not None
    assert (found.pixels.num_classes, found.pixels.ignore_index) == (7, 250)
    assert found.instances is not None
    assert (found.instances.num_classes, found.instances.ignore_index) == (12, None)


def test_neither_says_so(config: dict) -> None:
    del config['model']
    assert spaces(config, 'val').pixels is None
    assert spaces({}, 'train').pixels is None


def test_no_class_of_it_is_imported(config: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'evil.py').write_text(f'open({str(tmp_path / "was_run")!r}, "w")\nHead = Data = object')
    monkeypatch.syspath_prepend(str(tmp_path))
    for mode in ('train', 'val', 'test'):
        spaces(config, mode)
    data_roots(config, 'train')
    assert not (tmp_path / 'was_run').exists()
    from_config(ReadConfig(config))  # the same, of a config that is trusted
    assert (tmp_path / 'was_run').exists()


def test_no_python_is_reported(tmp_path: Path) -> None:
    path = tmp_path / 'config.py'
    path.write_text('a = (')
    with pytest.raises(ValueError, match='no config'):
        read_config(path)
