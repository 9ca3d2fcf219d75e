"""What is said of a dataset.json, against nnU-Net's own LabelManager where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nnunet_sets import LABELS, write_json

from mmguard.nnunet.format.spec import COUNT, KEYS, REGIONS, DatasetSpec, judge_count, read_spec
from mmguard.nnunet.format.spec import LABELS as LABEL_FAULTS

pytest.importorskip('nibabel')

REGION_LABELS = {'background': 0, 'whole': [1, 2], 'core': [2]}


def spec_of(root: Path, **changes: Any) -> DatasetSpec:
    write_json(root, **changes)
    return read_spec(str(root / 'dataset.json'))


@pytest.mark.parametrize(
    ('changes', 'kind', 'reported'),
    [
        (dict(labels=None), KEYS, 'labels is missing'),
        (dict(channel_names=None, file_ending=None), KEYS, 'channel_names, file_ending are missing'),
        (dict(channel_names=None, modality={'0': 'CT'}), KEYS, 'as in nnU-Net v1'),
        (dict(channel_names={'CT': 0}), KEYS, 'channel_names must map 0 to names'),
        (dict(channel_names={'0': 0}), KEYS, 'channel_names must map numbers to names'),
        (dict(channel_names=['CT']), KEYS, 'must be an object'),
        (dict(file_ending='nii.gz'), KEYS, 'must begin with a dot'),
        (dict(file_ending=7), KEYS, 'got 7'),
        (dict(labels=[0, 1]), LABEL_FAULTS, 'labels must be an object'),
        (dict(labels={'0': 'background', '1': 'liver'}), LABEL_FAULTS, 'as in nnU-Net v1'),
        (dict(labels={'liver': 1}), LABEL_FAULTS, '"background": 0 is missing'),
        (dict(labels={'Background': 0, 'liver': 1}), LABEL_FAULTS, '0 is called "Background"'),
        (dict(labels={'background': 1, 'liver': 2}), LABEL_FAULTS, 'background must be 0, got [1]'),
        (dict(labels={'background': [0], 'liver': 1}), LABEL_FAULTS, 'background must be 0, not a list, got [0]'),
        (dict(labels={'background': 0, 'a': 1, 'b': 4}), LABEL_FAULTS, 'without a gap, got 0, 1, 4'),
        (dict(labels={'background': 0, 'a': '1'}), LABEL_FAULTS, 'the label of "a" is \'1\': write the integer 1'),
        (dict(labels={'background': 0, 'a': 'one'}), LABEL_FAULTS, 'the label of "a" is \'one\', not an integer'),
        (dict(labels={'background': 0, 'a': True}), LABEL_FAULTS, 'the label of "a" is True'),
        (dict(labels={'background': 0, 'a': 1.5}), LABEL_FAULTS, 'the label of "a" is 1.5, not an integer'),
        (dict(labels={'background': 0, 'a': 1, 'b': 1}), LABEL_FAULTS, 'label 1 has 2 names: a, b'),
        (dict(labels={'background': 0, 'a': 1, 'ignore': 255}), LABEL_FAULTS, 'highest label + 1 = 2, got 255'),
        (dict(labels={'background': 0, 'ignore': 1, 'a': 2}), LABEL_FAULTS, 'without a gap'),
        (dict(labels={'background': 0, 'a': 1, 'ignore': [2]}), LABEL_FAULTS, 'must be one integer'),
        (dict(labels=REGION_LABELS), REGIONS, 'regions_class_order is missing'),
        (dict(labels=REGION_LABELS, regions_class_order=[1]), REGIONS, '1 entry, but labels declare 2 regions'),
        (dict(labels=REGION_LABELS, regions_class_order='12'), REGIONS, 'must be a list of integers'),
        (dict(labels=REGION_LABELS, regions_class_order=[1, 1]), REGIONS, 'has 1 for the region "core"'),
    ],
)
def test_a_fault_is_reported(changes: Dict[str, Any], kind: str, reported: str, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, **changes)
    assert any(reported in text for text in spec.faults[kind]), spec.faults


@pytest.mark.parametrize(
    'changes',
    [
        {},
        dict(labels={**LABELS, 'ignore': 3}),
        dict(labels=REGION_LABELS, regions_class_order=[1, 2]),
        dict(labels={'background': 0, 'whole': [1, 2, 3], 'kidney': [1], 'core': [2, 3], 'cyst': 3, 'ignore': 4},
             regions_class_order=[1, 1, 2, 3]),
    ],
)  # fmt: skip
def test_nothing_is_reported_of_what_is_right(changes: Dict[str, Any], tmp_path: Path) -> None:
    assert spec_of(tmp_path, **changes).faults == {}


@pytest.mark.parametrize('text', ['', '{', '[]', '"a"', '[' * 100_000, '{"labels": NaN}'])
def test_what_is_no_dataset_json_is_reported(text: str, tmp_path: Path) -> None:
    (tmp_path / 'dataset.json').write_text(text)
    assert read_spec(str(tmp_path / 'dataset.json')).faults


def test_a_name_that_stands_twice_is_reported(tmp_path: Path) -> None:
    (tmp_path / 'dataset.json').write_text('{"labels": {"background": 0, "a": 1, "a": 2}, "numTraining": 1}')
    assert any('"a"' in text for text in read_spec(str(tmp_path / 'dataset.json')).faults[KEYS])


@pytest.mark.parametrize(
    ('said', 'reported'), [(3, ''), (4, 'numTraining is 4, but 3 cases'), ('3', "must be an int, got '3'")]
)
def test_the_number_of_cases_is_compared(said: Any, reported: str, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, numTraining=said)
    judge_count(spec, 3)
    assert spec.faults.get(COUNT, ['']) == [''] if not reported else reported in spec.faults[COUNT][0]


NUMBERS = st.integers(-1, 4)
VALUES = st.one_of(NUMBERS, NUMBERS.map(str), st.lists(NUMBERS, max_size=3), st.none(), st.text(max_size=2))
NAMES = st.sampled_from(['background', 'ignore', 'a', 'b', 'c'])


@pytest.mark.usefixtures('nnunet')
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    labels=st.dictionaries(NAMES, VALUES, max_size=5),
    order=st.none() | st.lists(st.integers(0, 4), max_size=4),
)
def test_what_nnunet_refuses_is_reported(labels: Dict[str, Any], order: Any, tmp_path: Path) -> None:
    """Whatever makes its LabelManager, or its check of the labels, stop is a fault here."""
    import numpy as np
    from nnunetv2.utilities.label_handling.label_handling import LabelManager

    spec = spec_of(tmp_path, labels=labels, regions_class_order=order)
    reported = {kind for kind in spec.faults if kind in (LABEL_FAULTS, REGIONS)}
    content = json.loads((tmp_path / 'dataset.json').read_text())
    try:
        manager = LabelManager(content['labels'], regions_class_order=content.get('regions_class_order'))
        expected: List[int] = [int(label) for label in manager.all_labels]
        expected += [manager.ignore_label] if manager.has_ignore_label else []
        refused = not all(np.ediff1d(expected) == 1)
    except Exception:
        refused = True
    if refused:
        assert reported
    if not reported:
        assert tuple(expected) == spec.expected
