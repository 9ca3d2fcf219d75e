"""Edits of volumes, written by hand as a finding shows them, close the case."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest
from targets import find_unwritten, scan, scan_target
from volume_sets import LIVER, Draw, organs, volumes

from mmguard.findings.edits import Edit

nibabel = pytest.importorskip('nibabel')
pytest.importorskip('SimpleITK')


def write_volumes(root: Path, edit: Edit) -> None:
    """Write an edit of volumes, by hand."""
    ((path, changes),) = edit.files.items()
    assert path == str(root)
    content = json.loads((root / 'dataset.json').read_text())
    (root / 'dataset.json').write_text(json.dumps({**content, **dict(changes.get('dataset_json', ()))}))
    for file in (root / 'labelsTr').iterdir():
        volume = nibabel.load(str(file))
        old = np.asarray(volume.dataobj)
        new = old.copy()
        for value, label in changes.get('label_map', {}).items():
            new[old == value] = label
        nibabel.save(nibabel.Nifti1Image(new, volume.affine), str(file))


@pytest.mark.parametrize(
    ('values', 'labels', 'code', 'writes'),
    [
        ((1, 2, 9), LIVER, 'MG185', dict(ignore=3)),
        ((1, 2, 255), LIVER, 'MG185', dict(ignore=3)),
        ((1, 2, 3), LIVER, 'MG185', {'class 3': 3}),
        ((1, 4), LIVER, 'MG185', dict(label_map={4: 2})),
        ((1, 4), {'background': 0, 'liver': 1, 'tumor': 4}, 'MG181', dict(tumor=2)),
        ((1, 4), {'0': 'background', '1': 'liver', '4': 'tumor'}, 'MG181', dict(tumor=2, label_map={4: 2})),
        ((1, 3), {'bone': 1, 'skin': 3}, 'MG181', dict(background=0, skin=2, label_map={3: 2})),
        ((1, 2), LIVER, 'MG582', dict(numTraining=3)),
    ],
)
def test_edits_of_volumes(values: Any, labels: Any, code: str, writes: Dict[str, Any], tmp_path: Path) -> None:
    changes = dict(numTraining=5) if code == 'MG582' else {}
    before = scan(volumes(labels, organs(*values), 3, **changes), tmp_path)
    assert before.first.code == code
    edit = before.first.edits[0]
    assert (edit.applicability, find_unwritten(edit, writes)) == ('manual', {})
    write_volumes(before.target.path, edit)
    after = scan_target(before.target)
    assert [finding.code for finding in after.results[0].findings] == ['MG195']
    assert sum(after.labels.histogram.values()) == sum(before.labels.histogram.values())
    assert after.labels.histogram[0] == before.labels.histogram[0], 'nothing becomes background'


def _from_one(*values: int) -> Draw:
    """Labels where every voxel is of a class, and none is 0."""
    return lambda rng, case: np.maximum(organs(*values)(rng, case), 1)


#: Labels of dataset.json, what the label files hold -> the labels to write.
DECLARED_WRONGLY = {
    'no background, 0 nowhere': (
        {'sand': 1, 'clay': 2, 'peat': 3},
        _from_one(2, 3),
        dict(background=0, sand=1, peat=3),
    ),
    'no background, 0 in the files': ({'rib': 1, 'spine': 2}, organs(1, 2), dict(background=0, rib=1, spine=2)),
    'no background, ignore': ({'nerve': 1, 'ignore': 2}, organs(1, 2), dict(background=0, nerve=1, ignore=2)),
    '0 of another name': ({'other': 0, 'vein': 1}, organs(1), dict(background=0, vein=1)),
    'as in v1': ({'0': 'background', '1': 'lung', '2': 'node'}, organs(1, 2), dict(background=0, lung=1, node=2)),
    'as in v1, no background': ({'1': 'root', '2': 'leaf'}, organs(1, 2), dict(background=0, root=1, leaf=2)),
    'numbers as text': ({'background': '0', 'aorta': '1'}, organs(1), dict(background=0, aorta=1)),
    'a gap that no file has': ({'background': 0, 'cyst': 1, 'stone': 5}, organs(1, 2), dict(cyst=1, stone=2)),
}
#: Those where the files hold a value whose meaning only the user knows.
ASKED = {
    'no background, 0 in the files',
    'no background, ignore',
    '0 of another name',
    'as in v1, no background',
    'a gap that no file has',
}


@pytest.mark.parametrize('name', sorted(DECLARED_WRONGLY))
def test_label_files_stay_where_only_dataset_json_is_wrong(name: str, tmp_path: Path) -> None:
    declared, draw, wanted = DECLARED_WRONGLY[name]
    before = scan(volumes(declared, draw, 3), tmp_path)
    assert before.first.code == 'MG181'
    edit = before.first.edits[0]
    [written] = edit.files.values()
    assert list(written) == ['dataset_json']
    assert find_unwritten(edit, wanted) == {}
    assert bool(edit.question) == (name in ASKED)
    write_volumes(before.target.path, edit)
    after = scan_target(before.target)
    assert [finding.code for finding in after.results[0].findings] == ['MG195']
    assert after.labels.histogram == before.labels.histogram


@pytest.mark.parametrize('modality', [{'0': 'CT'}, {'0': 'MR', '1': 'PET'}, {'0': 'T1', '1': 'T2', '2': 'FLAIR'}])
def test_edits_turn_a_dataset_json_of_v1_into_one_of_v2(modality: Any, tmp_path: Path) -> None:
    values = range(1, 1 + len(modality))
    labels = {'0': 'background', **{str(value): f'organ {value}' for value in values}}
    changes = dict(channel_names=None, file_ending=None, modality=modality)
    before = scan(volumes(labels, organs(*values), 3, **changes), tmp_path)
    folder = before.target.path
    for file in [file for file in (folder / 'imagesTr').iterdir() if file.name.endswith('_0000.nii.gz')]:
        for channel in range(1, len(modality)):
            shutil.copy(file, file.with_name(file.name.replace('_0000', f'_{channel:04d}')))
    for finding in scan_target(before.target).results[0].findings:
        write_volumes(folder, finding.edits[0])
    assert [finding.code for finding in scan_target(before.target).results[0].findings] == ['MG195']


@pytest.mark.parametrize('layout', ['v1', 'msd'])
def test_the_verdict_on_a_data_set_to_convert_names_the_conversion_only(layout: str, tmp_path: Path) -> None:
    found = scan(volumes(LIVER, organs(1, 2), 3, layout=layout), tmp_path).first
    assert (found.code, 'nnUNetv2_convert' in found.advice, 'plan_and' in found.advice) == ('MG195', True, False)


#: Layout, keys that dataset.json lacks, its numTraining, the entries that the conversion to v2 needs besides.
TO_CONVERT: List[Tuple[str, Tuple[str, ...], int, str]] = [
    ('v1', (), 3, ''),
    ('v1', (), 5, ''),
    ('v1', ('numTest', 'test'), 3, '"numTest": 0, "test": []'),
    ('v1', ('tensorImageSize', 'numTest', 'training'), 5, '"tensorImageSize": "4D", "numTest": 0, "training": []'),
    ('msd', ('tensorImageSize', 'numTest'), 3, ''),
    ('msd', ('test',), 3, '"test": []'),
]


@pytest.mark.parametrize(('layout', 'lacks', 'number', 'entries'), TO_CONVERT)
def test_keys_without_which_the_conversion_fails_are_named(
    layout: str, lacks: Tuple[str, ...], number: int, entries: str, tmp_path: Path
) -> None:
    """nnU-Net's converters delete keys that a dataset.json written by hand may lack."""
    changes: Any = dict(dict.fromkeys(lacks), numTraining=number)
    result = scan(volumes(LIVER, organs(1, 2), 3, layout=layout, **changes), tmp_path).results[0]
    (found,) = result.findings
    assert found.code == ('MG195' if number == 3 else 'MG582')
    if number == 3:
        assert (f'`{entries}`' in found.advice, 'fails' in found.advice) == (bool(entries), bool(entries))
    assert any(f'add {entries} to' in str(note) for note in result.notes) == bool(entries)
