"""Kinds of causes in label maps: the first finding names the cause, and its first advice does no harm."""

from __future__ import annotations

from pathlib import Path
from typing import List

import kinds_map_files
import kinds_maps
import pytest
from drawn_scenes import scenes
from situation import findings_of, seg_config, seg_model

from mmguard.config.read import read_config
from mmguard.findings import Finding
from mmguard.findings.engine import diagnose

KINDS = {**kinds_maps.KINDS, **kinds_map_files.KINDS}


def _first_advice(finding: Finding) -> str:
    return f'{finding.edits[0].question} {finding.edits[0].text}' if finding.edits else finding.advice


@pytest.mark.parametrize('name', list(KINDS))
def test_the_first_finding_names_the_cause(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    first = findings_of(kind.build, tmp_path)[0]
    advice = _first_advice(first)
    assert first.code in kind.codes, f'{kind.truth}\n{first}'
    words = ' '.join([first.cause, first.evidence, first.advice, *first.files])
    assert all(part in words for part in kind.says), first
    assert all(part in advice for part in kind.first), advice
    assert not any(part in advice for part in (*kind.never, 'num_classes=255', 'num_classes=256')), advice


def _checked(root: Path, classes: List[str], **settings: object) -> List[Finding]:
    """What ``mmguard check`` finds of shift and map."""
    config, _ = seg_config(scenes([0, 1, 2], 2), classes, seg_model(len(classes)), **settings)(root)
    return [found for found in diagnose(config=read_config(str(config))) if found.code == 'MG232']


def test_check_says_in_which_order_the_installed_loader_shifts_and_maps(tmp_path: Path) -> None:
    found = _checked(tmp_path, ['sky', 'tree', 'person', 'car'], type='ADE20KDataset')
    assert [one.severity for one in found] == ['info']
    assert 'subtracts 1 first, as it should' in found[0].cause
    assert 'train_dataloader.dataset.reduce_zero_label' in found[0].places[0]


@pytest.mark.parametrize('shift', [True, False])
def test_check_is_silent_where_one_of_them_is_not_set(tmp_path: Path, shift: bool) -> None:
    assert not _checked(tmp_path, ['a', 'b'], reduce_zero_label=shift)
