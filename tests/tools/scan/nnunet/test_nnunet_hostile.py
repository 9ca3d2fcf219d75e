"""Files and declarations that nobody means to write: reported, never a crash, and everything right is kept."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any, List, Tuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nnunet_sets import affine_of, make_set, organ, picture, save, write_json

from mmguard.cli import main
from mmguard.findings.facts import LabelFacts
from mmguard.tools.scan.engine import scan_here
from mmguard.tools.scan.nnunet.cases import CaseItem
from mmguard.tools.scan.nnunet.read_case import read_case
from mmguard.tools.scan.nnunet.record import CaseRecord
from mmguard.tools.scan.nnunet.source import CaseSource

nibabel = pytest.importorskip('nibabel')


def facts_of(root: Path) -> LabelFacts:
    return CaseSource(str(root)).scan(scan_here).facts


def faults_of(root: Path) -> List[Tuple[str, str]]:
    volumes = facts_of(root).volumes
    return [(kind, fault.file) for kind, faults in volumes.faults.items() for fault in faults]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    places=st.lists(st.tuples(st.integers(0, 352), st.integers(0, 255)), min_size=1, max_size=6),
    packed=st.booleans(),
    reader=st.sampled_from(['SimpleITKIO', 'NibabelIO', 'NibabelIOWithReorient']),
)
def test_a_damaged_header_is_reported_or_read(places: Any, packed: bool, reader: str, tmp_path: Path) -> None:
    path = tmp_path / ('a.nii.gz' if packed else 'a.nii')
    save(tmp_path / 'whole.nii', organ())
    content = bytearray((tmp_path / 'whole.nii').read_bytes())
    for place, value in places:
        content[place] = value
    path.write_bytes(gzip.compress(bytes(content)) if packed else bytes(content))
    record = read_case(CaseItem(str(path), 'a', ()), reader, (0, 1, 2))
    assert record.label.is_read or record.label.fault
    if record.label.is_read and not record.label.form:
        whole = record.label.nan + record.label.inf + record.label.left_out + sum(record.label.values.values())
        assert whole == record.label.voxels
    assert CaseRecord.from_line(record.to_line()) == record


@pytest.mark.parametrize(
    'content', [b'', b'\x1f\x8b', b'\x1f\x8b' + b'\0' * 500, b'version https://git-lfs', b'\0' * 900]
)
@pytest.mark.parametrize('ending', ['.nii.gz', '.nii', '.png'])
def test_what_is_no_volume_is_reported(content: bytes, ending: str, tmp_path: Path) -> None:
    for folder, name in (('imagesTr', f'a_0000{ending}'), ('labelsTr', f'a{ending}')):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(content)
    write_json(tmp_path, channel_names={'0': 'CT'}, numTraining=1, file_ending=ending)
    assert {kind for kind, _ in faults_of(tmp_path)} == {'unreadable'}


def test_a_flat_image_and_a_volume_are_compared(tmp_path: Path) -> None:
    root = make_set(tmp_path, cases=1, channels=1)
    save(root / 'imagesTr' / 'case_000_0000.nii.gz', picture(0, (12, 10)))
    save(root / 'labelsTr' / 'case_000.nii.gz', organ()[:, :, 1:2].copy())
    kinds = {kind for kind, _ in faults_of(root)}
    assert 'spacing' in kinds
    assert 'orientation' in kinds


def test_an_image_taken_for_a_label_is_reported_in_bounded_words(tmp_path: Path) -> None:
    root = make_set(tmp_path, cases=1, channels=1)
    image = np.arange(960, dtype=np.int16).reshape(12, 10, 8) - 400
    save(root / 'labelsTr' / 'case_000.nii.gz', image)
    facts = facts_of(root)
    [fault] = facts.volumes.of('intensities')
    assert fault.voxels == 960
    assert '256' in fault.detail
    assert len(fault.detail) < 200
    assert facts.volumes.of('unexpected') == []
    assert facts.histogram == {}, 'intensities are no labels'


def test_a_huge_label_in_dataset_json_costs_nothing(tmp_path: Path) -> None:
    root = make_set(tmp_path, cases=1, channels=1, labels={'background': 0, 'a': 1, 'b': 10**12})
    facts = facts_of(root)
    assert facts.class_names == []
    assert facts.values == {2: 18}


def test_names_that_are_no_words_survive(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = make_set(tmp_path / 'Dataset001_A', cases=['a\nb', '[red]', 'ö', '-rf'], channels=1)
    label = organ()
    label[0, 0, 0] = 9
    for name in ('a\nb', '[red]', 'ö', '-rf'):
        save(root / 'labelsTr' / f'{name}.nii.gz', label)
    (root / 'imagesTr' / os.fsdecode(b'\xff_0000.nii.gz')).touch()
    (root / 'labelsTr' / '\x1b[31mred.txt').touch()
    out, page = tmp_path / 'reported.json', tmp_path / 'page.html'
    words = ['scan', str(root), '--journal', str(tmp_path / 'j'), '--processes', '1']
    assert main([*words, '--json', str(out), '--html', str(page)]) == 1
    shown = capsys.readouterr().out
    assert '\x1b[31mred' not in shown
    assert '[red]' in shown
    [reported] = json.loads(out.read_text())['datasets']
    assert len(reported['facts']['volumes']['faults']['unexpected']) == 4
    assert '\x1b' not in page.read_text(encoding='utf-8')


def test_a_colour_volume_is_reported(tmp_path: Path) -> None:
    root = make_set(tmp_path, cases=1, channels=1)
    colours = np.zeros((12, 10, 8), [('R', 'u1'), ('G', 'u1'), ('B', 'u1')])
    save(root / 'labelsTr' / 'case_000.nii.gz', colours, affine_of())
    assert ('form', 'labelsTr/case_000.nii.gz') in faults_of(root)


def test_four_axes_are_reported_of_images_too(tmp_path: Path) -> None:
    root = make_set(tmp_path, cases=1, channels=1)
    save(root / 'imagesTr' / 'case_000_0000.nii.gz', picture(0, (12, 10, 8, 3)))
    write_json(root, channel_names={'0': 'a', '1': 'b', '2': 'c'}, numTraining=1)
    assert faults_of(root) == [('form', 'imagesTr/case_000_0000.nii.gz')]
    assert facts_of(root).values == {}
