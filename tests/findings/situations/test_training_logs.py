"""Kinds of ends of trainings, and of installations: what is said first is the cause, and nothing that does harm."""

from __future__ import annotations

import pytest
from training_logs import LOGS, LogKind

from mmguard.text.words import sentences
from mmguard.tools.explain.explained import explain_text
from mmguard.tools.explain.render import as_text


@pytest.mark.parametrize('kind', [pytest.param(kind, id=name) for name, kind in LOGS.items()])
def test_the_first_cause_is_the_true_one(kind: LogKind) -> None:
    found = explain_text([kind.log])
    assert found is not None
    assert found.signature is not None
    text = ' '.join(as_text(found, width=10000).split())
    assert found.signature.code == kind.code, text
    assert kind.first in found.causes[0].cause.text, text
    assert all(part in text for part in kind.says), text
    assert not any(part in text for part in kind.never), text
    screen = as_text(found, width=10000, verbose=False)
    assert kind.first in screen
    assert all(part in ' '.join(screen.split()) for part in kind.says), screen
    (said,) = [part for part in screen.split('\n\n') if '\nmore with --verbose: ' in part]
    assert 1 <= sum(len(sentences(row)) for row in said.split('\n')[:-1] if not row.startswith('true line: ')) <= 3
