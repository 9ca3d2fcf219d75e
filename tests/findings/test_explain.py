"""``mmguard explain``, and the page of causes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Type

import pytest
from volume_facts import HAS_NNUNET

from mmguard.cli import main
from mmguard.findings.catalogue import RETIRED, build_page
from mmguard.findings.plugins import list_own_rules
from mmguard.findings.rule import Rule
from mmguard.findings.signatures import read_signatures

DOCS = Path(__file__).parents[2] / 'docs'


@pytest.mark.parametrize('rule', list_own_rules(), ids=lambda rule: rule.code)
def test_every_rule_is_explained(rule: Type[Rule], capsys: pytest.CaptureFixture) -> None:
    for code in (rule.code, rule.code.lower()):
        assert main(['explain', code]) == 0
        assert capsys.readouterr().out.startswith(f'{rule.code}  ')


def test_without_a_code_all_are_listed(capsys: pytest.CaptureFixture) -> None:
    assert main(['explain']) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == sorted(listed)
    assert {rule.code for rule in list_own_rules()} | {signature.code for signature in read_signatures()} == set(listed)


def test_a_code_that_was_joined_with_another_is_still_known(capsys: pytest.CaptureFixture) -> None:
    assert main(['explain', 'MG143']) == 0
    assert re.findall(r'MG\d+', capsys.readouterr().out)[:2] == ['MG143', 'MG201']
    joined = [code for rule in list_own_rules() for code in rule.aliases]
    assert len(joined) == len(set(joined))
    assert not set(joined) & {rule.code for rule in list_own_rules()}


def test_a_retired_code_is_known_and_given_to_no_other_rule(capsys: pytest.CaptureFixture) -> None:
    for code in RETIRED:
        assert main(['explain', code]) == 0
        assert capsys.readouterr().out.count('\n') == 1
    taken = {code for rule in list_own_rules() for code in (rule.code, *rule.aliases)} | {
        signature.code for signature in read_signatures()
    }
    assert not taken & set(RETIRED)


def test_an_unknown_code_is_an_error_that_names_the_known_ones(capsys: pytest.CaptureFixture) -> None:
    assert main(['explain', 'MG999']) == 2
    assert {'MG999', 'MG102'} <= set(re.findall(r'MG\d+', capsys.readouterr().err))


def test_every_code_of_the_changelog_is_explained() -> None:
    codes = sorted(set(re.findall(r'MG\d{3}', (DOCS.parent / 'CHANGELOG.md').read_text(encoding='utf-8'))))
    codes = [code for code in codes if HAS_NNUNET or not code.startswith(('MG18', 'MG19'))]
    assert len(codes) > 20
    assert [code for code in codes if main(['explain', code]) != 0] == []


def test_no_code_needs_a_framework() -> None:
    code = (
        'import sys\n'
        'for name in ("mmengine", "mmcv", "mmseg", "mmdet"): sys.modules[name] = None\n'
        'from mmguard.commands.explain.command import run\n'
        'from argparse import Namespace\n'
        'assert run(Namespace(what="MG103")) == 0\n'
        'assert run(Namespace(what=None)) == 0\n'
        'assert run(Namespace(what="MG201")) == 0\n'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'MG103' in done.stdout


def test_the_page_of_causes_is_current() -> None:
    written = (DOCS / 'findings.md').read_text(encoding='utf-8')
    assert written == build_page(), 'run `python -m mmguard.findings.catalogue > docs/findings.md`'
