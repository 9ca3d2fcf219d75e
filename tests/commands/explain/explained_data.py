"""Labels, COCO files and findings with which errors are explained."""

from __future__ import annotations

import json
from pathlib import Path

import coco_cases
import numpy as np
import pytest
from coco_cases import ann, write

from mmguard.cli import main
from mmguard.findings.finding import Finding

CALL = ('/home/me/train.py', 'loss = F.cross_entropy(x, y)')
CONFIG = """
default_scope = 'mmseg'
model = dict(
    type='EncoderDecoder',
    backbone=dict(type='ResNetV1c', depth=18),
    decode_head=dict(
        type='FCNHead', in_channels=512, channels=64, num_classes=3,
        loss_decode=dict(type='CrossEntropyLoss', class_weight=[1.0, 2.0, 3.0])))
"""


def labels(folder: Path, *values: int) -> str:
    from label_files import write_copies

    return str(write_copies(folder, np.resize(np.array(values, np.uint8), (16, 16)), 30))


def finding(code: str, severity: str) -> Finding:
    return Finding(code, f'title of {code}', '3 files', 'look', 'proven', severity)


def explained(capsys: pytest.CaptureFixture, *words: str) -> dict:
    assert main(['explain', *words, '--json', '-']) == 1
    record: dict = json.loads(capsys.readouterr().out)
    return record


def coco(path: Path, *ids: int) -> str:
    boxes = [ann(n, n, number, (4, 4, 20, 20)) for n, number in enumerate(ids)]
    names = {number: f'thing {number}' for number in ids}
    return write(path.parent, coco_cases.coco(boxes, len(ids), names, size=(64, 64)), path.name)
