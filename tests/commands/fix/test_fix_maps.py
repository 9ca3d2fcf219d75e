"""`mmguard fix` on folders of label maps: what is written is valid, reported, final; originals are never touched."""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from label_files import write
from pictures import encode
from PIL import Image
from put_file import put

from mmguard.cli import main
from mmguard.formats.maps.forms import correct_map
from mmguard.formats.options import FixOptions

LABEL = np.array([[0, 1, 2], [11, 255, 2]], dtype=np.uint8)


def stored(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        assert (image.mode, image.format) == ('L', 'PNG')
        return np.asarray(image)


def contents(folder: Path) -> Dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob('*') if path.is_file()}


def run(*arguments: Any) -> int:
    return main(['fix', *map(str, arguments)])


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    """One map of each kind that can be corrected, one that needs nothing, and notes that are none."""
    root = tmp_path / 'labels'
    clean = np.where(LABEL == 11, 255, LABEL).astype(np.uint8)
    put(root / 'clean.png', encode(clean))
    put(root / 'city' / 'stray.png', encode(LABEL))
    (root / 'palette.png').write_bytes(encode(clean, mode='P'))
    (root / 'three.png').write_bytes(encode(clean, mode='RGB'))
    (root / 'alpha.png').write_bytes(encode(clean, mode='LA'))
    (root / 'wide.png').write_bytes(encode(np.where(LABEL == 11, 261, LABEL.astype(np.uint16))))
    (root / 'tiff.tif').write_bytes(encode(LABEL, 'TIFF'))
    (root / 'bits.png').write_bytes(encode(LABEL > 1))
    (root / 'notes.txt').write_text('mine')
    return root


