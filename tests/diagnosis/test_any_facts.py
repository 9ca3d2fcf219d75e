"""No facts crash the diagnosis, and its findings are in order, whatever they are."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Dict, List, Optional, Tuple, Type, get_args, get_origin, get_type_hints

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmguard.diagnosis import CAUSES, LabelFacts, diagnose
from mmguard.diagnosis.facts import AnnotationFacts, ConfigFacts, MapFacts
from mmguard.diagnosis.wording import findings_text, unpack

LABELS = st.one_of(st.integers(-3, 12), st.sampled_from([18, 19, 26, 33, 80, 90, 128, 150, 254, 255, 261, 2905442]))
NUMBERS = st.integers(0, 10**6)
WORDS = st.sampled_from([
    'mmseg', 'mmdet', 'background', 'cat', 'dog', '{x}', '', 'gray8', 'rgb', 'palette8', 'gray16', 'float', 'wrapped',
    'colours', 'label', 'box_no_area', 'box_new', 'category id', 'model.head.num_classes', 'model.head.class_weight',
    'x_gtFine_labelIds.png', 'all_void', 'OhemCrossEntropy', 'DINOHead', 'panoptic_head.num_things_classes', 'coco',
    'keys', 'labels', 'regions', 'count', 'unexpected', 'fractions', 'not finite', 'shape', 'form', 'unreadable',
])  # fmt: skip


def values_of(hint: Any) -> st.SearchStrategy:
    """Values of a type hint, of the kind that facts hold."""
    origin, args = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        return facts_of(hint)
    if origin is dict:
        keys = LABELS if args[0] is int else values_of(args[0])
        return st.dictionaries(keys, values_of(args[1]), max_size=4)
    if origin is list:
        return st.lists(values_of(args[0]), max_size=3)
    if origin is tuple:
        return st.tuples(*map(values_of, args))
    if type(None) in args:
        return st.none() | values_of(next(arg for arg in args if arg is not type(None)))
    return {int: NUMBERS, float: st.floats(0, 1), str: WORDS, bool: st.booleans()}[hint]


def facts_of(kind: Type[Any]) -> st.SearchStrategy:
    fields = {name: values_of(hint) for name, hint in get_type_hints(kind).items()}
    if kind is LabelFacts:
        fields.update(
            kind=st.sampled_from(['pixels', 'instances', 'voxels']),
            num_classes=st.sampled_from([1, 2, 3, 4, 11, 19, 80, 150]),
            ignore_index=st.none() | LABELS,
        )
    if kind is ConfigFacts:
        fields.update(
            ignore_index=st.dictionaries(WORDS, LABELS, max_size=3),
            label_map=st.dictionaries(LABELS, LABELS, max_size=3),
            head_classes=st.dictionaries(WORDS, st.integers(1, 12), max_size=3),
        )
    return st.builds(kind, **fields)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(facts_of(LabelFacts))
def test_any_facts_are_diagnosed(facts: LabelFacts) -> None:
    findings = diagnose(facts, CAUSES)
    likelihoods = [finding.likelihood for finding in findings]
    assert all(0 < likelihood <= 1 for likelihood in likelihoods)
    assert likelihoods == sorted(likelihoods, reverse=True)
    codes = [finding.code for finding in findings]
    assert len(set(codes)) == len(codes)
    if facts.values or facts.reasons:
        assert 'MG100' not in codes
    assert findings or not facts.values
    json.dumps([unpack(finding) for finding in findings])
    assert findings_text(findings).count('do: ') >= len(findings)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(LABELS, NUMBERS, max_size=6), st.sampled_from([2, 19, 150]), st.none() | LABELS)
def test_what_a_training_counts_is_diagnosed_alike_twice(
    values: Dict[int, int], num_classes: int, ignore_index: Optional[int]
) -> None:
    def found() -> List[Tuple[str, float]]:
        facts = LabelFacts(dict(values), num_classes, ignore_index)
        return [(finding.code, finding.likelihood) for finding in diagnose(facts, CAUSES)]

    assert found() == found()


def test_the_strategies_reach_every_field() -> None:
    for kind in (LabelFacts, MapFacts, AnnotationFacts, ConfigFacts):
        assert set(get_type_hints(kind)) == {field.name for field in dataclasses.fields(kind)}
