"""Data sets of every kind that nnU-Net knows: clean ones, as it agrees, and one with faults of many kinds."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy as np
import pytest

pytest.importorskip('nibabel')
pytest.importorskip('SimpleITK')

from label_files import write
from nnunet_sets import CLEAN, LABELS, PLANTED, Planted, make_set, organ, picture, plant, save, write_json

from mmguard.cli import main

REGIONS = {'background': 0, 'whole': [1, 2, 3], 'core': [2, 3], 'enhancing': 3}


def float_labels(root: Path) -> Path:
    make_set(root)
    save(root / 'labelsTr' / 'case_000.nii.gz', organ(dtype=np.float64))
    return root


def png(root: Path) -> Path:
    for number in range(2):
        colors = np.stack([picture(number, (10, 12), np.uint8)] * 3, axis=-1)
        write(root / 'imagesTr' / f'street_{number}_0000.png', colors)
        label = np.zeros((10, 12), np.uint8)
        label[2:5, 2:5], label[6:8, 6:8] = 1, 2
        write(root / 'labelsTr' / f'street_{number}.png', label)
    write_json(root, channel_names={'0': 'R', '1': 'G', '2': 'B'}, numTraining=2, file_ending='.png')
    return root


def elsewhere(root: Path) -> Path:
    """Files named in dataset.json, in folders of their own."""
    made = make_set(root / 'files', channels=1)
    content = json.loads((made / 'dataset.json').read_text())
    content['dataset'] = {
        f'case_{number:03d}': {
            'images': [f'files/imagesTr/case_{number:03d}_0000.nii.gz'],
            'label': str(made / 'labelsTr' / f'case_{number:03d}.nii.gz'),
        }
        for number in range(3)
    }
    write_json(root, **content)
    return root


def one_slice(root: Path) -> Path:
    make_set(root, cases=1, channels=1)
    save(root / 'imagesTr' / 'case_000_0000.nii.gz', picture(0, (12, 10, 1)))
    label = organ()
    save(root / 'labelsTr' / 'case_000.nii.gz', np.ascontiguousarray(label[:, :, 1:2]))
    write_json(root, channel_names={'0': 'CT'}, numTraining=1, labels={'background': 0, 'liver': 1})
    return root


KINDS: Dict[str, Callable[[Path], Path]] = {
    'plain': make_set,
    'int16': partial(make_set, image_dtype=np.int16, channels=1),
    'nii': partial(make_set, ending='.nii'),
    'regions': partial(make_set, values=(1, 2, 3), labels=REGIONS, regions_class_order=[1, 2, 3]),
    'ignore': partial(make_set, values=(1, 2, 3), labels={**LABELS, 'ignore': 3}),
    'float labels': float_labels,
    'nibabel': partial(make_set, overwrite_image_reader_writer='NibabelIO'),
    'png': png,
    'elsewhere': elsewhere,
    'one slice': one_slice,
}


@pytest.fixture(scope='module', params=list(KINDS))
def clean(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return KINDS[request.param](tmp_path_factory.mktemp('clean') / 'Dataset007_Clean')


def test_nothing_is_found(clean: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = tmp_path / 'reported.json'
    code = main(['scan', str(clean), '--processes', '1', '--json', str(out)])
    [reported] = json.loads(out.read_text())['datasets']
    assert reported['findings'][0]['code'] == 'MG195', capsys.readouterr().out
    assert [finding['severity'] for finding in reported['findings']] == ['info']
    assert code == 0
    assert 'faults' not in reported['facts']['volumes']


def test_nnunet_agrees(clean: Path, capsys: pytest.CaptureFixture) -> None:
    """By the functions of its check; the whole of it starts processes."""
    pytest.importorskip('nnunetv2')
    from nnunetv2.experiment_planning.verify_dataset_integrity import check_cases, verify_labels
    from nnunetv2.imageio.reader_writer_registry import determine_reader_writer_from_dataset_json
    from nnunetv2.utilities.label_handling.label_handling import LabelManager
    from nnunetv2.utilities.utils import get_filenames_of_train_images_and_targets

    from mmguard.nnunet.format import CaseSource

    source = CaseSource(str(clean))
    content = json.loads((clean / 'dataset.json').read_text())
    dataset = get_filenames_of_train_images_and_targets(str(clean), content)
    assert sorted(dataset) == [case.case for case in source.listing.cases]
    first = dataset[next(iter(dataset))]['images'][0]
    reader = determine_reader_writer_from_dataset_json(content, first)
    assert reader.__name__ == source.reader
    manager = LabelManager(content['labels'], regions_class_order=content.get('regions_class_order'))
    expected: List[int] = [int(label) for label in manager.all_labels]
    expected += [manager.ignore_label] if manager.has_ignore_label else []
    assert tuple(expected) == source.spec.expected
    for entry in dataset.values():
        assert verify_labels(entry['label'], reader, expected)
        assert check_cases(list(entry['images']), entry['label'], len(content['channel_names']), reader)
    said = capsys.readouterr().out
    assert 'mismatch' not in said


# ---- a set with faults of many kinds: all are named; the check of nnU-Net stops at the first


@pytest.fixture(scope='module')
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plant(tmp_path_factory.mktemp('nnunet') / 'Dataset001_Planted')


@pytest.fixture(scope='module')
def reported(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Any]:
    out = tmp_path_factory.mktemp('out')
    words = ['scan', str(planted), '--processes', '1']
    assert main([*words, '--json', str(out / 'reported.json')]) == 1
    [dataset] = json.loads((out / 'reported.json').read_text())['datasets']
    return dataset


@pytest.mark.parametrize('fault', PLANTED, ids=lambda fault: fault.case)
def test_each_fault_is_named_with_its_file_and_voxels(fault: Planted, reported: Dict[str, Any]) -> None:
    found = [
        (kind, entry)
        for kind, entries in reported['facts']['volumes']['faults'].items()
        for entry in entries
        if entry['case'] == fault.case
    ]
    assert [(kind, entry['file']) for kind, entry in found] == [(fault.kind, fault.file)], 'this one, and no other'
    [(_, entry)] = found
    assert fault.reported in entry['detail']
    if fault.voxels >= 0:
        assert entry.get('voxels', 0) == fault.voxels
    else:
        assert entry['voxels'] > 0
    assert fault.code in {finding['code'] for finding in reported['findings']}


def test_no_clean_case_is_blamed(reported: Dict[str, Any]) -> None:
    faults = reported['facts']['volumes']['faults']
    assert not {entry['case'] for entries in faults.values() for entry in entries} & set(CLEAN)
    assert sum(map(len, faults.values())) == len(PLANTED)


def test_the_data_set_is_judged_as_a_whole(reported: Dict[str, Any]) -> None:
    codes = {finding['code'] for finding in reported['findings']}
    assert not codes & {'MG180', 'MG181', 'MG182', 'MG135', 'MG195'}
