"""A config is whatever somebody wrote: no value of any kind at any place makes a rule raise."""

from __future__ import annotations

from typing import Any, List, Tuple

import pytest
from changed_configs import CASCADE, DINO, PANOPTIC_FPN, PIDNET, SEG_MASK2FORMER, changed
from hypothesis import given, settings
from hypothesis import strategies as st

from mmguard.findings.config_facts import facts_of_config
from mmguard.findings.engine import diagnose
from mmguard.findings.finding import Finding
from mmguard.findings.rules.config import CONFIG_RULES as RULES
from mmguard.findings.wording import unpack

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')

BASES = (PIDNET, SEG_MASK2FORMER, CASCADE, DINO, PANOPTIC_FPN)
#: What has to do with labels is hit more often than by chance.
PLACES = ('type', 'class', 'ignore', 'loss', 'head', 'pipeline', 'dataset', 'metainfo', 'reduce', 'evaluator', 'label')
JUNK: List[Any] = [
    None,
    True,
    0,
    -1,
    255,
    1.5,
    float('nan'),
    '',
    'car',
    'no.such.Type',
    'mmdet.',
    [],
    [None],
    ['a', 1],
    {},
    {'type': None},
    {'type': 'CrossEntropyLoss', 'class_weight': [0, 'x']},
    {'type': 'GuardSegLabels', 'num_classes': 'many', 'label_map': {'a': None}},
    {1: 2},
    [[1]],
    {'classes': None},
    {'classes': 3},
    {'classes': [1, None]},
    {'classes': ('a', 'a')},
    object,
    (1, 2),
]


def places_of(value: Any, path: str = '') -> List[Tuple[str, Any]]:
    found = []
    if isinstance(value, dict):
        pairs = [(f'{path}.{key}' if path else str(key), inner) for key, inner in value.items()]
    elif isinstance(value, list):
        pairs = [(f'{path}[{index}]', inner) for index, inner in enumerate(value)]
    else:
        pairs = []
    for inner_path, inner in pairs:
        found.append((inner_path, inner))
        found += places_of(inner, inner_path)
    return found


DICTS = {base: {path for path, value in places_of(changed(base, {}).data) if isinstance(value, dict)} for base in BASES}
ALL_PLACES = {
    base: [path for path, _ in places_of(changed(base, {}).data) if any(word in path for word in PLACES)]
    for base in BASES
}
EXTRA = ('metainfo', 'class_weight', 'ignore_index', 'num_classes', 'reduce_zero_label', 'filter_cfg', 'type')


@settings(max_examples=50, deadline=None)  # `make fuzz` draws as many configs as one likes
@given(data=st.data())
def test_no_rule_raises(data):
    base = data.draw(st.sampled_from(BASES))
    path = data.draw(st.sampled_from(ALL_PLACES[base]))
    junk = data.draw(st.sampled_from(JUNK))
    changes = {path: junk}
    # A second argument beside it, where there is a dict to take one.
    parent = path.rpartition('.')[0]
    if parent in DICTS[base]:
        changes[f'{parent}.{data.draw(st.sampled_from(EXTRA))}'] = data.draw(st.sampled_from(JUNK))
    config = changed(base, changes)
    found = diagnose(config=config, rules=RULES)
    assert all(isinstance(finding, Finding) and str(finding) and unpack(finding) for finding in found)
    facts_of_config(config)
