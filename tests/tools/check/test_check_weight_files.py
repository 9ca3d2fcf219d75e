"""Class weights in a file, as mmseg takes them, are read as it reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_configs import PSPNET, changed
from this_stack import IS_ONEDL

from mmguard.config.losses import class_weights
from mmguard.config.parts import Part
from mmguard.findings.engine import diagnose
from mmguard.findings.rules.config.class_weights import ClassWeightLength, WeightedIgnored

pytest.importorskip('mmseg')

AT = 'model.decode_head.loss_decode.class_weight'


def write(path: Path, weights: Any) -> str:
    if path.suffix == '.npy':
        np.save(path, np.asarray(weights))
    else:
        path.write_text(json.dumps(weights))  # JSON is YAML
    return str(path)


def loss(weights: Any, scope: str = 'mmseg') -> Part:
    return Part('model.loss', dict(type='CrossEntropyLoss', class_weight=weights), scope)


@pytest.mark.parametrize('ending', ['.npy', '.json', '.yaml'])
def test_it_reads_what_mmseg_reads(tmp_path: Path, ending: str) -> None:
    from mmseg.models.losses.utils import get_class_weight

    file = write(tmp_path / f'weights{ending}', [0.5, 1.0, 2.0])
    assert class_weights(loss(file)).values == list(get_class_weight(file)) == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(('count', 'findings'), [(19, 0), (18, 1)])
def test_their_number_is_compared_with_the_classes(tmp_path: Path, count: int, findings: int) -> None:
    file = write(tmp_path / 'weights.npy', [1.0] * count)
    config = changed(PSPNET, {AT: file})
    found = diagnose(config=config, rules=[ClassWeightLength])
    assert [finding.places for finding in found] == [(AT,)] * findings


@pytest.mark.skipif(IS_ONEDL, reason="onedl's mmseg looks up no ignored label")
@pytest.mark.parametrize(('count', 'findings'), [(19, 1), (256, 0)])
def test_whether_an_ignored_pixel_has_a_weight(tmp_path: Path, count: int, findings: int) -> None:
    file = write(tmp_path / 'weights.json', [1.0] * count)
    assert len(diagnose(config=changed(PSPNET, {AT: file}), rules=[WeightedIgnored])) == findings


@pytest.mark.parametrize(
    ('name', 'content'),
    [
        ('none.npy', None),
        ('empty.npy', b''),
        ('text.json', b'{"road": 1}'),
        ('names.json', b'["a"]'),
        ('nan.json', b'[NaN]'),
        ('weights.txt', b'1 2'),
    ],
)
def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path, name: str, content: Any) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    config = changed(PSPNET, {AT: str(tmp_path / name)})
    (finding,) = diagnose(config=config, rules=[ClassWeightLength])
    assert (finding.severity, finding.places, finding.value) == ('warning', (AT,), str(tmp_path / name))


def test_a_list_is_taken_as_it_is() -> None:
    assert class_weights(loss([1, 2.5]))[:2] == ([1.0, 2.5], 2)
    assert class_weights(loss(['a', 2.5]))[1] == 2
    assert class_weights(loss(None)) == ([], None, '')
    assert class_weights(loss('weights.npy', 'mmdet')) == ([], None, '')  # mmdet knows no files
