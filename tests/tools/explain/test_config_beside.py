"""A config beside an error: `check` is asked, and its labels are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from this_stack import IS_ONEDL

from mmguard.cli import main

CONFIG = """
default_scope = 'mmseg'
model = dict(
    type='EncoderDecoder',
    backbone=dict(type='ResNetV1c', depth=18),
    decode_head=dict(
        type='FCNHead', in_channels=512, channels=64, num_classes=3,
        loss_decode=dict(type='CrossEntropyLoss', class_weight=[1.0, 2.0, 3.0])))
"""
TRACEBACK = """Traceback (most recent call last):
  File "/home/me/tools/train.py", line 12, in main
    runner.train()
RuntimeError: CUDA error: device-side assert triggered
"""


@pytest.mark.skipif(IS_ONEDL, reason="onedl's mmseg looks up no class weight of an ignored label")
def test_what_the_config_confirms_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    log, config = tmp_path / 'train.log', tmp_path / 'config.py'
    log.write_text(TRACEBACK)
    config.write_text(CONFIG)
    assert main(['explain', str(log), '--json', '-']) == 1
    assert 'MG214' not in json.loads(capsys.readouterr().out)['causes'][0]['codes']
    assert main(['explain', str(log), '--config', str(config), '--json', '-']) == 1
    first = json.loads(capsys.readouterr().out)['causes'][0]
    assert first['standing'] == 'confirmed'
    assert 'MG214' in first['findings']


def test_a_config_that_cannot_be_read_leaves_the_explanation(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    log, config = tmp_path / 'train.log', tmp_path / 'config.py'
    log.write_text(TRACEBACK)
    config.write_text('model = dict(\n')
    assert main(['explain', str(log), '--config', str(config)]) == 1
    out = capsys.readouterr().out
    assert 'cannot be read' in out
    assert 'MG401' in out
