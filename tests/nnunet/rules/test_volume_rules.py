"""Causes in data sets of volumes, from facts, and in logs of nnU-Net."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, List

import numpy as np
import pytest
from example_facts import EXAMPLES
from put_file import put
from volume_facts import voxels

from mmguard.cli import main
from mmguard.facts.volumes import INTENSITIES, CaseFault
from mmguard.findings import diagnose
from mmguard.findings.catalogue import find_rule
from mmguard.findings.finding import ERROR, LIKELY
from mmguard.findings.order import sort_key


@pytest.mark.parametrize(
    'counts',
    [
        {0: 9_000_000, 1: 90_000, 4: 50_000},  # BraTS: 4 is the third class
        {0: 9_000_000, 205: 40_000, 420: 50_000},
        {0: 9_000_000, 2: 40_000, 3: 50_000},  # one too high
    ],
)
def test_a_class_whose_number_was_not_changed_is_not_missing(counts: dict) -> None:
    assert [finding.code for finding in diagnose(voxels(counts))] == ['MG185']


@pytest.mark.parametrize('counts', [{0: 9_000_000, 1: 90_000, 7: 12}, {0: 9_000_000, 5: 50_000}])
def test_a_slip_or_one_value_of_several_does_not_explain_a_missing_class(counts: dict) -> None:
    assert 'MG135' in [finding.code for finding in diagnose(voxels(counts))]


def test_intensities_explain_a_missing_class() -> None:
    fault = CaseFault('case_003', 'labelsTr/case_003.nii.gz', 'more than 256 values', voxels=9_000_000)
    assert [found.code for found in diagnose(voxels({0: 9_000_000, 1: 90_000}, (INTENSITIES, fault)))] == ['MG196']


def test_five_stray_voxels_are_counted_one_by_one() -> None:
    found = diagnose(voxels({0: 40_000_000, 1: 900_000, **dict.fromkeys(range(11, 16), 1)}))
    (evidence,) = [one.evidence for one in found if one.code == 'MG185']
    counts = ['value 11: 1 voxel in 1 label file', '; 1 more value']
    assert [count for count in counts if count not in evidence or f'{count}s' in evidence] == []


#: Rules of volumes among those of mmguard that they precede.
ORDER = ['MG180', 'MG181', 'MG182', 'MG196', 'MG132', 'MG185', 'MG188', 'MG187', 'MG193', 'MG135', 'MG197']


def test_rules_of_volumes_are_ordered_among_the_others() -> None:
    found = [diagnose(EXAMPLES[code](), rules=[find_rule(code)])[0] for code in (*sorted(ORDER), 'MG195', 'MG100')]
    ranked = sorted((replace(one, certainty=LIKELY, severity=ERROR) for one in found), key=sort_key)
    assert [one.code for one in ranked[:-2]] == ORDER
    assert all(one.is_verdict for one in ranked[-2:])


def log(epochs: int, nan_in: Callable[[int], List[int]]) -> str:
    """A log of nnU-Net in which some of two classes (from 1) have nan in an epoch."""
    lines = []
    for epoch in range(epochs):
        dice = ', '.join('nan' if label in nan_in(epoch) else f'0.{label}{epoch % 10}' for label in (1, 2))
        stamp = f'2026-01-01 12:{epoch:02d}:00.123456: '
        lines += [f'{stamp}Epoch {epoch}', f'{stamp}train_loss -0.5', f'{stamp}val_loss -0.6']
        lines += [f'{stamp}Pseudo dice [{dice}]']
    return '\n'.join(lines)


def write_volumes(root: Path, cases: int, with_tumor: int) -> str:
    """Write a data set of nnU-Net of which some cases have a tumor."""
    image = pytest.importorskip('PIL.Image')
    for number in range(cases):
        label = np.zeros((20, 24), np.uint8)
        label[2:8, 2:8], label[10:14, 10:14] = 1, 2 * (number < with_tumor)
        picture = np.random.default_rng(number).integers(0, 256, (20, 24, 3), dtype=np.uint8)
        for folder, name, array in (('imagesTr', f's_{number}_0000', picture), ('labelsTr', f's_{number}', label)):
            (root / folder).mkdir(parents=True, exist_ok=True)
            image.fromarray(array).save(root / folder / f'{name}.png')
    channels = {str(place): name for place, name in enumerate('RGB')}
    labels = dict(background=0, organ=1, tumor=2)
    content = dict(channel_names=channels, labels=labels, numTraining=cases, file_ending='.png')
    (root / 'dataset.json').write_text(json.dumps(content))
    return str(root)


@pytest.mark.parametrize(
    ('missing', 'with_tumor', 'standing', 'more'),
    [
        ([2], 2, 'confirmed', 'tumor (2) in 2 cases'),
        ([1], 2, 'possible', ''),  # a class that all cases have
        ([2], 6, 'possible', ''),  # more cases than folds: a fold may still be without
    ],
)
def test_a_class_that_few_cases_have_is_named(
    missing: List[int], with_tumor: int, standing: str, more: str, tmp_path: Path, capsys: Any
) -> None:
    path = put(tmp_path / 'training_log.txt', log(25, lambda epoch: missing))
    data = write_volumes(tmp_path / 'Dataset012_Rare', 12, with_tumor)
    assert main(['explain', str(path), '--data', data, '--json', '-']) == 1
    record = json.loads(capsys.readouterr().out)
    assert [(one['key'], one['standing']) for one in record['causes']] == [('fold', standing)]
    assert main(['explain', str(path), '--data', data]) == 1
    text = ' '.join(capsys.readouterr().out.split())
    assert more in text
    assert ('found: MG197 ' in text) is bool(more)


def test_a_class_that_few_cases_have_is_named_if_it_is_nan_in_some_epochs(tmp_path: Path, capsys: Any) -> None:
    path = put(tmp_path / 'training_log.txt', log(25, lambda epoch: [2] * (epoch > 9)))
    data = write_volumes(tmp_path / 'Dataset012_Rare', 12, 1)
    assert main(['explain', str(path), '--data', data]) == 0
    assert 'tumor (2) in 1 case.' in ' '.join(capsys.readouterr().out.split())
