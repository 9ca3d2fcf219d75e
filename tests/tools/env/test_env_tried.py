"""What ``mmguard env`` says of versions, tried ones and others, and of a loss that does not work."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, List

import pytest

from mmguard.findings import Finding, diagnose
from mmguard.findings.environment import EnvironmentFacts, version_key
from mmguard.findings.finding import ERROR
from mmguard.tools.env.facts import gather, tried
from mmguard.tools.env.table import OK, Line, table


def found_in(**facts: Any) -> List[Finding]:
    return diagnose(environment=EnvironmentFacts(python='3.11.7', **facts))


def line_of(name: str, **facts: Any) -> Line:
    lines = table(EnvironmentFacts(python='3.11.7', **facts), found_in(**facts))
    (line,) = [line for line in lines if line.name == name]
    return line


@pytest.mark.parametrize(
    ('version', 'level', 'between'),
    [
        ('2.1.2', OK, []),
        ('2.1.2+cu118', OK, []),
        ('2.1.0', OK, ['2.0.1', '2.1.2']),
        ('2.5.1+cu124', OK, ['2.4.1', '2.6.0']),
        ('1.12.1', ERROR, []),
    ],
)
def test_a_torch_is_compared_with_those_that_were_tried(
    version: str, level: str, between: List[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version beside which a test failed counts for nothing."""
    seen = {'1.13.1': 0, '2.0.1': 0, '2.1.2': 0, '2.4.1': 0, '2.5.1': 3, '2.6.0': 0}
    rows = [{'torch': torch, 'numpy': '1.26.4', 'failed': failed} for torch, failed in seen.items()]
    (tmp_path / 'tried.json').write_text(json.dumps(rows))
    monkeypatch.setattr('mmguard.tools.env.facts.TRIED', tmp_path / 'tried.json')
    line = line_of('mmguard with torch', versions={'torch': version}, tried=gather(try_imports=False).tried)
    assert (line.level, re.findall(r'\d[\w.+]+', line.found)) == (level, [version, *between])
    assert line.codes == (['MG512'] if level == ERROR else [])


@pytest.mark.parametrize('name', ['torch', 'numpy'])
def test_both_ends(name: str) -> None:
    seen = gather(try_imports=False).tried
    ordered = sorted((row[name] for row in tried()), key=version_key)
    newer = line_of(f'mmguard with {name}', versions={name: '99.0'}, tried=seen)
    assert newer.level == OK
    assert ordered[-1] in newer.found
    (older,) = found_in(versions={name: '0.1'}, tried=seen)
    (edit,) = older.edits
    ((package, version),) = edit.environment
    assert (older.code, package) == ('MG512', name)
    assert version_key(version) >= version_key(ordered[0])
