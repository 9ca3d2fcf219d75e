"""Kinds of causes in configs: the first finding of `check` names the cause, its first edit is enough."""

from __future__ import annotations

from pathlib import Path
from typing import List

import pytest
from kinds_configs import KINDS, ConfigKind
from screens import fits_a_screen
from situation import write_config

from mmguard.compat.stack import base_source
from mmguard.config.changes import changed
from mmguard.config.read import read_config
from mmguard.findings import Finding, diagnose

CASES = [pytest.param(kind, id=name) for name, kind in KINDS.items()]


def checked(kind: ConfigKind, root: Path) -> List[Finding]:
    base = kind.config.get('_base_')
    file = write_config(root, **{name: part for name, part in kind.config.items() if name != '_base_'})
    if base is not None:
        file.write_text(f'_base_ = [{base_source(base)}]\n{file.read_text()}')
    config = read_config(str(file))
    found = diagnose(config=config)
    for finding in found:
        fits_a_screen(finding)
    for edit in found[0].edits[:1] if found and kind.gone else ():
        codes = {finding.code for finding in diagnose(config=changed(config, edit.config))}
        assert found[0].code not in codes, edit
    return found


@pytest.mark.parametrize('kind', CASES)
def test_the_first_finding_names_the_cause(kind: ConfigKind, tmp_path: Path) -> None:
    found = checked(kind, tmp_path)
    if not kind.code:
        assert found == [], kind.truth
        return
    words = f'{found[0].cause} {found[0].evidence} {found[0].advice}'
    assert found[0].code == kind.code, f'{kind.truth}\n{found[0]}'
    assert all(part in words for part in kind.says), words
    assert not any(part in found[0].advice for part in kind.never), words
