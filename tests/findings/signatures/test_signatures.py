"""The signatures as data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mmguard.cli import main
from mmguard.findings.rules import RULES
from mmguard.findings.signatures import SIGNATURES, Signature
from mmguard.findings.signatures.page import page

KNOWN = {code for rule in RULES for code in (rule.code, *rule.aliases)}


def test_each_has_a_code_of_its_own() -> None:
    codes = [signature.code for signature in SIGNATURES]
    assert len(codes) == len(set(codes))
    assert not set(codes) & KNOWN
    assert all(re.fullmatch(r'MG4\d\d', code) for code in codes)


@pytest.mark.parametrize('signature', SIGNATURES, ids=lambda signature: signature.code)
def test_a_signature_is_whole(signature: Signature) -> None:
    re.compile(signature.pattern)
    re.compile(signature.place)
    assert signature.summary.endswith('.')
    assert signature.meaning.endswith('.')
    assert signature.causes
    assert signature.command
    for cause in signature.causes:
        re.compile(cause.clue)
        assert set(cause.codes) <= KNOWN, set(cause.codes) - KNOWN


@pytest.mark.parametrize('signature', SIGNATURES, ids=lambda signature: signature.code)
def test_every_signature_is_explained(signature: Signature, capsys: pytest.CaptureFixture) -> None:
    assert main(['explain', signature.code.lower()]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f'{signature.code}  {signature.summary}')
    assert all(cause.text in out for cause in signature.causes)


def test_the_page_of_errors_is_current() -> None:
    written = (Path(__file__).parents[3] / 'docs' / 'errors.md').read_text(encoding='utf-8')
    assert written == page(), 'run `python -m mmguard.findings.signatures > docs/errors.md`'
