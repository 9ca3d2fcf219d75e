"""Class weights in a file, as mmseg takes them, are read as it reads them, and no code in a file is run."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_configs import PSPNET, changed

from mmguard.config.class_weights import class_weights
from mmguard.config.parts import Part
from mmguard.findings.config_facts import facts_of_config
from mmguard.findings.engine import diagnose
from mmguard.findings.rules.config.class_weight_length import ClassWeightLength
from mmguard.findings.rules.config.weighted_ignored import WeightedIgnored

AT = 'model.decode_head.loss_decode.class_weight'


def write(path: Path, weights: Any) -> str:
    if path.suffix == '.npy':
        np.save(path, np.asarray(weights))
    elif path.suffix == '.pkl':
        path.write_bytes(pickle.dumps(weights))
    else:
        path.write_text(json.dumps(weights))  # JSON is YAML
    return str(path)


def loss(weights: Any, scope: str = 'mmseg') -> Part:
    return Part('model.loss', dict(type='CrossEntropyLoss', class_weight=weights), scope)


@pytest.mark.parametrize('ending', ['.npy', '.json', '.yaml', '.pkl'])
def test_it_reads_what_mmseg_reads(tmp_path: Path, ending: str) -> None:
    pytest.importorskip('mmseg')
    from mmseg.models.losses.utils import get_class_weight

    file = write(tmp_path / f'weights{ending}', [0.5, 1.0, 2.0])
    assert class_weights(loss(file)).values == list(get_class_weight(file)) == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(('count', 'findings'), [(19, 0), (18, 1)])
def test_their_number_is_compared_with_the_classes(tmp_path: Path, count: int, findings: int) -> None:
    pytest.importorskip('mmseg')
    file = write(tmp_path / 'weights.npy', [1.0] * count)
    config = changed(PSPNET, {AT: file})
    found = diagnose(config=config, rules=[ClassWeightLength])
    assert [finding.cause for finding in found] == [f'{count} weights in the file, but PSPHead needs 19.'] * findings
    assert facts_of_config(config).class_weights == {AT: [1.0] * count}


@pytest.mark.parametrize(('count', 'findings'), [(19, 1), (256, 0)])
def test_whether_an_ignored_pixel_has_a_weight(tmp_path: Path, count: int, findings: int) -> None:
    pytest.importorskip('mmseg')
    from this_stack import IS_ONEDL

    if IS_ONEDL:
        pytest.skip("onedl's mmseg looks up no ignored label")
    file = write(tmp_path / 'weights.json', [1.0] * count)
    assert len(diagnose(config=changed(PSPNET, {AT: file}), rules=[WeightedIgnored])) == findings


@pytest.mark.parametrize(
    ('name', 'content', 'why'),
    [
        ('none.npy', None, 'there is no such file'),
        ('empty.npy', b'', 'Error'),
        ('text.json', b'{"road": 1}', 'it holds no list'),
        ('names.json', b'["a"]', 'ValueError'),
        ('nan.json', b'[NaN]', 'NaN'),
        ('weights.txt', b'1 2', 'mmseg loads class weights from'),
        ('torn.pkl', b'\x80\x04]', 'Error'),
    ],
)
def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path, name: str, content: Any, why: str) -> None:
    pytest.importorskip('mmseg')
    if content is not None:
        (tmp_path / name).write_bytes(content)
    (finding,) = diagnose(config=changed(PSPNET, {AT: str(tmp_path / name)}), rules=[ClassWeightLength])
    assert finding.severity == 'warning'
    assert why in finding.cause
    assert name in finding.cause
    assert facts_of_config(changed(PSPNET, {AT: str(tmp_path / name)})).class_weights == {}


def test_no_code_in_a_file_is_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / 'made'),)

    for name in ('evil.pkl', 'evil.npy'):
        file = write(tmp_path / name, Evil()) if name.endswith('pkl') else str(tmp_path / name)
        if name.endswith('npy'):
            np.save(file, np.array([Evil()], dtype=object), allow_pickle=True)
        assert class_weights(loss(file)).problem
    assert not (tmp_path / 'made').exists()


def test_a_list_is_taken_as_it_is() -> None:
    assert class_weights(loss([1, 2.5]))[:2] == ([1.0, 2.5], 2)
    assert class_weights(loss(['a', 2.5]))[1] == 2
    assert class_weights(loss(None)) == ([], None, '')
    assert class_weights(loss('weights.npy', 'mmdet')) == ([], None, ''), 'mmdet knows no files'
