"""What a config beside a log says, read without running it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mmguard.tools.report.log_config import read_config

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


def test_a_config_is_read_and_not_run(tmp_path: Path) -> None:
    path = tmp_path / 'config.py'
    path.write_text(TEXT.format(marker=str(tmp_path / 'was_run')))
    config = read_config(path)
    assert not (tmp_path / 'was_run').exists()
    assert config['custom_hooks'] == [{'type': 'mmguard.hooks.LabelGuardHook'}]
    assert config['model']['roi_head'] == {'bbox_head': [{'type': 'BBoxHead', 'num_classes': 12}]}
    dataset = config['train_dataloader']['dataset']['dataset']
    assert (dataset['metainfo'], dataset['pipeline'][1]['label_map']) == ({'classes': ['a', 'b']}, {11: 9, -1: 0})
    assert config['val_dataloader']['dataset']['pipeline'] == [{'type': None}]


def test_no_python_is_reported(tmp_path: Path) -> None:
    path = tmp_path / 'config.py'
    path.write_text('a = (')
    with pytest.raises(ValueError, match=re.escape(str(path))):
        read_config(path)
