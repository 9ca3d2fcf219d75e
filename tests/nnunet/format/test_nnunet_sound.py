"""Files and declarations that nobody means to write: a finding, or what nnU-Net reads is what the scan counts."""

from __future__ import annotations

import gzip
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest
from file_mutations import mutated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nnunet_sets import affine_of, make_set, organ, picture, save, their_reader, write_json
from put_file import put

from mmguard.cli import main
from mmguard.facts.labels import LabelFacts
from mmguard.formats.format import scan_here
from mmguard.formats.volumes.record import FileRecord
from mmguard.nnunet.format import CaseSource
from mmguard.nnunet.format.cases import CaseItem, read_case

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
    reader=st.sampled_from(['SimpleITKIO', 'NibabelIO']),
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


@pytest.mark.parametrize(
    'content', [b'', b'\x1f\x8b', b'\x1f\x8b' + b'\0' * 500, b'version https://git-lfs', b'\0' * 900]
)
@pytest.mark.parametrize('ending', ['.nii.gz', '.nii', '.png'])
def test_what_is_no_volume_is_reported(content: bytes, ending: str, tmp_path: Path) -> None:
    for folder, name in (('imagesTr', f'a_0000{ending}'), ('labelsTr', f'a{ending}')):
        put(tmp_path / folder / name, content)
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
    [fault] = facts.volumes.find_faults('intensities')
    assert fault.voxels == 960
    assert '256' in fault.detail
    assert len(fault.detail) < 200
    assert facts.volumes.find_faults('unexpected') == []
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
    words = ['scan', str(root), '--processes', '1']
    assert main([*words, '--json', str(out), '--html', str(page)]) == 1
    shown = capsys.readouterr().out
    assert '\x1b[31mred' not in shown
    assert '[red]' in shown
    [reported] = json.loads(out.read_text())['datasets']
    assert len(reported['facts']['volumes']['faults']['unexpected']) == 4
    assert '\x1b' not in page.read_text(encoding='utf-8')


def test_a_color_volume_is_reported(tmp_path: Path) -> None:
    root = make_set(tmp_path, cases=1, channels=1)
    colors = np.zeros((12, 10, 8), [('R', 'u1'), ('G', 'u1'), ('B', 'u1')])
    save(root / 'labelsTr' / 'case_000.nii.gz', colors, affine_of())
    assert ('form', 'labelsTr/case_000.nii.gz') in faults_of(root)


def test_four_axes_are_reported_of_images_too(tmp_path: Path) -> None:
    root = make_set(tmp_path, cases=1, channels=1)
    save(root / 'imagesTr' / 'case_000_0000.nii.gz', picture(0, (12, 10, 8, 3)))
    write_json(root, channel_names={'0': 'a', '1': 'b', '2': 'c'}, numTraining=1)
    assert faults_of(root) == [('form', 'imagesTr/case_000_0000.nii.gz')]
    assert facts_of(root).values == {}


MUTATIONS = 30
NIFTI_READERS = ('NibabelIO', 'SimpleITKIO')


def read(path: Path, reader: str = 'NibabelIO') -> FileRecord:
    return read_case(CaseItem(str(path), 'a', ()), reader, (0, 1, 2)).label


def volumes(folder: Path) -> Dict[str, Tuple[bytes, Tuple[str, ...]]]:
    """Name with its ending -> content, nnU-Net's readers of it."""
    from PIL import Image

    label = organ()
    made: Dict[str, Tuple[bytes, Tuple[str, ...]]] = {}

    def keep(name: str, readers: Tuple[str, ...]) -> None:
        made[name] = ((folder / name).read_bytes(), readers)

    for kind in ('uint8', 'float32'):
        for ending in ('.nii', '.nii.gz'):
            save(folder / kind / f'a{ending}', label.astype(kind))
            keep(f'{kind}/a{ending}', NIFTI_READERS)
    for ending in ('.png', '.bmp'):
        Image.fromarray(label[:, :, 1]).save(folder / f'a{ending}')
        keep(f'a{ending}', ('NaturalImage2DIO',))
    return made


@pytest.mark.usefixtures('nnunet')
def test_what_is_no_finding_is_read_as_it_is_counted(tmp_path: Path) -> None:
    clean = 0
    for number, (name, (content, readers)) in enumerate(volumes(tmp_path).items()):
        folder = tmp_path / f'mutated{number}'  # SimpleITK takes a.nii for an a.nii.gz beside it
        folder.mkdir()
        file = folder / f'm{"".join(Path(name).suffixes)}'
        for reader in readers:
            for seed in range(MUTATIONS):
                inside = name.endswith('.gz') and seed % 2
                plain = gzip.decompress(content) if inside else content
                changed = mutated(plain, np.random.default_rng([seed, number]))
                file.write_bytes(gzip.compress(changed) if inside else changed)
                record = read(file, reader)
                if record.fault or record.form:
                    continue
                clean += 1
                label = np.asarray(their_reader(reader).read_seg(str(file))[0], np.float32)
                assert list(label.shape) == record.shape, (name, reader, seed)
                values, counts = np.unique(label[np.isfinite(label)], return_counts=True)
                found = {str(int(v)) if v == np.rint(v) else str(v): int(n) for v, n in zip(values, counts)}
                assert record.left_out or record.values == found, (name, reader, seed)
    assert clean > 50


@pytest.mark.parametrize('magic', [b'n+nu', b'\0\0\0\0', b'abcd', b'n+2\0'])
def test_a_wrong_magic_number_is_a_finding(tmp_path: Path, magic: bytes, capsys: pytest.CaptureFixture) -> None:
    root = make_set(tmp_path / 'Dataset001_A', cases=1, channels=1, ending='.nii')
    file = root / 'labelsTr' / 'case_000.nii'
    content = file.read_bytes()
    file.write_bytes(content[:344] + magic + content[348:])
    with pytest.raises(nibabel.filebasedimages.ImageFileError):
        nibabel.load(str(file))
    assert main(['scan', str(root), '--processes', '1']) == 1
    assert 'MG132' in capsys.readouterr().out


