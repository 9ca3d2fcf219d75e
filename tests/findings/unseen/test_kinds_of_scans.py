"""Kinds of causes that config and files show together: the first finding of a scan names the cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from kinds_scans import KINDS
from situation import Situation, coco_config, faster, findings_of, numbered, retina

from mmguard.cli import main


@pytest.mark.parametrize('kind', [pytest.param(kind, id=name) for name, kind in KINDS.items()])
def test_the_first_finding_names_the_cause(kind: Situation, tmp_path: Path) -> None:
    first = findings_of(kind.build, tmp_path)[0]
    words = ' '.join([first.cause, first.evidence, first.advice, *first.files])
    assert first.code in kind.codes, f'{kind.truth}\n{first}'
    assert all(part in words for part in kind.says), first
    assert not any(part in words for part in kind.never), first


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
