"""Situations as people meet them, each with its true cause; of data sets without a fault nothing is found."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict

import pytest
import volume_sets
from all_situations import SITUATIONS
from clean_sets import CLEAN
from real_reports import DETECTION, SEGMENTATION, VOLUMES
from situation import coco_config, findings_of, holds, numbered, retina
from this_stack import is_here

from mmguard.cli import main

REPORTS = {**SEGMENTATION, **DETECTION, **{f'{name}, volumes': one for name, one in VOLUMES.items()}}
OF_VOLUMES = {f'{name}, volumes': one for name, one in volume_sets.SITUATIONS.items()}
ALL = {**SITUATIONS, **OF_VOLUMES, **REPORTS}


@pytest.mark.parametrize('name', [name for name in ALL if is_here(ALL[name].codes)])
def test_the_first_finding_names_the_true_cause(name: str, tmp_path: Path) -> None:
    holds(ALL[name], tmp_path)


@pytest.mark.parametrize('name', list(CLEAN))
def test_a_clean_set_gets_the_verdict_alone(name: str, tmp_path: Path) -> None:
    findings = findings_of(CLEAN[name], tmp_path)
    assert [finding.code for finding in findings] == ['MG100']


@pytest.mark.parametrize(
    ('code', 'heads', 'val'),
    [
        ('MG141', 3, {2: 'nut', 1: 'bolt', 3: 'pin'}),  # only the validation is wrong
        ('MG201', 80, numbered('bolt', 'nut', 'pin')),  # of both: reported with the training
    ],
)
def test_a_split_is_called_clean_only_where_nothing_is_wrong_with_it(
    code: str, heads: int, val: Dict[int, str], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    names = ('bolt', 'nut', 'pin')
    config, _ = coco_config(numbered(*names), names, retina(heads), val=val)(tmp_path)
    assert main(['scan', str(config)]) == 1
    shown = re.findall(r'^(MG\d+) ', capsys.readouterr().out, re.MULTILINE)
    assert shown == ([code, 'MG100'] if code == 'MG141' else [code])
