"""What ``mmguard env`` says of the versions that mmguard was run with, of others, and of a loss that does not work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mmguard.environment.facts import TRIAL, EnvironmentFacts, import_errors
from mmguard.environment.tried import tried
from mmguard.environment.verdict import version_key
from mmguard.environment.verdicts import ERROR, OK, Verdict, verdicts


def line_of(name: str, **facts: Any) -> Verdict:
    (line,) = [line for line in verdicts(EnvironmentFacts(python='3.11.7', **facts)) if line.name == name]
    return line


@pytest.mark.parametrize(
    ('version', 'level', 'found'),
    [
        ('2.1.2', OK, '2.1.2 was tried'),
        ('2.1.2+cu118', OK, '2.1.2+cu118 was tried'),
        ('2.1.0', OK, '2.1.0 was not tried; it is between 2.0.1 and 2.1.2, which were'),
        ('2.5.1+cu124', OK, '2.5.1+cu124 was not tried; it is between 2.4.1 and 2.6.0, which were'),
        ('1.12.1', ERROR, '1.12.1 is not supported'),
    ],
)
def test_a_torch_is_compared_with_those_that_were_tried(
    version: str, level: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version beside which a test failed counts for nothing."""
    seen = {'1.13.1': 0, '2.0.1': 0, '2.1.2': 0, '2.4.1': 0, '2.5.1': 3, '2.6.0': 0}
    rows = [{'torch': torch, 'numpy': '1.26.4', 'failed': failed} for torch, failed in seen.items()]
    (tmp_path / 'tried.json').write_text(json.dumps(rows))
    monkeypatch.setattr('mmguard.environment.tried.TRIED', tmp_path / 'tried.json')
    line = line_of('mmguard with torch', versions={'torch': version, 'numpy': '1.26.4'})
    assert (line.level, line.found) == (level, found)
    assert bool(line.advice) == (level == ERROR)


@pytest.mark.parametrize('name', ['torch', 'numpy'])
def test_both_ends(name: str) -> None:
    ordered = sorted((row[name] for row in tried()), key=version_key)
    newer = line_of(f'mmguard with {name}', versions={name: '99.0'})
    assert (newer.level, newer.found) == (OK, f'99.0 was not tried; it is newer than {ordered[-1]}, the last that was')
    older = line_of(f'mmguard with {name}', versions={name: '0.1'})
    assert (older.level, older.advice) == (ERROR, f'mmguard needs {name} {ordered[0]} or newer')


def test_the_loss_works_here() -> None:
    assert import_errors(['torch', TRIAL])[0] == {}


def test_a_loss_that_does_not_work_is_an_error_with_the_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a child whose torch lacks names that the loss needs."""
    (tmp_path / 'sitecustomize.py').write_text('import torch\ndel torch.stack, torch.where, torch.zeros_like\n')
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    errors, _ = import_errors(['numpy', 'torch', 'mmguard', TRIAL])
    assert list(errors) == [TRIAL]
    line = line_of('a guarded loss', versions={'torch': '2.1.2', 'numpy': '1.26.4'}, errors=errors)
    assert (line.level, line.found) == (ERROR, 'does not work here')
    assert line.advice.startswith("AttributeError: module 'torch' has no attribute")


def test_a_loss_that_is_wrong_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'sitecustomize.py').write_text(
        'from mmguard.nn import CrossEntropyLoss\nCrossEntropyLoss.forward = lambda self, x, y: x.sum()\n'
    )
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    errors, _ = import_errors(['torch', TRIAL])
    assert errors[TRIAL].startswith('ArithmeticError: CrossEntropyLoss gives')


@pytest.mark.parametrize('broken', ['torch', 'numpy', 'mmguard'])
def test_what_is_broken_itself_is_said_once(broken: str) -> None:
    for facts in (
        dict(errors={broken: 'OSError: no', TRIAL: 'OSError: no'}),
        dict(missing=[broken], errors={TRIAL: 'no'}),
    ):
        found = verdicts(EnvironmentFacts(python='3.11.7', versions={'torch': '2.1.2'}, **facts))
        assert [line for line in found if line.name == 'a guarded loss'] == []
