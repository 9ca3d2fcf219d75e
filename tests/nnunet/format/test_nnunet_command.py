"""``mmguard scan DIR`` on data sets of nnU-Net: from the words on the command line to JSON, page and screen."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nnunet_sets import LABELS, cut, make_set, organ, picture, plant, save, write_json
from scans import codes, scan

from mmguard.cli import main
from mmguard.nnunet.format import cases as settings_module

pytest.importorskip('nibabel')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_set(tmp_path / 'Dataset001_Organ')


def test_processes_find_the_same(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = plant(tmp_path / 'Dataset001_Planted')
    alone = scan(capsys, root, '--processes', 1)
    together = scan(capsys, root, '--processes', 2)
    assert {**alone, 'notes': []} == {**together, 'notes': []}


def test_a_case_that_kills_its_process_is_reported(
    root: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = settings_module.read_case

    def dies(item: Any, *others: Any) -> Any:
        return os._exit(1) if item.case == 'case_001' else read(item, *others)

    monkeypatch.setattr(settings_module, 'read_case', dies)  # processes are forked: they see it
    reported = scan(capsys, root, '--processes', 2)
    faults = reported['facts']['volumes']['faults']['unreadable']
    assert {fault['case'] for fault in faults} == {'case_001'}
    assert reported['facts']['volumes']['labels_read'] == 2


def test_the_page_names_the_worst_slices(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    label = organ(dtype=np.float32)
    label[2:5, 7:9, 4] = 7
    save(root / 'labelsTr' / 'case_000.nii.gz', label)
    label[2:5, 7:9, 5] = 0.25
    save(root / 'labelsTr' / 'case_001.nii.gz', label)
    image = picture(0)
    image[3, 3, 6] = np.nan
    save(root / 'imagesTr' / 'case_002_0000.nii.gz', image)
    cut(root / 'imagesTr' / 'case_002_0001.nii.gz', 0.6)
    page = tmp_path / 'out' / 'page.html'
    scan(capsys, root, '--html', page)
    html = page.read_text(encoding='utf-8')
    for file, slices in {
        'labelsTr/case_000.nii.gz': 'slice 4',
        'labelsTr/case_001.nii.gz': 'slice 5',
        'imagesTr/case_002_0000.nii.gz': 'slice 6',
        'imagesTr/case_002_0001.nii.gz': '',
    }.items():
        assert re.search(f'{file}.*{slices}', html), file


@pytest.mark.same_everywhere
def test_the_screen_names_case_file_voxels_and_slice(root: Path, capsys: pytest.CaptureFixture, snapshot: Any) -> None:
    label = organ()
    label[0, 0, 3:5] = 9
    save(root / 'labelsTr' / 'case_001.nii.gz', label)
    assert main(['scan', str(root), '--processes', '1']) == 1
    shown = capsys.readouterr().out
    assert 'MG185' in shown
    assert 'labelsTr/case_001.nii.gz' in shown
    snapshot('scan', 'a value that nnU-Net does not expect', shown)


def test_a_folder_of_data_sets_is_scanned_whole(root: Path, capsys: pytest.CaptureFixture) -> None:
    shutil.copytree(root, root.parent / 'Dataset002_Copy')
    assert main(['scan', str(root.parent), '--processes', '1', '--json', '-']) == 0
    sets = json.loads(capsys.readouterr().out)['datasets']
    assert [Path(reported['name']).name for reported in sets] == ['Dataset001_Organ', 'Dataset002_Copy']


def test_a_class_that_never_occurs_and_labels_that_say_nothing(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = make_set(tmp_path / 'Dataset001_A', labels={**LABELS, 'vessel': 3, 'ignore': 4})
    save(root / 'labelsTr' / 'case_000.nii.gz', np.full((12, 10, 8), 4, np.uint8))
    reported = scan(capsys, root)
    assert codes(reported) == ['MG193', 'MG135']


def test_without_a_reader_the_package_is_named(
    root: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'SimpleITK', None)
    assert main(['scan', str(root)]) == 2
    assert 'pip install SimpleITK' in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, 'nibabel', None)
    assert main(['scan', str(root)]) == 2
    assert 'pip install nibabel SimpleITK' in capsys.readouterr().err


@pytest.mark.parametrize(('ending', 'module', 'package'), [('.nii', 'nibabel', 'nibabel'), ('.png', 'PIL', 'pillow')])
def test_the_package_is_that_of_the_ending(
    ending: str, module: str, package: str, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: Any
) -> None:
    (tmp_path / 'imagesTr').mkdir()
    (tmp_path / 'labelsTr').mkdir()
    write_json(tmp_path, file_ending=ending)
    monkeypatch.setitem(sys.modules, module, None)
    assert main(['scan', str(tmp_path)]) == 2
    assert f'pip install {package}' in capsys.readouterr().err


@pytest.mark.parametrize('ending', ['.tif', '.tiff', '.nrrd', '.mha', '.gipl'])
def test_forms_that_are_not_read_are_named_with_their_converter(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    write_json(tmp_path, file_ending=ending)
    assert main(['scan', str(tmp_path)]) == 2
    assert f"SimpleITK.ReadImage('a{ending}'), 'a.nii.gz')" in capsys.readouterr().err


#: Channels and labels as nnU-Net v1 writes them.
OF_V1 = [
    ({'0': 'CT'}, {'0': 'background', '1': 'liver', '2': 'tumor'}),
    ({'0': 'T2', '1': 'ADC'}, {'0': 'background', '1': 'PZ', '2': 'TZ'}),
    ({'0': 'FLAIR', '1': 'T1w', '2': 't1gd'}, {'0': 'bg', '1': 'edema', '2': 'core'}),
]


@pytest.mark.parametrize('is_readable', [True, False])
@pytest.mark.parametrize(('modality', 'labels'), OF_V1)
def test_a_dataset_json_of_v1_is_an_error_in_a_folder_of_v2(
    modality: Any, labels: Any, is_readable: bool, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: Any
) -> None:
    changes: Any = dict(channel_names=None, file_ending=None, modality=modality, labels=labels)
    root = make_set(tmp_path / 'Dataset011_Any', channels=len(modality), **changes)
    if not is_readable:
        monkeypatch.setitem(sys.modules, 'nibabel', None)
    reported = scan(capsys, root)
    assert sorted(codes(reported)) == ['MG180', 'MG181']
    assert {finding['severity'] for finding in reported['findings']} == {'error'}
    assert reported['facts']['volumes'].get('labels_read', 0) == 3 * is_readable
    assert all(bool(finding['edits']) == is_readable for finding in reported['findings']), 'none that was not tried'


@pytest.mark.parametrize(('modality', 'labels'), OF_V1)
def test_a_set_of_the_decathlon_is_not_converted_by_hand(
    modality: Any, labels: Any, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    images = [{'image': f'./imagesTr/case_{number:03d}.nii.gz'} for number in range(3)]
    changes: Any = dict(channel_names=None, file_ending=None, modality={'0': modality['0']}, training=images)
    root = make_set(tmp_path / 'Dataset013_Any', channels=1, labels=labels, **changes)
    for path in (root / 'imagesTr').iterdir():
        path.rename(str(path).replace('_0000', ''))
    reported = scan(capsys, root)
    assert [(one['code'], one['edits']) for one in reported['findings']] == [('MG180', []), ('MG181', [])]


@pytest.mark.parametrize(
    ('cases', 'with_tumor', 'name', 'code'),
    [
        (12, 1, 'lesion area 2', 'MG197'),
        (6, 4, 'tumor', 'MG197'),
        (5, 2, 'cyst', 'MG197'),
        (6, 5, 'tumor', 'MG195'),
        (4, 1, 'too few to split', 'MG195'),
    ],
)
def test_a_class_in_fewer_cases_than_folds_is_a_remark(
    cases: int, with_tumor: int, name: str, code: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    root = make_set(tmp_path / 'Dataset012_Rare', cases, labels={'background': 0, 'organ': 1, name: 2})
    for number in range(with_tumor, cases):
        save(root / 'labelsTr' / f'case_{number:03d}.nii.gz', organ(values=(1,)))
    [finding] = scan(capsys, root)['findings']
    assert (finding['code'], finding['severity']) == (code, 'info')