def header_of(shape: Tuple[int, ...], kind: Any) -> bytes:
    header = nibabel.Nifti1Header()
    header.set_data_dtype(kind)
    header.set_data_shape(shape)
    header['magic'], header['vox_offset'] = b'n+1', 352
    return bytes(header.binaryblock) + bytes(4)


@pytest.mark.skipif(sys.platform != 'linux', reason='other systems count other things as resident')
@pytest.mark.parametrize('kind', [np.uint8, np.float64])
@pytest.mark.parametrize('packed', [False, True])
@pytest.mark.parametrize('reader', ['NibabelIO', 'SimpleITKIO'])
def test_a_header_alone_takes_no_memory(tmp_path: Path, kind: Any, packed: bool, reader: str) -> None:
    if reader == 'SimpleITKIO':
        pytest.importorskip('SimpleITK')
    content = header_of((32767, 32767, 4), kind) + bytes(120)
    path = put(tmp_path / ('a.nii.gz' if packed else 'a.nii'), gzip.compress(content) if packed else content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    record = read(path, reader)
    # 34 GB of a gzipped file cannot be ruled out by its size.
    assert record.fault == ('too large' if packed and kind is np.float64 else 'truncated')
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def test_a_name_that_is_no_utf8_does_not_end_the_process(tmp_path: Path) -> None:
    pytest.importorskip('SimpleITK')
    path = tmp_path / '\udcff.nii.gz'
    save(tmp_path / 'a.nii.gz', organ())
    (tmp_path / 'a.nii.gz').rename(path)
    record = read(path, 'SimpleITKIO')
    assert record.fault == 'refused by SimpleITK'


def test_what_simple_itk_reads_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    itk = pytest.importorskip('SimpleITK')
    save(tmp_path / 'a.nii.gz', organ())
    save(tmp_path / 'a.nii', organ(values=(5, 6)))
    assert itk.GetArrayFromImage(itk.ReadImage(str(tmp_path / 'a.nii.gz'))).max() == 6
    record = read(tmp_path / 'a.nii.gz', 'SimpleITKIO')
    assert record.fault
    assert 'a.nii' in record.detail.split()


def test_a_large_slice_is_counted_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mmguard.formats.volumes import nifti

    label = organ()
    label[3:5, 7, 6], label[1, 1, 7] = 9, 9
    save(tmp_path / 'a.nii.gz', label)
    whole = read(tmp_path / 'a.nii.gz')
    monkeypatch.setattr(nifti, 'LARGE_SLICE', 100)
    monkeypatch.setattr('mmguard.formats.volumes.BLOCK', 30)
    lines = read(tmp_path / 'a.nii.gz')
    assert lines == whole
    assert lines.slices == {'9': {6: 2, 7: 1}}
    monkeypatch.setattr(nifti, 'LARGE_SLICE', 5)
    assert read(tmp_path / 'a.nii.gz').fault == 'too large'


def test_a_truncated_file_of_colors_is_a_finding(tmp_path: Path) -> None:
    colors = np.zeros((12, 10, 8), [('R', 'u1'), ('G', 'u1'), ('B', 'u1')])
    save(tmp_path / 'a.nii', colors)
    content = (tmp_path / 'a.nii').read_bytes()
    (tmp_path / 'a.nii').write_bytes(content[:-30])
    record = read(tmp_path / 'a.nii')
    assert (record.fault, record.missing) == ('truncated', 10)


def test_a_label_that_is_named_by_its_ending_alone(tmp_path: Path) -> None:
    root = make_set(tmp_path / 'set', cases=1, channels=1, ending='.nii')
    save(root / 'labelsTr' / '.nii', organ())
    out = tmp_path / 'o.json'
    assert main(['scan', str(root), '--json', str(out)]) == 1
    [found] = json.loads(out.read_text())['datasets']
    assert found['facts']['volumes']['faults']['no image'][0]['file'] == 'labelsTr/.nii'


@pytest.mark.parametrize(
    'labels',
    [
        lambda n: {'background': 0, **{f'c{i}': i for i in range(1, n)}},
        lambda n: {'background': 0, **{f'c{i}': 3 * i for i in range(1, n)}},
        lambda n: {'background': 0, **{f'c{i}': [i, i + 1] for i in range(1, n)}},
    ],
    ids=['valid', 'with gaps', 'regions'],
)
@pytest.mark.timeout(60)
def test_60000_labels_take_seconds(tmp_path: Path, labels: Any) -> None:
    root = make_set(tmp_path / 'set', cases=1, channels=1, labels=labels(60_000), regions_class_order=[1])
    content = (root / 'dataset.json').read_text()
    (root / 'dataset.json').write_text(content.replace('{', '{' + '"a": 1, "b": 2, ' * 30_000, 1))
    assert main(['scan', str(root), '--processes', '1']) == 1


def test_lone_surrogates_in_dataset_json_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = make_set(tmp_path / 'set', cases=1, channels=1)
    write_json(root, channel_names={'0': '\ud800'}, labels={'background': 0, '\ud800': 1, 'b\x1b': 2}, numTraining=1)
    out, page = tmp_path / 'o.json', tmp_path / 'o.html'
    words = ['--json', str(out), '--html', str(page)]
    assert main(['scan', str(root), *words]) == 0
    assert '\\ud800' in capsys.readouterr().out
    page.read_text(encoding='utf-8').encode()
    json.loads(out.read_text(encoding='utf-8'))
