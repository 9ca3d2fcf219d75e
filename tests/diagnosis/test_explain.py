"""``mmguard explain``, and the page of causes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mmguard.cli import main
from mmguard.diagnosis import CAUSES
from mmguard.diagnosis.catalogue import page

DOCS = Path(__file__).parents[2] / 'docs'


@pytest.mark.parametrize('code', [cause.code for cause in CAUSES])
def test_every_cause_is_explained(code: str, capsys: pytest.CaptureFixture) -> None:
    assert main(['explain', code]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f'{code}  ')
    for part in ('Why it matters: ', 'For example: ', 'What to write: '):
        assert part in out


def test_every_rule_is_explained(capsys: pytest.CaptureFixture) -> None:
    from mmguard.check.rules import RULES

    for rule in RULES:
        assert main(['explain', rule.code.lower()]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f'{rule.code}  {rule.summary}')
        assert rule.why in out
        assert rule.advice in out


def test_without_a_code_all_are_listed(capsys: pytest.CaptureFixture) -> None:
    assert main(['explain']) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == sorted(listed)
    assert {cause.code for cause in CAUSES} < set(listed)
    assert any(code.startswith('MG2') for code in listed)


def test_an_unknown_code_is_an_error_that_names_the_known_ones(capsys: pytest.CaptureFixture) -> None:
    assert main(['explain', 'MG999']) == 2
    err = capsys.readouterr().err
    assert 'no such code: MG999' in err
    assert 'MG102' in err


def test_no_code_needs_a_framework() -> None:
    code = (
        'import sys\n'
        'for name in ("mmengine", "mmcv", "mmseg", "mmdet"): sys.modules[name] = None\n'
        'from mmguard.commands.explain import run\n'
        'from argparse import Namespace\n'
        'assert run(Namespace(code="MG103")) == 0\n'
        'assert run(Namespace(code=None)) == 0\n'
        'assert run(Namespace(code="MG201")) == 0\n'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'MG103' in done.stdout


def test_the_page_of_causes_is_current() -> None:
    written = (DOCS / 'causes.md').read_text(encoding='utf-8')
    assert written == page(), 'run `python -m mmguard.diagnosis.catalogue > docs/causes.md`'
