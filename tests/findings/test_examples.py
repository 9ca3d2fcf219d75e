"""Every cause has an example that its own code, and no other, explains best."""

from __future__ import annotations

import re
from typing import Any, Dict, List

import pytest
from example_facts import EXAMPLES, detection, even, instances, pixels, segmentation
from volume_facts import OTHER_VOLUMES, voxels

from mmguard.facts.labels import ConfigFacts
from mmguard.facts.volumes import UNREADABLE, CaseFault
from mmguard.findings import LabelFacts, diagnose
from mmguard.findings.plugins import list_own_rules
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.rules.labels.gray import BinaryMask

FIRST = {code: diagnose(example())[0] for code, example in EXAMPLES.items()}


def codes(facts: LabelFacts) -> List[str]:
    return [finding.code for finding in diagnose(facts)]


def test_every_rule_has_its_own_stable_code_and_one_about_labels_an_example() -> None:
    listed = [rule.code for rule in list_own_rules() if issubclass(rule, DataRule) or rule.code.startswith('MG1')]
    assert listed == sorted(set(listed))
    assert listed == sorted({*EXAMPLES, 'MG384'})  # MG384 compares an option, which facts about labels do not hold
    codes_of_all = [rule.code for rule in list_own_rules()]
    assert len(codes_of_all) == len(set(codes_of_all))
    for rule in list_own_rules():
        assert re.fullmatch(r'MG[1-5]\d\d', rule.code)
        assert rule.why


@pytest.mark.parametrize(('said', 'found'), [(2, ['MG384']), (3, []), (None, [])])
def test_an_option_that_dataset_json_contradicts_is_a_finding(said: Any, found: List[str]) -> None:
    facts = voxels({0: 40_000_000, 1: 900_000, 2: 70_000})
    assert [one.code for one in diagnose(facts, options={'num_classes': said}) if one.severity != 'info'] == found


@pytest.mark.parametrize('code', sorted(EXAMPLES))
def test_its_own_code_comes_first(code: str) -> None:
    assert FIRST[code].code == code


@pytest.mark.parametrize('trained', [None, even(0)])
@pytest.mark.parametrize('ignore_index', [255, -100, 0])
def test_foreground_255_is_never_ignored(ignore_index: int, trained: Any) -> None:
    facts = pixels({0: 900, 255: 100}, 2, ignore_index=ignore_index, trained=trained)
    finding = diagnose(facts)[0]
    assert finding.code == 'MG103'
    options = [dict(edit.options) for edit in BinaryMask().edits(finding, Facts(facts))]
    assert any(dict(option['label_map']) == {255: 1} for option in options)
    assert not any(option.get('ignore_index') == 255 for option in options)


# ---- nothing wrong


COCO_LIKE = {'categories': {1: 'cat', 2: 'dog', 3: 'cow'}, 'images_without_target': 1}

