"""Situations as people meet them, each with its true cause; of data sets without a fault nothing is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from all_situations import SITUATIONS
from clean_sets import CLEAN
from situation import coco_config, faster, findings_of, holds, numbered, retina
from this_stack import is_here

from mmguard.cli import main


@pytest.mark.parametrize('name', [name for name in SITUATIONS if is_here(SITUATIONS[name].codes)])
def test_the_first_finding_names_the_true_cause(name: str, tmp_path: Path) -> None:
    holds(SITUATIONS[name], tmp_path)


@pytest.mark.parametrize('name', list(CLEAN))
def test_a_clean_set_gets_the_verdict_alone(name: str, tmp_path: Path) -> None:
    findings = findings_of(CLEAN[name], tmp_path)
    assert [finding.code for finding in findings] == ['MG100'], [str(finding) for finding in findings]


def test_what_is_wrong_with_a_split_stands_before_the_verdict_on_another(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    names = ('angle', 'top', 'head')
    config, _ = coco_config(numbered(*names), names, faster(3), val={2: 'top', 1: 'angle', 3: 'head'})(tmp_path)
    assert main(['scan', str(config)]) == 1
    said = capsys.readouterr().out
    assert 0 < said.find('MG141') < said.find('MG100')


def test_a_split_whose_finding_was_said_before_is_not_called_clean(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    names = ('bolt', 'nut')
    config, _ = coco_config(numbered(*names), names, retina(80), val=numbered(*names))(tmp_path)
    assert main(['scan', str(config)]) == 1
    said = capsys.readouterr().out
    assert 'Nothing more: MG201 above.' in said
    assert 'Nothing found' not in said
