"""The order of findings, and that what follows from one before it is not shown."""

from __future__ import annotations

from typing import Any, Iterator, List, Tuple, Type

import pytest
from example_facts import EXAMPLES

from mmguard.facts.labels import MapFacts
from mmguard.findings import LabelFacts, diagnose
from mmguard.findings.catalogue import find_rule
from mmguard.findings.engine import search
from mmguard.findings.finding import INFO, LIKELY, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.order import ORDER, sort_key
from mmguard.findings.rule import AllClear, Facts, Rule
from mmguard.findings.rules import RULES
from mmguard.findings.signatures import read_signatures

CODES = [rule.code for rule in RULES]
#: (cause, what follows from it), of rules.
PAIRS = [(rule.code, code) for rule in RULES for code in rule.follows if code in CODES]


def stub_rule(name: str, sure: str, *values: int) -> Type[Rule]:
    """Return a rule that finds its mistake in any labels."""

    class Stub(Rule):
        code = name
        looks_at = ('labels',)
        summary, advice = 'Wrong.', 'Look.'
        follows = next((rule.follows for rule in RULES if rule.code == name), ())

        def find(self, facts: Facts) -> Iterator[Finding]:
            yield self.report('seen', certainty=sure, values=dict.fromkeys(values, 7))

    return Stub


def found_of(*rules: Tuple[Any, ...]) -> List[str]:
    """Return the codes that are shown where each rule (code, certainty) finds its mistake."""
    return [found.code for found in search(Facts(LabelFacts({}, 2)), [stub_rule(*rule) for rule in rules])]


@pytest.mark.parametrize(('cause', 'consequence'), PAIRS)
def test_a_consequence_is_not_shown_after_its_cause(cause: str, consequence: str) -> None:
    for sure in (PROVEN, LIKELY):
        assert found_of((consequence, sure), (cause, sure)) == [cause]
    assert found_of((consequence, POSSIBLE), (cause, POSSIBLE)) == [cause, consequence]
    assert found_of((consequence, PROVEN), (cause, LIKELY)) == [consequence, cause]


def test_a_consequence_of_other_values_is_shown() -> None:
    assert found_of(('MG107', LIKELY, 9), ('MG149', PROVEN, 9)) == ['MG149']
    assert found_of(('MG107', LIKELY, 9, 77), ('MG149', PROVEN, 9)) == ['MG149', 'MG107']
    assert found_of(('MG146', LIKELY), ('MG174', PROVEN)) == ['MG174']


def test_of_what_two_rules_find_in_labels_the_consequence_is_left_out() -> None:
    """The same with real rules: each is asked without the others first."""
    hidden = set()
    for example in EXAMPLES.values():
        each = {rule.code: diagnose(example(), rules=[rule]) for rule in RULES if not issubclass(rule, AllClear)}
        shown = {finding.code for finding in diagnose(example())}
        for cause, consequence in PAIRS:
            if each[cause] and each[consequence] and cause in shown and consequence in each[cause][0].follows:
                assert consequence not in shown
                hidden.add((cause, consequence))
    assert len(hidden) > 20


def test_the_order_holds_every_code_once_and_causes_first() -> None:
    assert sorted(ORDER) == sorted(CODES)
    assert [code for code in CODES if issubclass(find_rule(code), AllClear)] == [ORDER[-1]]
    known = {*CODES, *(signature.code for signature in read_signatures())}
    assert {code for rule in RULES for code in rule.follows} <= known
    # So there is no cycle, either.
    assert [pair for pair in PAIRS if ORDER.index(pair[0]) >= ORDER.index(pair[1])] == []


def test_the_surest_comes_first_and_what_is_only_said_last() -> None:
    assert found_of(('MG107', PROVEN), ('MG123', LIKELY)) == ['MG107', 'MG123']
    findings = [
        Finding('MG100', '', '', '', PROVEN, severity=INFO, is_verdict=True),
        Finding('MG138', '', '', '', PROVEN, severity=INFO),
        Finding('MG109', '', '', '', POSSIBLE),
        Finding('MG999', '', '', '', LIKELY),
        Finding('MG152', '', '', '', LIKELY, severity=WARNING),
    ]
    assert [finding.code for finding in sorted(findings, key=sort_key)] == ['MG152', 'MG999', 'MG109', 'MG138', 'MG100']


def test_colors_are_not_raw_ids_of_cityscapes() -> None:
    grays = {153: 12800, 70: 12480, 220: 7872, 152: 6272, 60: 5504, 128: 5376, 100: 5248, 33: 400, 26: 300}
    read = diagnose(LabelFacts(grays, 19, 255, histogram=grays, maps=MapFacts(forms={'rgba': 6}, raw=grays)))
    assert [finding.code for finding in read] == ['MG120']
    assert 'MG101' not in [finding.code for finding in diagnose(LabelFacts(grays, 19, 255, histogram=grays))]


def test_an_ignored_class_is_no_gap() -> None:
    counts = dict.fromkeys(range(1, 7), 4000)
    codes = [finding.code for finding in diagnose(LabelFacts({6: 4000}, 5, 5, histogram=counts))]
    assert codes[0] == 'MG115'
    assert 'MG116' not in codes
    counts[0] = 4000
    codes = [finding.code for finding in diagnose(LabelFacts({6: 4000}, 6, 5, histogram=counts))]
    assert codes[0] == 'MG102'
    assert 'MG116' not in codes
