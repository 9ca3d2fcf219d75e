"""``truth.json`` keeps its schema, and the judge counts what it forbids."""

from __future__ import annotations

import re
from typing import Any, Dict, List

import pytest
from truth import ALL_VALUES, CLAIMS, compare_ranks, judge_report, read_causes, read_truth

pytest.importorskip('mmseg')

REPORTS = read_truth()
CODE = re.compile(r'MG[1-5]\d\d')
SCHEMA: Dict[str, Any] = {
    'allowed': {'codes': 'codes', 'partial': 'codes', 'causes': 'causes', 'places': 'words', 'config': 'config'},
    'forbidden': {
        'codes': 'codes',
        'causes': 'causes',
        'config': 'config',
        'files': 'words',
        'claims': 'claims',
        'all_clear': 'words',
    },
}


@pytest.mark.parametrize('name', REPORTS)
def test_a_report_keeps_the_schema(name: str) -> None:
    report = REPORTS[name]
    assert re.fullmatch(r'(set[0-3]|b[0-2]|[cd]0|e[01])/[\w.-]+', name)
    assert set(report) - {'commands', 'in_scope'} == {'id', *SCHEMA}
    for command in report.get('commands', ()):
        assert command.split()[0] in ('check', 'scan', 'explain')
        assert len(command.split()) > 1
    for part, kinds in SCHEMA.items():
        for key, value in report[part].items():
            assert follows(value, kinds[key]), f'{part}.{key}: {value}'


def follows(value: Any, kind: str) -> bool:
    if kind == 'config':
        return all(values == ALL_VALUES or (isinstance(values, list) and values != []) for values in value.values())
    words = {'claims': CLAIMS, 'causes': tuple(read_causes())}.get(kind)
    return value != [] and all(CODE.fullmatch(one) if kind == 'codes' else not words or one in words for one in value)


@pytest.mark.parametrize('name', REPORTS)
def test_nothing_is_allowed_and_forbidden(name: str) -> None:
    allowed, forbidden = REPORTS[name]['allowed'], REPORTS[name]['forbidden']
    for key in ('codes', 'causes'):
        assert not set(forbidden.get(key, ())) & {*allowed.get(key, ()), *allowed.get('partial', ())}
    for key, values in allowed.get('config', {}).items():
        other = forbidden.get('config', {}).get(key, [])
        assert ALL_VALUES in (values, other) or not [value for value in values if value in other], key


def found(code: str, severity: str = 'error', edits: Any = ()) -> Dict[str, Any]:
    return dict(code=code, severity=severity, edits=list(edits), places=[])


def edit(question: str = '', **config: Any) -> Dict[str, Any]:
    return dict(config=config, options={}, files={}, question=question)


def scanned(*findings: Dict[str, Any]) -> Dict[str, Any]:
    return dict(args=['scan', 'data'], exit=1, json=dict(datasets=[dict(findings=list(findings))]))


def explained(standing: str, *codes: str, quote: str = '', log: str = '', **more: Any) -> Dict[str, Any]:
    evidence = dict(text=quote) if quote else None
    cause = dict(key='key', cause='', codes=list(codes), standing=standing, evidence=evidence)
    cause['findings'] = more.pop('findings', [])
    said = dict(error=dict(code='MG413'), causes=[cause], **more)
    return dict(args=['explain', 'log'], exit=1, json=said, log=log)


SLIP = dict(
    allowed=dict(codes=['MG127']), forbidden=dict(codes=['MG102'], config={'num_classes': [25]}, claims=['labels_fine'])
)
FINE = dict(allowed=dict(partial=['MG100']), forbidden=dict(config={'label_map': ALL_VALUES}, claims=['about_labels']))


@pytest.mark.parametrize(
    ('truth', 'answers', 'first', 'harm'),
    [
        (SLIP, [scanned(found('MG127'))], 1, []),
        (SLIP, [scanned(found('MG109'), found('MG127'))], 0.5, []),
        (SLIP, [scanned(found('MG102'), found('MG127'))], 0.5, ['MG102 first']),
        (SLIP, [scanned(found('MG107'))], 0, []),
        (SLIP, [scanned(found('MG107', edits=[edit(**{'model.decode_head.num_classes': 25})]))], 0, ['num_classes=25']),
        (SLIP, [scanned(found('MG127', edits=[edit('A slip?'), edit('A class?', num_classes=25)]))], 1, []),
        (SLIP, [scanned(found('MG100', 'info'))], 0, ['labels_fine']),
        (SLIP, [explained('possible', 'MG102'), scanned(found('MG127'))], 0.5, ['MG102 first']),
        (FINE, [scanned(found('MG100', 'info'))], 0.5, []),
        (FINE, [scanned(found('MG103'))], 0, ['about_labels: MG103']),
        (FINE, [scanned(found('MG103', 'info', [edit(pipeline=[dict(label_map={'3': 1})])]))], 0, ['label_map']),
        (FINE, [explained('supported', 'MG103'), scanned(found('MG100', 'info'))], 0.5, ['about_labels: MG103']),
        (FINE, [explained('possible', 'MG103')], 0, []),
        (SLIP, [explained('possible', 'MG101', more=['MG127'])], 0.5, []),
        (SLIP, [explained('confirmed', 'MG102', 'MG107', findings=['MG127'])], 1, []),
        (SLIP, [explained('confirmed', 'MG127', findings=['MG102'])], 0, ['MG102 first']),
        (FINE, [dict(args=['scan', 'data'], exit=2, json=None)], 0, []),
    ],
)
def test_the_judge(truth: Dict[str, Any], answers: List[Dict[str, Any]], first: float, harm: List[str]) -> None:
    verdict = judge_report(truth, answers)
    assert verdict.first == first
    assert len(verdict.harm) == len(harm)
    assert all(part in said for part, said in zip(harm, verdict.harm)), verdict.harm


