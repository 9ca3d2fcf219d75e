"""Folders of NIfTI label files without a dataset.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import nibabel
import numpy as np
import pytest

from mmguard.cli import main


def write(folder: Path, *arrays: np.ndarray) -> Path:
    folder.mkdir(parents=True)
    for number, array in enumerate(arrays):
        nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), folder / f'p{number:02}.nii.gz')
    return folder


def organs(*values: int, dtype: Any = np.uint8) -> np.ndarray:
    array = np.zeros((12, 10, 8), dtype)
    for place, value in enumerate(values):
        array[2:5, 2:5, 2 * place : 2 * place + 2] = value
    return array


def scanned(folder: Path, tmp_path: Path, *words: Any) -> Dict[str, Any]:
    code = main(['scan', str(folder), *map(str, words), '--json', str(tmp_path / 'scan.json')])
    (data,) = json.loads((tmp_path / 'scan.json').read_text())['datasets']
    return {**data, 'exit': code}


@pytest.mark.parametrize('dtype', [np.uint8, np.int16, np.float64])
def test_voxels_beyond_the_classes_are_counted_and_named(dtype: Any, tmp_path: Path) -> None:
    folder = write(tmp_path / 'labels', organs(1, dtype=dtype), organs(1, 2, dtype=dtype), organs(1, dtype=dtype))
    data = scanned(folder, tmp_path, '--num-classes', 2)
    assert data['exit'] == 1
    assert data['facts']['values'] == {'2': 18}
    assert data['facts']['histogram'] == {'0': 3 * 960 - 72, '1': 54, '2': 18}
    assert [Path(file).name for file in data['findings'][0]['files']] == ['p01.nii.gz']
    assert scanned(folder, tmp_path, '--num-classes', 3)['exit'] == 0
    assert main(['fix', str(folder), '-o', str(tmp_path / 'out'), '--num-classes', '2']) == 2


def test_the_next_value_in_few_cases_is_a_class_before_a_slip(tmp_path: Path) -> None:
    cases = [organs(1) for _ in range(12)]
    cases[3][9, 9, 7] = cases[7][9, 9, 7] = 2
    found = scanned(write(tmp_path / 'labels', *cases), tmp_path, '--num-classes', 2)['findings'][0]
    assert found['code'] == 'MG102'
    assert found['edits'][0]['options'] == {'num_classes': 3}


def test_volumes_are_compared_with_their_images(tmp_path: Path) -> None:
    folder = write(tmp_path / 'labels', organs(1), organs(1), organs(1))
    images = tmp_path / 'images'
    images.mkdir()
    for number in range(3):
        shape = (12, 10, 7) if number == 2 else (12, 10, 8)
        nibabel.save(nibabel.Nifti1Image(np.zeros(shape, np.float32), np.eye(4)), images / f'p{number:02}_0000.nii.gz')
    (found,) = scanned(folder, tmp_path, '--num-classes', 2, '--images', images)['findings']
    assert (found['code'], [Path(file).name for file in found['files']]) == ('MG130', ['p02.nii.gz'])
    (images / 'p02_0000.nii.gz').unlink()
    (found,) = scanned(folder, tmp_path, '--num-classes', 2, '--images', images)['findings']
    assert found['code'] == 'MG129'


@pytest.mark.parametrize(('name', 'noted'), [('labelsTr', True), ('', False)])
def test_a_raw_folder_of_nnunet_without_its_dataset_json_is_said_to_be_read_as_label_maps(
    name: str, noted: bool, tmp_path: Path
) -> None:
    write(tmp_path / 'set' / name, organs(1), organs(1))
    if name:
        write(tmp_path / 'set' / 'imagesTr', organs(7), organs(7))
    notes = scanned(tmp_path / 'set', tmp_path)['notes']
    assert any('dataset.json' in note for note in notes) == noted


def test_a_case_without_a_class_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / 'labels', organs(1), organs(), organs(1))
    (found,) = scanned(folder, tmp_path, '--num-classes', 2)['findings']
    assert (found['code'], [Path(file).name for file in found['files']]) == ('MG128', ['p01.nii.gz'])


def test_a_binary_mask_of_255_and_one_file(tmp_path: Path) -> None:
    folder = write(tmp_path / 'labels', organs(255), organs(255), organs(255))
    for target in (folder, folder / 'p00.nii.gz'):
        assert scanned(target, tmp_path, '--num-classes', 2)['findings'][0]['code'] == 'MG103'


@pytest.mark.parametrize(
    ('array', 'codes'),
    [
        (organs(1, dtype=np.float32) / 3, ['MG123']),
        (np.zeros((4, 5, 6, 2), np.uint8), ['MG132']),  # one-hot, or over time
    ],
)
def test_what_is_no_label_volume(array: np.ndarray, codes: List[str], tmp_path: Path) -> None:
    data = scanned(write(tmp_path / 'labels', array), tmp_path, '--num-classes', 2)
    assert [one['code'] for one in data['findings']][:1] == codes
