"""Situations as people meet them, each with its true cause; of data sets without a fault nothing is found."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict

import pytest
from all_situations import SITUATIONS
from annotation_files import ids_of
from clean_sets import CLEAN
from drawn_scenes import scenes
from real_reports import DETECTION, SEGMENTATION
from situation import Build, coco_config, findings_of, holds, json_alone, masks, numbered, retina, some_boxes
from this_stack import is_here

from mmguard.cli import main

ALL = {**SITUATIONS, **SEGMENTATION, **DETECTION}


@pytest.mark.parametrize('name', [name for name in ALL if is_here(ALL[name].codes)])
def test_the_first_finding_names_the_true_cause(name: str, tmp_path: Path) -> None:
    holds(ALL[name], tmp_path)


@pytest.mark.parametrize('name', list(CLEAN))
def test_a_clean_set_gets_the_verdict_alone(name: str, tmp_path: Path) -> None:
    findings = findings_of(CLEAN[name], tmp_path)
    assert [finding.code for finding in findings] == ['MG100']


@pytest.mark.parametrize(
    'build',
    [
        json_alone({0: 'cat', 1: 'dog'}, 2),
        json_alone({0: 'ship'}, 1),
        json_alone(numbered('nut', 'pin', 'rod'), 4),
        # A class of the list without an object in the training data.
        ids_of(json_alone(numbered(*'abcde', start=0), 5, some_boxes([0, 1, 2, 4])), 'yolox'),
        coco_config(numbered('bolt', 'nut', 'pin'), ('bolt', 'nut', 'pin'), retina(3), some_boxes([1, 3])),
        masks(scenes(range(4), 8), 4, files=dict(palette=[(0, 0, 0), (9, 0, 0), (0, 99, 0), (7, 7, 0)])),
    ],
)
def test_nothing_is_called_fine_whose_labels_are_missing_or_depend_on_who_reads_them(
    build: Build, tmp_path: Path
) -> None:
    findings = findings_of(build, tmp_path)
    assert {finding.severity for finding in findings} <= {'info'}
    assert {finding.code for finding in findings} <= {'MG121', 'MG135'}


@pytest.mark.parametrize(
    ('code', 'heads', 'val'),
    [
        ('MG141', 3, {2: 'nut', 1: 'bolt', 3: 'pin'}),  # only the validation is wrong
        ('MG201', 80, numbered('bolt', 'nut', 'pin')),  # of both: reported with the training
    ],
)
def test_no_split_is_called_clean_next_to_a_faulty_one(
    code: str, heads: int, val: Dict[int, str], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    names = ('bolt', 'nut', 'pin')
    config, _ = coco_config(numbered(*names), names, retina(heads), val=val)(tmp_path)
    assert main(['scan', str(config)]) == 1
    shown = re.findall(r'^(MG\d+) ', capsys.readouterr().out, re.MULTILINE)
    assert shown == [code]