@pytest.mark.parametrize(
    ('answer', 'tags'),
    [
        (explained('possible', 'MG127', quote='Target 24', log='Target 24'), []),
        (explained('supported', 'MG127', quote='Target 24', log='x\n\x1b[31mTarget   24\n'), [(True, True)]),
        (explained('supported', 'MG103', quote='Target 24', log='Target 2'), [(False, False)]),
        (explained('supported', 'MG103'), [(False, False)]),
    ],
)
def test_tags_are_counted_by_their_quote_and_cause(answer: Dict[str, Any], tags: Any) -> None:
    assert [(tag.is_quoted, tag.is_true) for tag in judge_report(SLIP, [answer]).tags] == tags


@pytest.mark.parametrize(
    ('code', 'edits', 'states', 'is_closed'),
    [
        ('MG127', [dict(edit(), verified=True)], ['verified'], True),
        ('MG127', [dict(edit(num_classes=25), verified=False)], ['not verified'], False),
        ('MG107', [edit(num_classes=24), dict(edit(), verified=True)], ['not asked', 'verified'], False),
        ('MG127', [], [], False),
    ],
)
def test_edits_are_counted_by_state(code: str, edits: Any, states: List[str], is_closed: bool) -> None:
    verdict = judge_report(SLIP, [scanned(found(code, edits=edits))])
    assert list(verdict.edits) == states
    assert verdict.is_closed == is_closed


def ran(command: str, exit_code: int, **said: Any) -> Dict[str, Any]:
    return dict(args=command.split(), exit=exit_code, json=said or None)


def held(**outcomes: str) -> List[Dict[str, str]]:
    return [dict(name=name, outcome=outcome) for name, outcome in outcomes.items()]


@pytest.mark.parametrize(
    ('answer', 'all_clears'),
    [
        (ran('scan data', 0, datasets=[dict(findings=[found('MG100', 'info')])]), ['scan data']),
        (ran('scan data', 0, datasets=[dict(findings=[found('MG138', 'info')])]), ['scan data']),
        (ran('scan data', 0, datasets=[dict(findings=[found('MG127', 'info')])]), []),
        (ran('scan data', 1, datasets=[dict(findings=[found('MG107')])]), []),
        (ran('scan other', 0, datasets=[]), []),
        (ran('fix data --out other', 0), ['fix data --out other']),
        (ran('check cfg.py', 2), []),
        (ran('explain log', 0, error=None, more=[]), ['explain log']),
        (ran('explain log', 1, error=dict(code='MG413'), causes=[]), ['explain log']),
        (ran('explain log', 1, error=dict(code=None), causes=[]), []),
        (ran('dry-run a.py', 1, properties=held(one='holds', two='broken')), ['dry-run a.py one']),
        (ran('dry-run a.py', 0, properties=held(one='not tested')), ['dry-run a.py']),
        (ran('dry-run a.py', 1, properties=held(one='ran', two='broken')), ['dry-run a.py one']),
        (ran('dry-run a.py', 2, properties=held(one='not run')), []),
    ],
)
def test_a_false_all_clear_is_found(answer: Dict[str, Any], all_clears: List[str]) -> None:
    patterns = ['scan data', 'fix *', 'check *', 'explain *', 'dry-run a.py', 'dry-run * one']
    truth = dict(allowed=dict(codes=['MG127']), forbidden=dict(all_clear=patterns))
    assert list(judge_report(truth, [answer]).all_clears) == all_clears


@pytest.mark.parametrize(
    ('bare', 'more', 'ranks'),
    [
        (['MG102', 'MG127'], ['MG127', 'MG102'], (1.2, 0.2)),
        (['MG127'], ['MG102', 'MG127'], (0.2, 1.2)),
        (['MG127'], [], (0.2, float('inf'))),
        ([], [], (float('inf'), float('inf'))),
    ],
)
def test_the_ranks_with_more_information(bare: List[str], more: List[str], ranks: Any) -> None:
    def answer(words: str, codes: List[str]) -> Dict[str, Any]:
        causes = [explained('possible', code)['json']['causes'][0] for code in codes]
        return ran(words, 1, error=dict(code='MG413'), causes=causes)

    calls = [answer('explain log', bare), answer('explain log --data d', more), answer('explain other --data d', more)]
    assert list(compare_ranks(SLIP, calls)) == [('explain log --data d', *ranks)]
