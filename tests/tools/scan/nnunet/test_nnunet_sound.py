"""A volume with something wrong in its bytes is a finding, or nnU-Net's own reader returns what the scan counts."""

from __future__ import annotations

import gzip
import importlib.util
import json
import resource
import sys
from pathlib import Path
from typing import Any, Dict, Tuple

import numpy as np
import pytest
from file_mutations import mutated
from nnunet_sets import make_set, organ, save, write_json

from mmguard.cli import main
from mmguard.tools.scan.nnunet.cases import CaseItem
from mmguard.tools.scan.nnunet.read_case import read_case
from mmguard.tools.scan.nnunet.record import CaseRecord, FileRecord

nibabel = pytest.importorskip('nibabel')

MUTATIONS = 30
NIFTI_READERS = ('NibabelIO', 'NibabelIOWithReorient', 'SimpleITKIO')


def read(path: Path, reader: str = 'NibabelIO') -> FileRecord:
    record = read_case(CaseItem(str(path), 'a', ()), reader, (0, 1, 2))
    assert CaseRecord.from_line(record.to_line()) == record
    return record.label


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


def theirs(reader: str) -> Any:
    from nnunetv2.imageio.reader_writer_registry import recursive_find_reader_writer_by_name

    return recursive_find_reader_writer_by_name(reader)()


@pytest.mark.skipif(importlib.util.find_spec('nnunetv2') is None, reason='nnU-Net is not installed')
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
                label = np.asarray(theirs(reader).read_seg(str(file))[0], np.float32)
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
    assert main(['scan', str(root), '--processes', '1', '--journal', str(tmp_path / 'j')]) == 1
    assert 'MG192' in capsys.readouterr().out


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
    path = tmp_path / ('a.nii.gz' if packed else 'a.nii')
    path.write_bytes(gzip.compress(content) if packed else content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    record = read(path, reader)
    assert record.fault == 'truncated'
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
    assert (record.fault, 'a.nii,' in record.detail) == ('another is read', True)


def test_a_large_slice_is_counted_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mmguard.tools.scan.nnunet.readers import nifti

    label = organ()
    label[3:5, 7, 6], label[1, 1, 7] = 9, 9
    save(tmp_path / 'a.nii.gz', label)
    whole = read(tmp_path / 'a.nii.gz')
    monkeypatch.setattr(nifti, 'LARGE_SLICE', 100)
    monkeypatch.setattr('mmguard.tools.scan.nnunet.readers.volume.BLOCK', 30)
    lines = read(tmp_path / 'a.nii.gz')
    assert lines == whole
    assert lines.slices == {'9': {6: 2, 7: 1}}
    monkeypatch.setattr(nifti, 'LARGE_SLICE', 5)
    assert read(tmp_path / 'a.nii.gz').fault == 'too large'


def test_a_truncated_file_of_colours_is_a_finding(tmp_path: Path) -> None:
    colours = np.zeros((12, 10, 8), [('R', 'u1'), ('G', 'u1'), ('B', 'u1')])
    save(tmp_path / 'a.nii', colours)
    content = (tmp_path / 'a.nii').read_bytes()
    (tmp_path / 'a.nii').write_bytes(content[:-30])
    record = read(tmp_path / 'a.nii')
    assert (record.fault, record.missing) == ('truncated', 10)


def test_a_label_that_is_named_by_its_ending_alone(tmp_path: Path) -> None:
    root = make_set(tmp_path / 'set', cases=1, channels=1, ending='.nii')
    save(root / 'labelsTr' / '.nii', organ())
    out = tmp_path / 'o.json'
    assert main(['scan', str(root), '--json', str(out), '--journal', str(tmp_path / 'j')]) == 1
    [found] = json.loads(out.read_text())['datasets']
    assert found['facts']['volumes']['faults']['no image'][0]['file'] == 'labelsTr/.nii'


def test_what_macos_leaves_is_no_case(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = make_set(tmp_path / 'set', cases=2, channels=1)
    for name in ('imagesTr/._case_000_0000.nii.gz', 'labelsTr/._case_000.nii.gz', 'imagesTr/._.DS_Store'):
        (root / name).write_bytes(b'\0\5\x16\7' + bytes(78))
    assert main(['scan', str(root), '--journal', str(tmp_path / 'j')]) == 1
    said = ' '.join(capsys.readouterr().out.split())
    assert "find . -name '._*' -delete" in said
    assert 'numTraining' not in said
    assert '2 cases' in said


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
    record = read_case(CaseItem('a', 'a', ()), 'NibabelIO', tuple(range(60_000)))
    assert len(record.to_line()) < 300
    assert main(['scan', str(root), '--processes', '1', '--journal', str(tmp_path / 'j')]) == 1


def test_lone_surrogates_in_dataset_json_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = make_set(tmp_path / 'set', cases=1, channels=1)
    write_json(root, channel_names={'0': '\ud800'}, labels={'background': 0, '\ud800': 1, 'b\x1b': 2}, numTraining=1)
    out, page = tmp_path / 'o.json', tmp_path / 'o.html'
    words = ['--json', str(out), '--html', str(page), '--journal', str(tmp_path / 'j')]
    assert main(['scan', str(root), *words]) == 0
    assert '\\ud800' in capsys.readouterr().out
    page.read_text(encoding='utf-8').encode()
    json.loads(out.read_text(encoding='utf-8'))
