"""No facts crash the diagnosis, and its findings are in order, whatever they are."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Dict, List, Optional, Tuple, Type, get_args, get_origin, get_type_hints

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from volume_facts import HAS_NNUNET

from mmguard.commands.env import describe_environment
from mmguard.facts.environment import DISTRIBUTIONS, EnvironmentFacts
from mmguard.facts.labels import AnnotationFacts, ConfigFacts
from mmguard.facts.run import KILLED, MISSED_ANOTHER, RAISED, UNCLEAR, RankFacts, RunFacts
from mmguard.findings import LabelFacts, diagnose
from mmguard.findings.catalogue import find_rule
from mmguard.findings.finding import CERTAINTIES
from mmguard.findings.messages import format_findings, unpack
from mmguard.findings.order import sort_key

LABELS = st.one_of(st.integers(-3, 12), st.sampled_from([18, 19, 26, 33, 80, 90, 128, 150, 254, 255, 261, 2905442]))
NUMBERS = st.integers(0, 10**6)
WORDS = st.sampled_from([
    'mmseg', 'mmdet', 'background', 'cat', 'dog', '{x}', '', 'gray8', 'rgb', 'palette8', 'gray16', 'float', 'wrapped',
    'colors', 'label', 'box_no_area', 'box_new', 'category id', 'model.head.num_classes', 'model.head.class_weight',
    'x_gtFine_labelIds.png', 'all_void', 'OhemCrossEntropy', 'DINOHead', 'panoptic_head.num_things_classes', 'coco',
    'keys', 'labels', 'regions', 'count', 'unexpected', 'fractions', 'not finite', 'shape', 'form', 'unreadable',
])  # fmt: skip


MODULES = st.sampled_from(list(DISTRIBUTIONS))
VERSIONS = st.sampled_from(['', '1.7.1', '1.26.4', '2.0.0rc4', '2.1.0', '2.2.0', '2.9.0+cu128', '11.8', '12.1', 'dev'])
ERRORS = st.sampled_from([
    '', 'ImportError: libGL.so.1', 'numpy.dtype size changed', 'MMCV==2.2.0 is used', 'AbsentRankError: is gone',
    'rank 0 skipped this collective', 'Expected to have finished reduction', 'ranks differ in their losses', 'a\nb',
])  # fmt: skip


def values_of(hint: Any) -> st.SearchStrategy:
    """Values of a type hint, of the kind that facts hold."""
    origin, args = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint) or hasattr(hint, '_fields'):
        return facts_of(hint)
    if origin is dict:
        keys = LABELS if args[0] is int else values_of(args[0])
        return st.dictionaries(keys, values_of(args[1]), max_size=4)
    if origin is list:
        return st.lists(values_of(args[0]), max_size=3)
    if origin is tuple and args[1:] == (...,):
        return st.lists(values_of(args[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, args))
    if type(None) in args:
        return st.none() | values_of(next(arg for arg in args if arg is not type(None)))
    anything = NUMBERS | WORDS | st.dictionaries(WORDS, NUMBERS | WORDS | st.lists(NUMBERS), max_size=4)
    return {int: NUMBERS, float: st.floats(0, 1), str: WORDS, bool: st.booleans(), Any: anything}[hint]


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
    if kind is EnvironmentFacts:
        fields.update(
            python=VERSIONS,
            versions=st.dictionaries(st.sampled_from(sum(DISTRIBUTIONS.values(), ())), VERSIONS, max_size=8),
            missing=st.lists(MODULES, max_size=4, unique=True),
            errors=st.dictionaries(MODULES | st.just('mmcv.ops'), ERRORS, max_size=3),
        )
    if kind is RankFacts:
        fields.update(ending=st.sampled_from([RAISED, MISSED_ANOTHER, KILLED, UNCLEAR]), error=ERRORS)
    return st.builds(kind, **fields)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(facts_of(LabelFacts))
@example(LabelFacts({}, 2, kind='instances', annotations=AnnotationFacts(unreadable={'x': ['a']}, record_advice='{x}')))
def test_any_facts_are_diagnosed(facts: LabelFacts) -> None:
    findings = diagnose(facts)
    assert findings == sorted(findings, key=sort_key)
    assert {finding.certainty for finding in findings} <= set(CERTAINTIES)
    for finding in findings:
        assert set(finding.follows) <= set(find_rule(finding.code).follows), 'facts only narrow what follows'
    codes = [finding.code for finding in findings]
    assert len(set(codes)) == len(codes)
    if facts.values or facts.reasons:
        assert 'MG100' not in codes
    assert findings or not facts.values or (facts.kind == 'voxels' and not HAS_NNUNET)
    json.dumps([unpack(finding) for finding in findings])
    assert format_findings(findings).count('do: ') >= len(findings)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(LABELS, NUMBERS, max_size=6), st.sampled_from([2, 19, 150]), st.none() | LABELS)
def test_what_a_training_counts_is_diagnosed_alike_twice(
    values: Dict[int, int], num_classes: int, ignore_index: Optional[int]
) -> None:
    def found() -> List[Tuple[str, str]]:
        facts = LabelFacts(dict(values), num_classes, ignore_index)
        return [(finding.code, finding.certainty) for finding in diagnose(facts)]

    assert found() == found()


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(facts_of(EnvironmentFacts), facts_of(RunFacts), st.lists(facts_of(RankFacts), max_size=3))
def test_any_environment_and_any_run_are_diagnosed(
    environment: EnvironmentFacts, run: RunFacts, ranks: List[RankFacts]
) -> None:
    findings = diagnose(environment=environment, run=run, ranks=tuple(ranks))
    json.dumps([unpack(finding) for finding in findings])
    assert format_findings(findings).count('do:') >= len(findings)
    assert all(describe_environment(environment).values())
    for finding in findings:
        for edit in finding.edits:
            again = diagnose(environment=environment.apply_changes(edit.environment), run=run, ranks=tuple(ranks))
            assert not [one for one in again if one.code == finding.code and set(one.places) & set(finding.places)]
