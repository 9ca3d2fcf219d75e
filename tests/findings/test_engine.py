"""The engine with rules and edits made up for it: which edits hold, and what is said of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Iterator, List, Optional, Sequence, Type

import pytest
from questions import assert_answers_lead_on

from mmguard.config.read import ReadConfig
from mmguard.errors import CannotRun
from mmguard.facts.labels import AnnotationFacts, BoxFacts, LabelFacts, MapFacts
from mmguard.findings.edits import Edit, format_value
from mmguard.findings.engine import (
    Split,
    apply_edit,
    cache_reread,
    count_trained_classes,
    diagnose,
    holds,
    select_rules,
)
from mmguard.findings.finding import ERROR, PROVEN, WARNING, Finding
from mmguard.findings.plugins import list_rules
from mmguard.findings.rule import DataRule, Facts, Rule, find_files_with


class OutOfRange(DataRule):
    code = 'MG998'
    summary = 'Values beyond the {num_classes} classes.'
    advice = 'Look at {values}.'

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        yield self.report_in(facts, PROVEN)

    def edits(self, finding: Finding, facts: Facts) -> Sequence[Edit]:
        return facts.options.get('edits', ())


class TooMany(Rule):
    """More than 100 labels of class 0, wherever they come from."""

    code = 'MG999'
    looks_at = ('labels',)
    summary, advice = 'There are too many.', 'Take fewer.'
    severity = WARNING

    def find(self, facts: Facts) -> Iterator[Finding]:
        if facts.labels is not None and facts.labels.histogram.get(0, 0) > 100:
            yield self.report('class 0', severity=facts.options.get('severity'))


RULES_HERE: List[Type[Rule]] = [OutOfRange, TooMany]
BEFORE = LabelFacts({2: 5}, 2, 255, histogram={0: 10, 1: 10, 2: 5})
EDIT = Edit('Write it.', question='Is it so?', if_not='Write nothing.')


def is_offered(after: Optional[LabelFacts], before: LabelFacts = BEFORE, edit: Edit = EDIT, **options: Any) -> bool:
    given = {**options, 'edits': [edit]}
    (found, *_) = diagnose(before, rules=RULES_HERE, options=given, reread=lambda *_: after)
    return found.edits == (edit,)


CLEAN = replace(BEFORE, values={}, histogram={0: 10, 1: 10})


def test_an_edit_holds_where_all_classes_keep_their_labels() -> None:
    assert is_offered(CLEAN)
    assert is_offered(replace(CLEAN, histogram={0: 10, 1: 15}))
    assert is_offered(replace(CLEAN, histogram={0: 10, 1: 10, 2: 5}, num_classes=3))
    assert not is_offered(None)
    assert not is_offered(replace(CLEAN, values={2: 1})), 'the finding is still there'
    assert not is_offered(replace(CLEAN, histogram={}))
    assert not is_offered(replace(CLEAN, histogram={0: 30}))
    assert not is_offered(replace(CLEAN, histogram={0: 30, 1: 0}))
    assert not is_offered(replace(CLEAN, histogram={0: 30, 2: 10}), BEFORE), '2 is no class'
    assert not is_offered(replace(CLEAN, histogram={0: 30, -1: 10}))
    assert not is_offered(replace(CLEAN, histogram={0: 10, 1: 9}))
    # What stands for nothing where the answer is yes may go.
    assert is_offered(replace(CLEAN, histogram={0: 10}), edit=replace(EDIT, unlabelled=(1,)))


def test_an_edit_that_brings_an_error_is_not_offered() -> None:
    many = replace(CLEAN, histogram={0: 101, 1: 10})
    assert is_offered(many), 'a warning'
    assert not is_offered(many, severity=ERROR)
    assert is_offered(many, replace(BEFORE, histogram={0: 101, 1: 10}), severity=ERROR), 'it was there before'
    # What rewrites files must not even bring a warning.
    assert not is_offered(many, edit=replace(EDIT, files={'a': {}}))


def test_other_files_or_misread_ones_are_compared_by_what_they_hold() -> None:
    maps = MapFacts(raw={0: 4, 1: 4}, sources=['a.png'])
    before = replace(BEFORE, maps=maps)
    assert not is_offered(replace(CLEAN, histogram={0: 1}, maps=maps), before)
    assert is_offered(replace(CLEAN, histogram={0: 1}, maps=replace(maps, sources=['b.png'])), before)
    assert not is_offered(replace(CLEAN, histogram={}, maps=replace(maps, sources=['b.png'])), before)
    misread = replace(BEFORE, maps=replace(maps, loaded_otherwise={'a.png': 1}))
    assert is_offered(replace(CLEAN, histogram={0: 4, 1: 4}, maps=maps), misread)
    assert not is_offered(replace(CLEAN, histogram={0: 4, 1: 3}, maps=maps), misread)


def test_an_edit_must_be_right_in_the_other_splits() -> None:
    """A split without the finding must not train on more than before, either."""

    def held(before: LabelFacts, after: LabelFacts) -> bool:
        facts = Facts(before, reread=lambda *_: after)
        (finding,) = diagnose(BEFORE, rules=[OutOfRange])
        return holds(EDIT, finding, [Split(facts, [])], RULES_HERE)

    assert held(CLEAN, CLEAN)
    assert not held(CLEAN, replace(CLEAN, histogram={0: 10, 1: 11}))
    assert held(CLEAN, replace(CLEAN, histogram={0: 10, 1: 11}, num_classes=3))
    assert held(CLEAN, replace(CLEAN, histogram={0: 10, 1: 11}, ignore_index=None))
    assert not held(CLEAN, replace(CLEAN, values={2: 1}))
    assert held(replace(CLEAN, kind='instances'), replace(CLEAN, kind='instances', histogram={0: 10, 1: 11}))
    bad = Facts(CLEAN, reread=lambda *_: replace(CLEAN, histogram={0: 10}))
    options = {'edits': [EDIT]}
    for others in ((), (bad,)):
        (found,) = diagnose(BEFORE, rules=RULES_HERE, options=options, reread=lambda *_: CLEAN, others=others)
        assert found.edits == (() if others else (EDIT,))


@pytest.mark.parametrize(
    ('ways', 'if_not'),
    [
        ([EDIT], ['Write nothing.']),
        ([replace(EDIT, if_not='')], [OutOfRange.advice.format(values=2)]),
        ([replace(EDIT, if_not=''), replace(EDIT, question='Or so?')], ['', 'Write nothing.']),
        ([replace(EDIT, if_not=''), Edit('Write that.')], ['', '']),
    ],
)
def test_a_no_leads_to_the_next_edit_to_a_step_of_its_own_or_to_the_advice(ways: List[Edit], if_not: List[str]) -> None:
    (found,) = diagnose(BEFORE, rules=[OutOfRange], options={'edits': ways}, reread=lambda *_: CLEAN)
    assert [edit.if_not for edit in found.edits] == if_not
    assert_answers_lead_on([found])


def test_of_edits_that_ask_the_same_the_first_is_offered_and_without_edits_the_advice_stays() -> None:
    edits = [replace(EDIT, number=n, question=q) for n, q in ((1, 'A?'), (2, 'A?'), (3, 'B?'))]
    (found,) = diagnose(BEFORE, rules=[OutOfRange], options={'edits': edits}, reread=lambda *_: CLEAN)
    assert [edit.number for edit in found.edits] == [1, 3]
    (found,) = diagnose(BEFORE, rules=[OutOfRange], options={'edits': edits}, reread=lambda *_: None)
    assert (found.edits, found.advice) == ((), OutOfRange.advice.format(values=2))
    (found,) = diagnose(BEFORE, rules=[OutOfRange], options={'edits': edits})
    assert (found.edits, found.advice) == ((), OutOfRange.advice.format(values=2)), 'nobody can look again'
    (found,) = diagnose(BEFORE, rules=[OutOfRange], reread=lambda *_: CLEAN)
    assert (found.edits, found.advice) == ((), OutOfRange.advice.format(values=2))
    assert found.title == OutOfRange.summary.format(num_classes=2)


def test_labels_are_read_again_once_for_each_edit() -> None:
    asked: List[Any] = []

    def reread(*of: Any) -> LabelFacts:
        asked.append(of)
        return BEFORE

    config = ReadConfig({'a': 1})
    again = cache_reread(reread)
    for files in ((), (), (('a', ()),)):
        assert again(config, {'x': 1}, files) is BEFORE
    assert asked == [(config, {'x': 1}, ()), (config, {'x': 1}, (('a', ()),))]
    again(ReadConfig({'a': 2}), {'x': 1}, ())
    again(None, {'x': 1}, ())
    again(None, {'x': 2}, ())
    assert len(asked) == 5


def test_what_teaches_a_class() -> None:
    facts = LabelFacts({3: 1, 1: 2}, 3, 2, histogram={-1: 1, 0: 4, 1: 2, 2: 9, 3: 1})
    assert count_trained_classes(facts) == {0: 4}
    facts.annotations = AnnotationFacts(usable={0: 0, 2: 7})
    assert count_trained_classes(replace(facts, ignore_index=None)) == {2: 7}


def test_a_finding_names_files_by_what_they_hold() -> None:
    maps = MapFacts(examples={2: ['two.png'], 7: ['seven.png', 'both.png'], 8: ['both.png']})
    for stored, files in (({}, ('two.png',)), ({2: [7, 8]}, ('seven.png', 'both.png'))):
        (finding,) = diagnose(LabelFacts({2: 1}, 2, maps=maps, stored=stored), rules=[OutOfRange])
        assert finding.files == files
    boxes = BoxFacts(box_examples={'label': ['a.xml']})
    (finding,) = diagnose(LabelFacts({2: 1}, 2, boxes=boxes), rules=[OutOfRange])
    assert finding.files == ('a.xml',)
    assert find_files_with(LabelFacts({}, 2, boxes=boxes), {}) == []


def test_rules_are_chosen_by_code_or_its_beginning() -> None:
    assert select_rules() == list_rules()
    assert [rule.code for rule in select_rules(['MG107'])] == ['MG107']
    begins = select_rules(['MG10', 'MG201'])
    assert {rule.code[:4] for rule in begins} == {'MG10', 'MG20'}
    assert {rule.code for rule in begins if rule.code.startswith('MG20')} == {'MG201'}
    assert select_rules(['MG10'], ['MG107']) == [rule for rule in select_rules(['MG10']) if rule.code != 'MG107']
    codes = [{rule.code, *rule.aliases} for rule in select_rules(ignore=['MG1'])]
    assert codes
    assert not any(code.startswith('MG1') for of_rule in codes for code in of_rule)
    with pytest.raises(ValueError, match=r'^unknown code: MG777, MG9\. Known codes: MG\d+, '):
        select_rules(['MG107', 'MG777'], ['MG9'])


def apply_where_reading_raises(error: Exception) -> Any:
    def reread(*_: Any) -> LabelFacts:
        raise error

    return apply_edit(EDIT, Facts(labels=LabelFacts({}, 2), reread=reread))


@pytest.mark.parametrize('error', [CannotRun('x'), OSError('no space left'), UnicodeError('x')])
def test_what_cannot_be_read_again_is_no_edit(error: Exception) -> None:
    assert apply_where_reading_raises(error) is None


@pytest.mark.parametrize('kind', [KeyError, TypeError, AttributeError, AssertionError, RuntimeError])
def test_a_fault_of_the_reader_is_raised(kind: Type[Exception]) -> None:
    with pytest.raises(kind):
        apply_where_reading_raises(kind('x'))


@pytest.mark.parametrize('path', ['model.head[3].num_classes', 'model.type.name', 'model.head[0].x.y.z'])
def test_a_place_that_a_config_does_not_have_is_no_edit(path: str) -> None:
    config = ReadConfig({'model': {'type': 'A', 'head': [{'x': 5}]}}, Path('config.py'))
    assert apply_edit(replace(EDIT, config=((path, 2),)), Facts(config=config)) is None


def test_a_place_that_is_there_is_changed() -> None:
    config = ReadConfig({'model': {'head': [{'x': 5}]}}, Path('config.py'))
    changed = apply_edit(replace(EDIT, config=(('model.head[0].x', 2),)), Facts(config=config))
    assert changed.config.data == {'model': {'head': [{'x': 2}]}}


def test_a_list_is_shown_by_its_ends() -> None:
    assert format_value(list(range(1000))) == '[0, ..., 999] (1,000 entries)'


@pytest.mark.skipif(sys.version_info < (3, 11), reason='prints integers of any length')
@pytest.mark.parametrize(
    ('value', 'text'),
    [(10**6000, 'a int'), ([10**6000] * 99, '[a int, ..., a int] (99 entries)')],
    ids=['number', 'list'],
)
def test_what_python_does_not_print_is_named(value: object, text: str) -> None:
    assert format_value(value) == text
