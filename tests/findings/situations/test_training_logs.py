"""Kinds of ends of trainings, and of installations: the first cause is the true one, with the line that supports it."""

from __future__ import annotations

import pytest
from training_logs import LOGS, LogKind

from mmguard.tools.explain.explained import SUPPORTED, explain_text
from mmguard.tools.explain.render import as_json


@pytest.mark.parametrize('kind', [pytest.param(kind, id=name) for name, kind in LOGS.items()])
def test_the_first_cause_is_the_true_one(kind: LogKind) -> None:
    found = explain_text([kind.log])
    assert found is not None
    record = as_json(found, 'train.log')
    assert record['error']['code'] == kind.code
    first = record['causes'][0]
    assert first['key'] == kind.first
    assert (first['evidence'] or {'line': 0})['line'] == kind.line
    assert set(kind.refuted) <= set(record['refuted'])
    assert all(any(part in said for said in record['ranks']) for part in kind.ranks)


@pytest.mark.parametrize('kind', [pytest.param(kind, id=name) for name, kind in LOGS.items()])
def test_what_supports_a_cause_is_a_line_of_the_log(kind: LogKind) -> None:
    found = explain_text([kind.log])
    assert found is not None
    rows = kind.log.split('\n')
    for weighed in found.causes:
        assert (weighed.standing == SUPPORTED) is (weighed.evidence is not None)
        if weighed.evidence is not None and weighed.evidence.text not in found.ranks:
            assert weighed.evidence.text.split(':')[0].strip() in rows[weighed.evidence.line - 1]
