"""Which cause comes first, of values that a training counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Optional

import pytest
from example_facts import EXAMPLES

from mmguard.facts.labels import MapFacts
from mmguard.findings import LabelFacts, diagnose
from mmguard.findings.catalogue import find_rule
from mmguard.findings.engine import diagnose_for
from mmguard.findings.rules import RULES
from mmguard.findings.rules.labels.files import SizeMismatch
from mmguard.labels.tally import Tally

#: Values that a training counts, and the code of their likeliest cause.
COUNTED = [
    (LabelFacts({24: 9, 26: 300, 33: 5}, 19, 255), 'MG101'),
    (LabelFacts({24: 9, 26: 300, 33: 5, -1: 2}, 19, 255), 'MG101'),
    (LabelFacts({19: 40, 200: 7, 26: 3, 27: 1}, 19, 255), 'MG101'),
    (LabelFacts({11: 2503}, 11, 255), 'MG102'),
    (LabelFacts({150: 10}, 150, 255), 'MG119'),
    (LabelFacts({19: 10}, 19, 255), 'MG102'),
    (LabelFacts({255: 10}, 2, -100), 'MG103'),
    (LabelFacts({255: 10}, 19, -100), 'MG104'),
    (LabelFacts({255: 10}, 11, 11), 'MG104'),
    (LabelFacts({-1: 10}, 19, 255), 'MG105'),
    (LabelFacts(dict.fromkeys(range(20, 90), 3), 19, 255), 'MG106'),
    (LabelFacts(dict.fromkeys(range(2, 255), 3), 2, 255), 'MG106'),
    (LabelFacts({200: 3}, 19, 255), 'MG107'),
    (LabelFacts({40: 3, 77: 2}, 19, 255), 'MG107'),
    (LabelFacts({80: 3, 85: 2, 90: 1}, 80, 255), 'MG117'),
    (LabelFacts({171: 3, 181: 2}, 171, 255), 'MG117'),
    (LabelFacts({254: 3}, 19, 255), 'MG133'),
    (LabelFacts({24000: 3, 26003: 2}, 19, 255), 'MG137'),
    (LabelFacts({38: 3, 75: 2, 113: 1}, 5, 255), 'MG121'),
    (LabelFacts({128: 3, 64: 2}, 5, 255), 'MG121'),
]


@pytest.mark.parametrize(('facts', 'code'), COUNTED)
def test_the_likeliest_cause_comes_first(facts: LabelFacts, code: str) -> None:
    assert diagnose(facts)[0].code == code


def named(name: str, histogram: Optional[Dict[int, int]] = None) -> LabelFacts:
    """Two files of this name with ids of Cityscapes in them."""
    tallies = [Tally(99, 9, 0, {24: 9}, f'a/{name}'), Tally(99, 300, 0, {26: 300}, f'b/{name}')]
    return LabelFacts.from_tallies(
        tallies, 'pixels', num_classes=19, ignore_index=255, files=9, histogram=histogram or {}
    )


@pytest.mark.parametrize(
    ('facts', 'is_converted'),
    [
        (named('x_gtFine_labelTrainIds.png'), True),
        (named('x_gtFine_labelTrainIds.png', {0: 900, 7: 9, 24: 9, 26: 300}), True),
        (named('x_gtFine_labelTrainIds.png', {0: 9, 7: 900, 24: 9, 26: 300}), False),  # only the name is of train ids
        (named('x_gtFine_labelIds.png'), False),
        (named('x.png'), False),
    ],
)
def test_raw_ids_in_files_of_train_ids_are_those_that_were_not_converted(facts: LabelFacts, is_converted: bool) -> None:
    first = diagnose(facts)[0]
    assert first.code == 'MG101'
    assert ('label_map={24: 11, 26: 13}' in first.advice) == is_converted
    assert ('seg_map_suffix' in first.advice) != is_converted
    assert [file[:2] for file in first.files] == ['a/', 'b/']


BLOOD = ['RBC', 'WBC', 'Platelets']


@pytest.mark.parametrize(
    ('facts', 'codes'),
    [
        (LabelFacts({2: 9}, 2, class_names=BLOOD, reasons={'label': 9}), ['MG108']),
        (LabelFacts({7: 9}, 2, class_names=BLOOD, reasons={'label': 9}), ['MG107']),
        (LabelFacts({}, 2, class_names=BLOOD, reasons={'box_no_area': 1}), ['MG109']),
        (LabelFacts({2: 9}, 2, class_names=[], reasons={'label': 9, 'box_outside': 1}), ['MG102', 'MG109']),
        (LabelFacts({2: 1}, 2, class_names=[], reasons={'label': 1, 'box_outside': 9}), ['MG109', 'MG102', 'MG107']),
        (LabelFacts({-1: 1}, 2, class_names=[], reasons={'label': 1}), ['MG105']),
    ],
)
def test_causes_of_instances(facts: LabelFacts, codes: list) -> None:
    facts.kind = 'instances'
    assert [finding.code for finding in diagnose(facts)] == codes


def test_without_a_value_and_without_a_full_count_there_is_nothing_to_say() -> None:
    assert diagnose(LabelFacts({}, 19, 255)) == []
    assert diagnose(LabelFacts({}, 19, 255, total=4096, files=4)) == []


def test_a_finding_holds_the_values_that_show_it() -> None:
    (finding,) = diagnose(LabelFacts({11: 2503}, 11, 255, files=4, offending_files=3))
    assert finding.values == {11: 2503}


@pytest.mark.parametrize(
    ('label', 'image', 'title'),
    [
        ((64, 64), (90, 60), SizeMismatch.title_other),
        ((1080, 1920), (512, 512), SizeMismatch.title_other),
        ((333, 500), (375, 500), SizeMismatch.title_other),
        ((512, 1024), (1024, 2048), SizeMismatch.title),
        ((341, 512), (683, 1024), SizeMismatch.title),  # rounded
        ((600, 799), (48, 64), SizeMismatch.title),
        ((480, 640), (640, 480), SizeMismatch.title_swapped),
    ],
)
def test_a_label_of_other_proportions_is_no_copy(label: tuple, image: tuple, title: str) -> None:
    facts = LabelFacts({}, 3, 255, histogram={0: 9}, maps=MapFacts(size_mismatches=[('7.png', label, image)]))
    (found,) = [one for one in diagnose(facts) if one.code == 'MG130']
    assert found.title == title.format(number='1 file')


# ---- without OpenMMLab: the codes stay, whatever the advice is written for


def codes(framework: str, facts: LabelFacts) -> List[str]:
    return [finding.code for finding in diagnose_for(framework, facts, ['/data/Dataset001_A'])]


@pytest.mark.parametrize('kind', ['pixels', 'instances'])
@pytest.mark.parametrize(('facts', 'code'), COUNTED)
def test_a_framework_changes_no_order(facts: LabelFacts, code: str, kind: str) -> None:
    facts = replace(facts, kind=kind, reasons={'label': sum(facts.values.values())})
    everywhere, in_pytorch = codes('openmmlab', facts), codes('pytorch', facts)
    assert in_pytorch == [one for one in everywhere if one in in_pytorch]
    assert codes('nnunet', facts) == everywhere == codes('another', facts)
    if kind == 'pixels' and find_rule(code).pytorch:
        assert (in_pytorch[0], everywhere[0]) == (code, code)


@pytest.mark.parametrize('framework', ['openmmlab', 'pytorch', 'nnunet'])
def test_boxes_are_known_in_every_framework(framework: str) -> None:
    assert codes(framework, LabelFacts({}, 5, kind='instances', reasons={'box_no_area': 9})) == ['MG109']


@pytest.mark.parametrize('code', sorted(rule.code for rule in RULES if rule.pytorch and rule.code in EXAMPLES))
def test_the_words_of_every_advice_are_filled_in(code: str) -> None:
    found = [finding for finding in diagnose_for('pytorch', EXAMPLES[code]()) if finding.code == code]
    assert [finding.code for finding in found] == [code]
    assert '{' not in found[0].advice.replace('label_map={', '')


@pytest.mark.parametrize('counts', [{-1: 26}, {-1: 3, -2: 9}])
def test_only_pixels_below_0_may_be_ignored(counts: Dict[int, int]) -> None:
    for kind, of_pixels in (('pixels', True), ('instances', False)):
        [finding] = diagnose(LabelFacts(counts, 2, kind=kind), rules=[find_rule('MG105')])
        assert ('label_map' in finding.advice) == of_pixels
