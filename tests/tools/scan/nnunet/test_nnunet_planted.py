"""A data set with faults of many kinds: the scan names all of them; nnU-Net's own check stops at the first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import pytest

pytest.importorskip('nibabel')

from nnunet_sets import CLEAN, PLANTED, Planted, plant

from mmguard.cli import main


@pytest.fixture(scope='module')
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plant(tmp_path_factory.mktemp('nnunet') / 'Dataset001_Planted')


@pytest.fixture(scope='module')
def reported(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Any]:
    out = tmp_path_factory.mktemp('out')
    words = [
        'scan',
        str(planted),
        '--processes',
        '1',
        '--json',
        str(out / 'reported.json'),
        '--journal',
        str(out / 'j'),
    ]
    assert main(words) == 1
    [dataset] = json.loads((out / 'reported.json').read_text())['datasets']
    return dataset


@pytest.mark.parametrize('fault', PLANTED, ids=lambda fault: fault.case)
def test_each_fault_is_named_with_its_file_and_voxels(fault: Planted, reported: Dict[str, Any]) -> None:
    found = [
        (kind, entry)
        for kind, entries in reported['facts']['volumes']['faults'].items()
        for entry in entries
        if entry['case'] == fault.case
    ]
    assert [(kind, entry['file']) for kind, entry in found] == [(fault.kind, fault.file)], 'this one, and no other'
    [(_, entry)] = found
    assert fault.reported in entry['detail']
    if fault.voxels >= 0:
        assert entry.get('voxels', 0) == fault.voxels
    else:
        assert entry['voxels'] > 0
    assert fault.code in {finding['code'] for finding in reported['findings']}


def test_no_clean_case_is_blamed(reported: Dict[str, Any]) -> None:
    faults = reported['facts']['volumes']['faults']
    assert not {entry['case'] for entries in faults.values() for entry in entries} & set(CLEAN)
    assert sum(map(len, faults.values())) == len(PLANTED)


def test_the_data_set_is_judged_as_a_whole(reported: Dict[str, Any]) -> None:
    codes = {finding['code'] for finding in reported['findings']}
    assert 'MG183' not in codes, 'numTraining counts the cases that nnU-Net sees'
    assert not codes & {'MG180', 'MG181', 'MG182', 'MG194', 'MG195'}