def test_every_kind_is_corrected_and_reported(
    maps: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, snapshot: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    before, out = contents(maps), Path('corrected')
    assert run('labels', '--out', out, '--num-classes', 3) == 0
    snapshot('fix', 'label maps of every kind', capsys.readouterr().out)
    assert contents(maps) == before
    expected = np.where(LABEL == 11, 255, LABEL)
    for name in ('clean', 'city/stray', 'palette', 'three', 'alpha', 'wide', 'tiff'):
        np.testing.assert_array_equal(stored(out / f'{name}.png'), expected, err_msg=name)
    np.testing.assert_array_equal(stored(out / 'bits.png'), (LABEL > 1).astype(np.uint8))
    assert (out / 'clean.png').read_bytes() == before['clean.png']
    assert len(contents(out)) == 9  # the manifest too, no temporary file
    manifest = json.loads((out / 'mmguard.manifest').read_text())
    files = {record['file']: record for record in manifest['files']}
    assert files['clean.png']['changes'] == []
    assert files['city/stray.png']['changes'] == ['1 px of 11 -> 255']
    assert files['city/stray.png']['counts'] == {'skipped': 1, 'remapped': 0, 'total': 6}
    assert files['wide.png']['values'] == {'261': 1}
    assert len(files['palette.png']['changes']) == 1
    assert files['tiff.tif']['written'] == 'tiff.png'
    for name, record in files.items():
        assert record['sha256_before'] == hashlib.sha256(before[name]).hexdigest()
        assert record['sha256_after'] == hashlib.sha256((out / record['written']).read_bytes()).hexdigest()


def test_a_second_run_finds_nothing_and_a_scan_is_clean(maps: Path, tmp_path: Path, capsys: Any) -> None:
    out, again = tmp_path / 'corrected', tmp_path / 'again'
    arguments = ('--num-classes', 3, '--label-map', '0:1,1:0,11:2')
    assert run(maps, '--out', out, *arguments) == 0
    np.testing.assert_array_equal(stored(out / 'city' / 'stray.png'), [[1, 0, 2], [2, 255, 2]])
    assert run(out, '--out', again, '--num-classes', 3) == 0
    first, second = contents(out), contents(again)
    assert first.keys() == second.keys()
    assert all(first[name] == second[name] for name in first if name != 'mmguard.manifest')
    files = json.loads((again / 'mmguard.manifest').read_text())['files']
    assert [file['changes'] for file in files] == [[]] * 8
    scan = ['scan', '--num-classes', '3', '--processes', '1']
    assert main([*scan, str(maps)]) == 1
    assert main([*scan, str(out)]) == 0, capsys.readouterr().out


@pytest.mark.parametrize('words', [('--on-invalid', 'clip'), ('--label-map', 'label_map.json')], ids=['clip', 'file'])
def test_clip_and_a_label_map_from_a_file(words: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / 'label_map.json', json.dumps({'11': 2}))
    write(tmp_path / 'in' / 'a.png', LABEL)
    assert run('in', '--out', 'out', '--num-classes', 3, *words) == 0
    np.testing.assert_array_equal(stored(tmp_path / 'out' / 'a.png'), np.where(LABEL == 11, 2, LABEL))


def test_what_cannot_be_corrected_is_named_and_left_out(maps: Path, tmp_path: Path, capsys: Any, snapshot: Any) -> None:
    colors = np.zeros((2, 2, 3), dtype=np.uint8)
    colors[0, 0] = 1, 2, 3
    damaged = {
        'empty.png': b'',
        'cut.png': encode(np.random.default_rng(0).integers(0, 3, (64, 64), dtype=np.uint8))[:200],
        'text.png': b'<html>',
        'lossy.jpg': encode(LABEL, 'JPEG'),
        'colors.png': encode(colors),
        'fractions.tif': encode(np.full((2, 2), 0.5, dtype=np.float32), 'TIFF'),
        'clean.bmp': encode(LABEL, 'BMP'),  # its copy would be clean.png
    }
    for name, data in damaged.items():
        (maps / name).write_bytes(data)
    os.mkfifo(maps / 'pipe.png')
    out = tmp_path / 'corrected'
    assert run(maps, '--out', out, '--num-classes', 3) == 1
    entries = json.loads((out / 'mmguard.manifest').read_text())['left_out']
    left_out = {entry['file']: entry['reason'] for entry in entries}
    # Of two files with one name for their copies, the first is written.
    assert set(left_out) == {*damaged, 'pipe.png', 'clean.png'} - {'clean.bmp'}
    wrong = {'empty.png': 'empty', 'cut.png': 'truncated', 'text.png': 'not an image'}
    assert all(said in left_out[name] for name, said in wrong.items())
    assert not any('object at' in reason for reason in left_out.values())
    said = capsys.readouterr().out
    assert all(name in said for name in left_out)
    snapshot('fix', 'label maps that cannot be corrected', said)


def test_a_value_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    write(tmp_path / 'in' / 'a.png', LABEL)
    arguments = ('--num-classes', 3, '--ignore-index', 300)
    assert run(tmp_path / 'in', '--out', tmp_path / 'out', *arguments) == 1
    assert os.listdir(tmp_path / 'out') == ['mmguard.manifest']


def test_what_is_in_a_folder_stays(maps: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / 'out'
    put(out / 'clean.png', 'hours of work')
    assert run(maps, '--out', out, '--num-classes', 3) == 2
    assert str(out) in capsys.readouterr().err
    assert contents(out) == {'clean.png': b'hours of work'}


@pytest.mark.parametrize(
    ('target', 'arguments', 'named'),
    [
        ('labels', (), '--num-classes'),
        ('labels', ('--num-classes', 3, '--label-map', '0:7'), 'label_map'),
        ('nowhere', ('--num-classes', 3), 'nowhere'),
    ],
)
def test_what_cannot_be_meant_is_refused(
    target: str, arguments: Any, named: str, maps: Path, tmp_path: Path, capsys: Any
) -> None:
    assert run(tmp_path / target, '--out', tmp_path / 'out', *arguments) == 2
    assert named in capsys.readouterr().err
    assert not (tmp_path / 'out').exists()


SMALL = st.sampled_from([(1, 1), (2, 3), (5, 4)])


@settings(max_examples=80, deadline=None)
@given(
    label=st.one_of(arrays(np.uint8, SMALL), arrays(np.uint16, SMALL), arrays(np.bool_, SMALL)),
    num_classes=st.integers(1, 200),
    ignore_index=st.integers(0, 255),
    on_invalid=st.sampled_from(['ignore', 'clip']),
)
def test_every_corrected_value_is_valid_and_valid_ones_stay(
    label: np.ndarray, num_classes: int, ignore_index: int, on_invalid: str
) -> None:
    options = FixOptions(num_classes, ignore_index, {}, on_invalid)
    corrected = correct_map(encode(label), '.png', options)
    with Image.open(io.BytesIO(corrected.data)) as image:
        found = np.asarray(image)
    valid = (label.astype(int) < num_classes) | (label == ignore_index)
    np.testing.assert_array_equal(found[valid], label[valid])
    assert ((found < num_classes) | (found == ignore_index)).all()
    assert sum(corrected.values.values()) == (found != label).sum()
    assert correct_map(corrected.data, '.png', options).changes == []


# ---- colors and thresholds

COLORS = np.array([(0, 0, 0), (128, 0, 0), (0, 128, 0)], dtype=np.uint8)


@pytest.mark.parametrize('form', ['inline', 'file'])
def test_colors_become_the_labels_that_are_listed(tmp_path: Path, form: str) -> None:
    label = np.array([[0, 1, 2], [2, 1, 0]], dtype=np.uint8)
    write(tmp_path / 'labels' / 'a.png', COLORS[label])
    write(tmp_path / 'labels' / 'b.png', np.dstack([COLORS[label], label * 0 + 255]))
    table = '{(0, 0, 0): 0, (128, 0, 0): 2, (0, 128, 0): 1}'
    if form == 'file':
        table = str(tmp_path / 'colors.json')
        Path(table).write_text('{"0,0,0": 0, "128,0,0": 2, "0,128,0": 1}', encoding='utf-8')
    assert run(tmp_path / 'labels', '--out', tmp_path / 'out', '--num-classes', 3, '--colors', table) == 0
    for name in ('a.png', 'b.png'):
        np.testing.assert_array_equal(stored(tmp_path / 'out' / name), np.array([[0, 2, 1], [1, 2, 0]]))


def test_a_file_with_a_color_that_is_not_listed_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    write(tmp_path / 'labels' / 'a.png', COLORS[[[0, 1, 2]]])
    assert run(tmp_path / 'labels', '--out', tmp_path / 'out', '--num-classes', 2, '--colors', '{(0, 0, 0): 0}') == 1
    assert '(0, 128, 0)' in capsys.readouterr().out


@pytest.mark.parametrize('ending', ['.png', '.jpg'])
def test_a_threshold_makes_two_classes(tmp_path: Path, ending: str) -> None:
    white = np.zeros((16, 16), dtype=np.uint8)
    white[:, 8:] = 255
    write(tmp_path / 'labels' / f'a{ending}', white)
    assert run(tmp_path / 'labels', '--out', tmp_path / 'out', '--num-classes', 2, '--threshold', 127) == 0
    np.testing.assert_array_equal(stored(tmp_path / 'out' / 'a.png'), white // 255)


def test_images_beside_label_maps_are_none_of_them(tmp_path: Path) -> None:
    gray = encode(np.full((4, 4), 200, dtype=np.uint8))  # a photograph in gray could be a label map
    root = tmp_path / 'set'
    for name, data in {'images/a.png': gray, 'labels/a.png': encode(LABEL)}.items():
        put(root / name, data)
    assert run(root, '-o', tmp_path / 'out', '--num-classes', 11) == 0
    assert sorted(contents(tmp_path / 'out')) == ['labels/a.png', 'mmguard.manifest']

    mixed = tmp_path / 'mixed'
    put(mixed / 'a.png', gray)
    (mixed / 'a_seg.png').write_bytes(encode(LABEL))
    assert run(mixed, '-o', tmp_path / 'out2', '--num-classes', 11, '--suffix', '_seg.png') == 0
    assert sorted(contents(tmp_path / 'out2')) == ['a_seg.png', 'mmguard.manifest']
    assert run(mixed, '-o', tmp_path / 'out3', '--num-classes', 11, '--suffix', '_none.png') == 2


def test_an_edit_says_which_of_the_files_it_is_for(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    mixed = tmp_path / 'mixed'
    colors = np.zeros((4, 4, 3), dtype=np.uint8)
    colors[:2] = 128, 0, 0
    for n in range(3):
        put(mixed / f'{n}.png', encode(np.full((4, 4), 200, dtype=np.uint8)))
        put(mixed / f'{n}_seg.png', encode(colors))
    said = ('--num-classes', '2', '--suffix', '_seg.png')
    assert main(['scan', str(mixed), *said]) == 1
    assert '--suffix _seg.png' in ' '.join(capsys.readouterr().out.split())
    assert run(mixed, '-o', tmp_path / 'out', *said, '--edit', '1') == 0
    assert sorted(contents(tmp_path / 'out')) == [*(f'{n}_seg.png' for n in range(3)), 'mmguard.manifest']
