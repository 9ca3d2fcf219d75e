from __future__ import annotations

import pytest

from mmguard.diagnosis import CAUSES, LabelFacts, diagnose


@pytest.mark.parametrize(
    ('facts', 'code'),
    [
        (LabelFacts({24: 9, 26: 300, 33: 5}, 19, 255), 'MG101'),
        (LabelFacts({26: 300}, 19, 255), 'MG101'),
        (LabelFacts({24: 9, 26: 300, 33: 5, -1: 2}, 19, 255), 'MG101'),
        (LabelFacts({19: 40, 200: 7, 26: 3, 27: 1}, 19, 255), 'MG101'),
        (LabelFacts({11: 2503}, 11, 255), 'MG102'),
        (LabelFacts({150: 10}, 150, 255), 'MG102'),
        (LabelFacts({19: 10}, 19, 255), 'MG102'),
        (LabelFacts({255: 10}, 2, -100), 'MG103'),
        (LabelFacts({255: 10}, 1, -100), 'MG103'),
        (LabelFacts({255: 10}, 19, -100), 'MG104'),
        (LabelFacts({255: 10}, 11, 11), 'MG104'),
        (LabelFacts({-1: 10}, 19, 255), 'MG105'),
        (LabelFacts(dict.fromkeys(range(20, 90), 3), 19, 255), 'MG106'),
        (LabelFacts(dict.fromkeys(range(2, 255), 3), 2, 255), 'MG106'),
        (LabelFacts({200: 3}, 19, 255), 'MG107'),
        (LabelFacts({40: 3, 77: 2}, 19, 255), 'MG107'),
    ],
)
def test_the_likeliest_cause_comes_first(facts: LabelFacts, code: str) -> None:
    findings = diagnose(facts, CAUSES)
    assert findings[0].code == code
    assert [f.likelihood for f in findings] == sorted((f.likelihood for f in findings), reverse=True)


BLOOD = ['RBC', 'WBC', 'Platelets']


@pytest.mark.parametrize(
    ('facts', 'codes'),
    [
        (LabelFacts({2: 9}, 2, class_names=BLOOD, reasons={'label': 9}), ['MG108', 'MG107']),
        (LabelFacts({2: 9}, 3, class_names=BLOOD, reasons={'label': 9}), ['MG107']),
        (LabelFacts({7: 9}, 2, class_names=BLOOD, reasons={'label': 9}), ['MG107']),
        (LabelFacts({}, 2, class_names=BLOOD, reasons={'box_no_area': 1}), ['MG109']),
        (LabelFacts({2: 9}, 2, class_names=[], reasons={'label': 9, 'box_outside': 1}), ['MG107', 'MG109']),
        (LabelFacts({2: 1}, 2, class_names=[], reasons={'label': 1, 'box_outside': 9}), ['MG109', 'MG107']),
    ],
)
def test_causes_of_instances(facts: LabelFacts, codes: list) -> None:
    facts.kind = 'instances'
    assert [finding.code for finding in diagnose(facts, CAUSES)] == codes


def test_the_classes_that_the_head_lacks_are_named() -> None:
    (finding, _) = diagnose(LabelFacts({2: 9}, 2, class_names=BLOOD, reasons={'label': 9}, kind='instances'), CAUSES)
    assert 'lists 3 classes, the head knows 2. Too many for it: Platelets.' in finding.cause
    assert 'num_classes=3' in finding.advice


def test_no_invalid_value_no_finding() -> None:
    assert diagnose(LabelFacts({}, 19, 255), CAUSES) == []


def test_a_finding_says_what_was_seen_and_what_to_write() -> None:
    text = str(diagnose(LabelFacts({11: 2503}, 11, 255, files=4, offending_files=3), CAUSES)[0])
    assert 'value 11 (2,503 times) in 3 of 4 files' in text
    assert 'label_map={11: 255}' in text


def test_every_cause_has_its_own_stable_code_and_plain_words() -> None:
    codes = [cause.code for cause in CAUSES]
    assert len(set(codes)) == len(codes)
    for cause in CAUSES:
        assert cause.code.startswith('MG1')
        assert cause.__doc__


@pytest.mark.parametrize('cause', CAUSES, ids=lambda c: c.code)
def test_every_text_can_be_filled_in(cause: type) -> None:
    words = dict(num_classes=2, last=1, ignore_index=255, values='1, 2', classes=3, extra='cat')
    for text in (cause.summary, cause.advice):
        assert '{' not in text.format(**words).replace('{2: 255}', '').replace('{255: 1}', '').replace('{-1: 255}', '')