#: Files and configs without a fault are in situations/clean_sets.py.
CLEAN: Dict[str, LabelFacts] = {
    'one class, sigmoid': pixels(even(0), 1),
    'one file of one class': pixels(even(3), 19, files=1),
    'potsdam, reduced, without 0': pixels(even(*range(1, 7)), 6, reduce_zero_label=True),
    '16 bits, read by mmseg': pixels(
        even(0, 1, 2), 3, maps={'forms': {'gray16': 200}}, config=segmentation(3)
    ),
    'foreground mapped': pixels(even(0, 255), 2, trained=even(0, 1)),
    'coco, one of its classes': instances(even(0), 1, COCO_LIKE, config=detection(1, 'dog')),
    'panoptic': instances(
        even(0, 1, 2),
        3,
        config=ConfigFacts(
            'mmdet',
            {'model.panoptic_head.num_things_classes': 2, 'model.panoptic_head.num_stuff_classes': 1},
            dataset_classes={'train': ['cat', 'dog', 'cow']},
        ),
    ),
    'rpn beside the head': instances(
        even(0, 1, 2),
        3,
        config=ConfigFacts(
            'mmdet', {'model.rpn_head.num_classes': 1, 'model.roi_head.bbox_head.num_classes': 3},
            dataset_classes={'train': ['cat', 'dog', 'cow']},
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize('name', sorted(CLEAN))
def test_clean_labels_get_the_verdict_alone(name: str) -> None:
    (finding,) = diagnose(CLEAN[name])
    assert (finding.code, finding.severity) == ('MG100', 'info')


def test_a_missing_label_file_is_not_called_unreadable() -> None:
    maps = {'missing_labels': ['a.png'], 'unreadable': {'missing': ['a.png']}}
    assert codes(pixels(even(0, 1, 2), 3, maps=maps)) == ['MG129']
    assert 'MG132' in codes(pixels(even(0, 1, 2), 3, maps={'unreadable': {'truncated': ['a.png']}}))


NAMES = [f'{number:02}.png' for number in range(20)]
CUT_OFF: Dict[str, Any] = dict(
    unreadable={'truncated': NAMES, 'empty': ['a.png']}, counts={'unreadable truncated': 1200}
)
TWICE = [
    CaseFault('case_003', 'labelsTr/case_003.nii.gz', detail) for detail in ('truncated: it ends early', 'damaged: crc')
]


@pytest.mark.parametrize(
    ('facts', 'number', 'left'),
    [
        (pixels(even(0, 1), 2, maps={'unreadable': {'truncated': ['a.png', 'b.png']}}), '2', ''),
        (pixels(even(0, 1), 2, maps=CUT_OFF), '1,201', '1,197'),
        (instances(even(0), 1, {'unreadable': {'cannot be opened': ['a.xml', 'b.xml']}}), '2', ''),
        (instances(even(0), 1, {'unreadable': {'cannot be opened': [*NAMES, 'and 1,480 more']}}), '1,500', '1,497'),
        (voxels({0: 9}, *((UNREADABLE, fault) for fault in TWICE)), '1', ''),
    ],
)
def test_the_title_counts_the_files_that_cannot_be_read(facts: LabelFacts, number: str, left: str) -> None:
    (found,) = [finding for finding in diagnose(facts) if finding.code == 'MG132']
    assert found.title.startswith(f'Files cannot be read: {number} (')
    assert (f'and {left} more' in found.evidence) == bool(left)
    assert len(set(found.files)) == len(found.files)


def test_evidence_counts_one_palette_png_that_is_read_as_colors() -> None:
    maps = {'forms': {'palette8': 1}, 'loaded_otherwise': {'colors': 1}}
    facts = pixels({0: 900, 1: 9, 2: 9}, 3, files=1, trained={0: 900, 38: 9, 75: 9}, maps=maps)
    (evidence,) = [found.evidence for found in diagnose(facts) if found.code == 'MG121']
    assert re.findall('1 (palette PNGs?|files? that the loader reads as colors)', evidence) == [
        'palette PNG', 'file that the loader reads as colors',
    ]  # fmt: skip


# ---- other shapes of a cause


@pytest.mark.parametrize(
    ('facts', 'code'),
    [
        # ids
        (instances(even(1, 2, 3), 3), 'MG115'),
        (pixels(even(0, 1, 2, 4), 4), 'MG116'),
        (pixels(even(7, 11, 23), 3, maps={'examples': {23: ['a/x_gtFine_labelIds.png']}}), 'MG101'),
        (pixels(even(0, 24000, 26003), 19, maps={'examples': {24000: ['x_gtFine_instanceIds.png']}}), 'MG137'),
        (pixels({0: 10**6, 1: 10**6, 2: 5}, 2, offending_files=1), 'MG127'),
        # masks
        (pixels({0: 900, 255: 100}, 19), 'MG103'),
        (pixels({0: 900, 255: 100}, 1), 'MG103'),
        (pixels(even(0, 127, 255), 3, ignore_index=-100), 'MG125'),
        # One output channel with a sigmoid: no edit may ignore all but the background.
        (pixels(even(0, 90, 180), 1), 'MG125'),
        (pixels(even(0, 29, 76, 150, 255), 5), 'MG125'),
        (pixels(even(0, 38, 75, 113), 4), 'MG121'),
        (LabelFacts({1: 9}, 1, 255), 'MG215'),
        (pixels(even(0, 1), 2, maps={'forms': {'rgba': 200}}), 'MG120'),
        (pixels(even(0, 1), 2, maps={'forms': {'gray_alpha': 200}}), 'MG580'),
        (pixels(even(0, 1, 2), 12, trained=even(0, 128, 64), maps={'forms': {'palette8': 200}}), 'MG121'),
        (pixels(even(0, 1), 2, trained=even(0), maps={'forms': {'gray16': 200}}, config=segmentation(2)), 'MG122'),
        (pixels(even(0), 3, maps={'forms': {'float': 200}}), 'MG123'),
        (pixels(even(0, 1), 2, maps={'lossy': 3}), 'MG136'),
        (pixels({0: 9000, 1: 900, 255: 90, 77: 3, 130: 3, 201: 2}, 2, maps={'at_edges': 0.97}), 'MG136'),
        (pixels({0: 90_000, 1: 9_000, **even(*range(2, 40), count=3)}, 2), 'MG136'),
        (pixels(even(255), 3), 'MG128'),
        (pixels(even(0, 255), 3, maps={'all_void': ['a']}, config=segmentation(3)), 'MG103'),
        # zero
        (pixels({0: 900, 1: 50, 2: 50}, 2, reduce_zero_label=True), 'MG124'),
        (LabelFacts({}, 3, 255, class_names=['background', 'a', 'b'],
                    config=ConfigFacts('mmseg', reduce_zero_label={'train': True})), 'MG124'),
        # annotations
        (instances(even(0, 1), 3, config=detection(6, 'person')), 'MG140'),
        (instances({}, 3, {'images': 9, 'small_images': 9, 'annotations': 12}), 'MG174'),
        (instances(even(0, 1, 2), 3, {'inside_unit': 15_000}), 'MG172'),
        (pixels(even(0, 1, 2), 3, trained=even(0, 17, 34), maps={'loaded_otherwise': {'scaled': 200}}), 'MG122'),
        (instances({}, 1, {'format': 'voc', 'left_out_names': {'person': 9}}, class_names=['Person']), 'MG140'),
        (instances(even(0), 1, config=ConfigFacts('mmdet', dataset_classes={'train': list('person')})), 'MG140'),
        *((facts, code) for code, facts in OTHER_VOLUMES if code in EXAMPLES),
    ],
)  # fmt: skip
def test_the_same_causes_in_other_shapes(facts: LabelFacts, code: str) -> None:
    assert codes(facts)[0] == code


#: The verdict itself: no other finding about labels leaves it standing.
NOT_THE_LABELS = {'MG100'}


@pytest.mark.parametrize('code', sorted(EXAMPLES))
def test_the_verdict_is_given_only_where_nothing_speaks_against_the_labels(code: str) -> None:
    assert ('MG100' in codes(EXAMPLES[code]())) == (code in NOT_THE_LABELS)
