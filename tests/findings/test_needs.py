"""Declarations of a rule: the facts that it needs, and the kinds of labels that show its mistake."""

from __future__ import annotations

from typing import Iterator, List, Tuple

import pytest

from mmguard.config.read import ReadConfig
from mmguard.facts.labels import AnnotationFacts, CocoFacts, ConfigFacts, LabelFacts, LoaderFacts, MapFacts
from mmguard.facts.volumes import VolumeFacts
from mmguard.facts.yolo import YoloFacts
from mmguard.findings.finding import POSSIBLE, Finding
from mmguard.findings.plugins import list_rules
from mmguard.findings.rule import ConfigRule, DataRule, Facts, get_fact

FOUND = LabelFacts({5: 1}, 3, kind='instances', annotations=AnnotationFacts(images=2), coco=CocoFacts(unnamed={7: 1}))


def write_rule(*needs: str) -> DataRule:
    def look(self: DataRule, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        yield self.report('seen')

    texts = {'code': 'MG999', 'summary': 'It is seen.', 'advice': 'Look.'}
    return type('Declared', (DataRule,), {**texts, 'kinds': ('instances',), 'needs': needs, 'look': look})()


@pytest.mark.parametrize(
    ('needs', 'is_asked'),
    [
        (('histogram',), False),
        (('values', 'annotations.images', 'coco.unnamed'), True),
        (('values', 'annotations.missing'), False),
        (('coco.renamed',), False),
        (('maps.raw',), False),  # there are no facts about maps
        (('maps.raw or histogram or values',), True),
        (('maps.raw or coco.renamed',), False),
        (('maps or annotations', 'histogram or values'), True),
        (('maps or annotations', 'histogram or reasons'), False),
        (('has_config',), False),
    ],
)
def test_a_rule_is_asked_with_all_facts_that_it_needs(needs: Tuple[str, ...], is_asked: bool) -> None:
    assert [found.evidence for found in write_rule(*needs).find(Facts(FOUND))] == ['seen'] * is_asked


def has_fact(name: str) -> bool:
    """True if facts of all kinds have a field or a property of this name."""
    facts = LabelFacts(
        maps=MapFacts(),
        annotations=AnnotationFacts(),
        yolo=YoloFacts(),
        volumes=VolumeFacts(),
        config=ConfigFacts(),
        loader=LoaderFacts(),
    )
    try:
        get_fact(facts, name)
    except AttributeError:
        return False
    return True


def test_all_rules_need_facts_that_exist() -> None:
    rules = [rule for rule in list_rules() if issubclass(rule, DataRule)]
    named = {(rule.code, name) for rule in rules for need in rule.needs for name in need.split(' or ')}
    assert ('MG149', 'coco.unnamed') in named
    assert [(code, name) for code, name in sorted(named) if not has_fact(name)] == []
    assert [name for name in ('valeus', 'coco.named', 'values.or') if has_fact(name)] == []


class ZeroIgnored(ConfigRule):
    code, summary, advice = 'MG998', '0 is ignored.', 'Ignore 255.'
    looks_at, kinds = ('config', 'labels'), ('pixels',)

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        yield self.report_at('model', 'of the config')

    def look_in_labels(self, labels: LabelFacts) -> Iterator[Finding]:
        yield self.report_at('ignore_index', labels.ignore_index)

    def certainty_given(self, finding: Finding, labels: LabelFacts) -> str:
        return POSSIBLE


@pytest.mark.parametrize(
    ('facts', 'evidence'),
    [
        (Facts(LabelFacts(ignore_index=0)), ['ignore_index = 0']),
        (Facts(LabelFacts(ignore_index=0, kind='instances')), []),
        (Facts(LabelFacts(ignore_index=0), ReadConfig({})), ["model = 'of the config'"]),
        (Facts(config=ReadConfig({})), ["model = 'of the config'"]),
    ],
)
def test_labels_show_a_mistake_of_a_config_where_there_is_none(facts: Facts, evidence: List[str]) -> None:
    assert [found.evidence for found in ZeroIgnored().find(facts)] == evidence


@pytest.mark.parametrize(
    ('ids', 'unordered'),
    [([], []), ([0, 1, 2], []), ([1, 2, 3], []), ([2, 3], [2, 3]), ([1, 3], [1, 3]), ([2, 1], [2, 1]), ([7], [7])],
)
def test_ids_that_count_from_0_or_1_are_in_order(ids: List[int], unordered: List[int]) -> None:
    assert AnnotationFacts(categories=dict.fromkeys(ids, 'a')).unordered_ids == unordered


def test_labels_above_the_last_class_may_be_ignored() -> None:
    counts = {-1: 1, 0: 1, 2: 1, 3: 1, 255: 1}
    assert LabelFacts(num_classes=3, ignore_index=255, histogram=counts).above_last == [3, 255]
    assert LabelFacts(num_classes=3, histogram=counts, coco=CocoFacts(spare=1)).above_last == [255]
