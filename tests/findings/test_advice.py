"""Advice is in the words of who trained: OpenMMLab's config keys mean nothing in a loop of PyTorch, or to nnU-Net."""

from __future__ import annotations

import re
from typing import Dict, List, Type

import pytest

from mmguard.findings import LabelFacts
from mmguard.findings.advice import FRAMEWORKS, diagnose_for
from mmguard.findings.rule import Rule
from mmguard.findings.rules import RULES

#: What only MMSegmentation and MMDetection read.
OPENMMLAB_WORDS = re.compile(
    r'Guard\w+Labels|dict\(|metainfo|label_map=|reduce_zero_label|every head|LoadAnn|cat2label'
)
CASES: Dict[str, Dict[str, object]] = {
    'MG101': dict(values={24: 9, 33: 5, 28: 1}, num_classes=19),
    'MG102': dict(values={5: 90}, num_classes=5),
    'MG104': dict(values={255: 9}, num_classes=5, ignore_index=None),
    'MG105': dict(values={-1: 90}, num_classes=5),
    'MG106': dict(values=dict.fromkeys(range(30, 240, 3), 3), num_classes=5),
    'MG107': dict(values={77: 90, 9: 4}, num_classes=5),
    'MG117': dict(values={81: 9, 90: 4}, num_classes=80),
    'MG127': dict(values={77: 3}, num_classes=5, files=1000, offending_files=1),
    'MG137': dict(values={1000 * value: 9 for value in range(20, 60)}, num_classes=5),
}
BOXES = dict(kind='instances', values={}, reasons={'box_no_area': 9})


def facts_of(case: Dict[str, object], **more: object) -> LabelFacts:
    return LabelFacts(**{'total': 100000, 'files': 100, 'offending_files': 90, **case, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize('kind', ['pixels', 'instances'])
@pytest.mark.parametrize('code', CASES)
def test_no_loop_of_pytorch_is_advised_to_write_a_config(code: str, kind: str) -> None:
    facts = facts_of(CASES[code], kind=kind, reasons={'label': 90})
    found = diagnose_for('pytorch', facts)
    assert found
    assert [finding.code for finding in found] == [
        finding.code for finding in diagnose_for('openmmlab', facts) if finding.code in {f.code for f in found}
    ]
    if kind == 'pixels':
        assert found[0].code == code
        assert diagnose_for('openmmlab', facts)[0].code == code
    for finding in found:
        assert not OPENMMLAB_WORDS.search(finding.advice), finding
        assert '{' not in finding.advice.replace('{cat_id: i for', ''), finding
        if kind == 'instances':
            assert 'ignore_index' not in finding.advice, finding


def test_boxes_in_a_loop_of_pytorch() -> None:
    (finding,) = diagnose_for('pytorch', facts_of(BOXES))
    assert finding.code == 'MG109'
    assert 'guard_targets' in finding.advice
    assert not OPENMMLAB_WORDS.search(finding.advice)


def test_openmmlabs_words_are_there_to_be_found() -> None:
    """Else the tests above would say nothing."""
    seen = [OPENMMLAB_WORDS.search(diagnose_for('openmmlab', facts_of(case))[0].advice) for case in CASES.values()]
    assert sum(map(bool, seen)) > len(seen) / 2


@pytest.mark.parametrize('code', CASES)
def test_nnunet_reads_label_files_and_a_dataset_json(code: str) -> None:
    for finding in diagnose_for('nnunet', facts_of(CASES[code]), ['/data/Dataset001_A']):
        assert '`mmguard scan /data/Dataset001_A`' in finding.advice
        assert 'dataset.json' in finding.advice
        assert 'reprocess' in finding.advice
        assert not OPENMMLAB_WORDS.search(finding.advice)


def test_an_unknown_framework_is_taken_for_openmmlab() -> None:
    facts = facts_of(CASES['MG102'])
    assert set(FRAMEWORKS) == {'openmmlab', 'pytorch', 'nnunet'}
    assert diagnose_for('another', facts) == diagnose_for('openmmlab', facts)


#: Texts of a rule that no screen shows beside the others: the page and `mmguard explain CODE` do.
NOT_ON_A_SCREEN = ('why', '__doc__', '__module__')


def sentences(text: str) -> List[str]:
    """Of a text, code left out; ``Cityscapes: ...`` begins none."""
    text = re.sub(r'`[^`]*`', 'CODE', text)
    return [part for part in re.split(r'(?<=[.?!])\s+(?=[A-Z0-9(])', text.strip()) if part]


@pytest.mark.parametrize('rule', RULES, ids=lambda rule: rule.code)
def test_no_text_of_a_rule_has_more_than_three_sentences(rule: Type[Rule]) -> None:
    texts = [text for name, text in vars(rule).items() if isinstance(text, str) and name not in NOT_ON_A_SCREEN]
    assert [text for text in texts if len(sentences(text)) > 3] == []
