"""Which files make a case, and what is missing or left over."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, List, Set, Tuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nnunet_sets import write_json
from put_file import put

from mmguard.nnunet.format.cases import CaseListing, list_cases
from mmguard.nnunet.format.spec import KEYS, find_raw_datasets, read_spec

pytest.importorskip('nibabel')


def listed(root: Path, images: List[str], labels: List[str], **changes: Any) -> CaseListing:
    """Makes empty files of these names, and lists them."""
    for folder, names in (('imagesTr', images), ('labelsTr', labels)):
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name in names:
            (root / folder / name).touch()
    write_json(root, **changes)
    return list_cases(str(root), read_spec(str(root / 'dataset.json')))


def reported(listing: CaseListing) -> Set[Tuple[str, str]]:
    return {(kind, fault.file) for kind, fault in listing.faults}


TWO = ['a_0000.nii.gz', 'a_0001.nii.gz']


@pytest.mark.parametrize(
    ('images', 'labels', 'faults'),
    [
        (TWO, ['a.nii.gz'], set()),
        (TWO, [], {('no label', 'labelsTr/a.nii.gz')}),
        ([], ['a.nii.gz'], {('no image', 'labelsTr/a.nii.gz')}),
        ([*TWO, 'b_0001.nii.gz'], ['a.nii.gz', 'b.nii.gz'], {('channels', 'imagesTr/b_0000.nii.gz')}),
        ([*TWO, 'a_0003.nii.gz'], ['a.nii.gz'], {('channels', 'imagesTr/a_0002.nii.gz')}),
        ([*TWO, 'b.nii.gz'], ['a.nii.gz'], {('channels', 'imagesTr/b.nii.gz')}),
        ([*TWO, 'b_0000.nii'], ['a.nii.gz'], {('stranger', 'imagesTr/b_0000.nii')}),
        (TWO, ['a.nii.gz', 'b.mha'], {('stranger', 'labelsTr/b.mha')}),
        ([*TWO, '.DS_Store'], ['a.nii.gz'], set()),
        ([*TWO, '._a_0000.nii.gz'], ['a.nii.gz'], {('channels', 'imagesTr/._a_0000.nii.gz')}),
        (TWO, ['a.nii.gz', '._a.nii.gz'], set()),
    ],
)  # fmt: skip
def test_what_does_not_pair_up_is_reported(images: List[str], labels: List[str], faults: Set, tmp_path: Path) -> None:
    assert reported(listed(tmp_path, images, labels)) == faults


def test_a_link_that_leads_nowhere_is_reported(tmp_path: Path) -> None:
    (tmp_path / 'imagesTr').mkdir()
    os.symlink(str(tmp_path / 'gone'), str(tmp_path / 'imagesTr' / 'b_0000.nii.gz'))
    assert reported(listed(tmp_path, TWO, ['a.nii.gz'])) == {('stranger', 'imagesTr/b_0000.nii.gz')}


def test_folders_that_are_missing_are_reported(tmp_path: Path) -> None:
    write_json(tmp_path)
    spec = read_spec(str(tmp_path / 'dataset.json'))
    assert list_cases(str(tmp_path), spec).cases == []
    assert len(spec.faults[KEYS]) == 2


def test_files_that_dataset_json_names_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('SOMEWHERE', str(tmp_path / 'far'))
    (tmp_path / 'far').mkdir()
    (tmp_path / 'far' / 'a.nii.gz').touch()
    named = {
        'a': {'images': ['$SOMEWHERE/a.nii.gz'], 'label': 'missing.nii.gz'},
        'b': {'images': ['gone.nii.gz'], 'label': '$SOMEWHERE/a.nii.gz'},
        'c': {'images': 'c.nii.gz', 'label': 7},
    }
    write_json(tmp_path, dataset=named)
    spec = read_spec(str(tmp_path / 'dataset.json'))
    listing = list_cases(str(tmp_path), spec)
    assert reported(listing) == {('no label', 'missing.nii.gz'), ('no image', 'gone.nii.gz')}
    assert listing.cases[0].images == (str(tmp_path / 'far' / 'a.nii.gz'),)
    assert listing.found == 3
    assert any('dataset["c"]' in text for text in spec.faults[KEYS])


def test_a_data_set_is_known_by_its_dataset_json(tmp_path: Path) -> None:
    root = tmp_path / 'Dataset001_A'
    listed(root, TWO, ['a.nii.gz'])
    assert find_raw_datasets(str(root)) == [str(root)]
    assert find_raw_datasets(str(root / 'dataset.json')) == [str(root)]
    assert find_raw_datasets(str(tmp_path)) == [str(root)], 'nnUNet_raw holds several'
    assert find_raw_datasets(str(root / 'imagesTr')) == []
    put(tmp_path / 'other' / 'dataset.json', '{"info": {}, "annotations": []}')
    assert find_raw_datasets(str(tmp_path / 'other')) == [], 'a dataset.json of somebody else'


NAMES = st.builds(
    lambda stem, channel, ending: f'{stem}{channel}{ending}',
    st.sampled_from(['a', 'b', 'a_0000', 'case_1', '_', 'x.y']),
    st.sampled_from(['_0000', '_0001', '_0002', '', '_01', '_00001']),
    st.sampled_from(['.nii.gz', '.nii', '.gz', '.png']),
)


@pytest.mark.usefixtures('nnunet')
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(images=st.sets(NAMES, max_size=6))
def test_cases_are_counted_as_nnunet_counts_them(images: Set[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    from nnunetv2.utilities.utils import get_identifiers_from_splitted_dataset_folder

    root = tmp_path_factory.mktemp('names')
    listing = listed(root, sorted(images), [])
    theirs = get_identifiers_from_splitted_dataset_folder(str(root / 'imagesTr'), '.nii.gz')
    assert listing.found == len(theirs)
    assert {case.case for case in listing.cases} <= set(map(str, theirs))


# ---- names that lead elsewhere


def list_named(root: Path, name: str) -> Tuple[List[Any], List[Any], List[Any]]:
    put(root / 'labelsTr' / 'a.png', b'')
    record = dict(
        channel_names={'0': 'x'},
        labels={'background': 0, 'x': 1},
        numTraining=1,
        file_ending='.png',
        dataset={'a': dict(images=[name], label='labelsTr/a.png')},
    )
    (root / 'dataset.json').write_text(json.dumps(record))
    spec = read_spec(str(root / 'dataset.json'))
    listing = list_cases(str(root), spec)
    return (
        listing.cases,
        listing.faults,
        [fault for faults in spec.faults.values() for fault in faults if 'dataset[' in fault],
    )


@pytest.mark.parametrize('name', [r'C:\key.jpg', r'\\host\key.jpg', 'a\nkey.jpg', 'a\0key.jpg'])
def test_a_dataset_json_names_no_other_host(name: str, tmp_path: Path) -> None:
    found, _, faults = list_named(tmp_path, name)
    assert (found, len(faults)) == ([], 1)


def test_a_dataset_json_leads_to_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('RAW', str(tmp_path))
    (tmp_path / 'b.png').touch()
    for name in ('../b.png', f'{tmp_path}/b.png', '$RAW/b.png'):
        ((case,), faults, wrong) = list_named(tmp_path / 'set', name)
        assert (case.images, faults, wrong) == ((str(tmp_path / 'b.png'),), [], [])
