"""Label maps of numpy: faults are named with their files, clean sets are clean, damaged files do not end the scan."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import pytest
from label_files import BLOCKS
from PIL import Image

from mmguard.cli import main
from mmguard.text import REPORT_ADVICE

#: Labels 0 to 4.
CLEAN = BLOCKS.astype(np.int64)


def saved(array: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


def make(root: Path, content: bytes = saved(CLEAN), ending: str = '.npy', files: int = 24) -> Path:
    for folder in ('images', 'labels'):
        (root / folder).mkdir(parents=True)
    for number in range(files):
        Image.new('RGB', (32, 32)).save(root / 'images' / f'{number:02d}.jpg')
        (root / 'labels' / f'{number:02d}{ending}').write_bytes(content)
    return root


def scanned(root: Path, out: Path, *more: str) -> Tuple[int, Dict[str, Any]]:
    code = main(['scan', str(root), '--num-classes', '5', '--processes', '1', '--json', str(out), *more])
    (dataset,) = json.loads(out.read_text())['datasets']
    return code, dataset


def changed(value: float, dtype: Any = np.int64) -> np.ndarray:
    label = CLEAN.astype(dtype)
    label[3, 4] = value
    return label


#: What stands in the file 07 -> the code that names it.
PLANTED: Dict[str, Tuple[bytes, str]] = {
    'a slip': (saved(changed(77)), 'MG127'),
    'below zero': (saved(changed(-1)), 'MG122'),
    'above 255': (saved(changed(300)), 'MG122'),
    'fractions': (saved(changed(0.25, np.float32)), 'MG123'),
    'NaN': (saved(changed(np.nan, np.float32)), 'MG122'),
    'the lowest float': (saved(changed(-3.4028235e38, np.float32)), 'MG122'),
    'void alone': (saved(np.full((32, 32), 255)), 'MG128'),
    'another size': (saved(CLEAN[:16]), 'MG130'),
    'colors': (saved(np.zeros((32, 32, 3), np.uint8)), 'MG132'),
    'objects': (saved(np.array([[None] * 4] * 4, dtype=object), allow_pickle=True), 'MG132'),
    'truncated': (saved(CLEAN)[:-9], 'MG132'),
    'empty': (b'', 'MG132'),
    'one row': (saved(CLEAN[:1]), 'MG132'),
}


@pytest.mark.parametrize('name', sorted(PLANTED))
def test_a_planted_fault_is_named_with_its_file(name: str, tmp_path: Path) -> None:
    content, wanted = PLANTED[name]
    root = make(tmp_path / 'set')
    (root / 'labels/07.npy').write_bytes(content)
    code, dataset = scanned(root, tmp_path / 'scan.json')
    assert code == 1
    finding = dataset['findings'][0]
    assert finding['code'] == wanted
    assert '07.npy' in json.dumps(
        [finding['files'], finding['evidence'], dataset['facts']['maps'].get('form_examples')]
    )


SETS: Dict[str, Tuple[bytes, str]] = {
    'int64': (saved(CLEAN), '.npy'),
    'uint8, in columns': (saved(np.asfortranarray(BLOCKS)), '.npy'),
    'big end first': (saved(CLEAN.astype('>i2')), '.npy'),
    'one channel': (saved(CLEAN[None]), '.npy'),
    'whole fractions': (saved(CLEAN.astype(np.float32)), '.npy'),
    'void': (saved(np.where(CLEAN == 4, 255, CLEAN)), '.npy'),
}


@pytest.mark.parametrize('name', sorted(SETS))
def test_clean_sets(name: str, tmp_path: Path) -> None:
    root = make(tmp_path / 'set', *SETS[name], files=6)
    code, dataset = scanned(root, tmp_path / 'scan.json')
    assert (code, dataset['facts']['files'], dataset['facts']['total']) == (0, 6, 6 * 32 * 32)


def test_one_file_and_a_folder_of_them(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', files=3)
    assert scanned(root / 'labels', tmp_path / 'scan.json')[0] == 0
    assert scanned(root / 'labels' / '01.npy', tmp_path / 'scan.json')[1]['facts']['files'] == 1


def _header(text: str) -> bytes:
    return b'\x93NUMPY\x01\x00' + len(text).to_bytes(2, 'little') + text.encode()


DAMAGED: List[Callable[[], bytes]] = [
    lambda: b'\x93NUMPY',
    lambda: b'\x93NUMPY\x01\x00' + bytes(100),
    lambda: b'\x93NUMPY\x09\x00' + bytes(100),
    lambda: _header("{'descr': '<i8', 'fortran_order': False, 'shape': (100000, 100000), }"),
    lambda: _header("{'descr': '<i8', 'fortran_order': False, 'shape': (-5, 5), }") + bytes(200),
    lambda: _header("{'descr': '<i8', 'fortran_order': 7, 'shape': (5, 5), }") + bytes(200),
    lambda: _header("{'descr': '|O', 'fortran_order': False, 'shape': (5, 5), }") + bytes(200),
    lambda: _header("{'descr': [('a', '<i4'), ('b', '<i4')], 'fortran_order': False, 'shape': (5, 5), }") + bytes(200),
    lambda: _header("{'descr': '<c16', 'fortran_order': False, 'shape': (5, 5), }") + bytes(400),
    lambda: _header("{'descr': '<i8', 'shape': (5, 5), }") + bytes(200),
    lambda: _header("__import__('os').system('true')") + bytes(200),
    lambda: _header('[' * 5000) + bytes(200),
    lambda: saved(np.array('text')),
    lambda: saved(np.zeros((0, 5))),
    lambda: saved(np.array(5)),
    lambda: saved(np.zeros((2, 2, 2, 2))),
    lambda: b'\x89PNG\r\n\x1a\n' + bytes(100),
    lambda: b'\n' * 50,
    lambda: b'PK\x03\x04' + bytes(100),
]


def test_damaged_files_do_not_end_the_scan(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = make(tmp_path / 'set', files=3)
    for number, content in enumerate(DAMAGED):
        (root / 'labels' / f'damaged {number:02d}.npy').write_bytes(content())
    code, dataset = scanned(root / 'labels', tmp_path / 'scan.json')
    assert code == 1
    maps = dataset['facts']['maps']
    number = sum(count for what, count in maps['counts'].items() if what.startswith('unreadable'))
    assert number == len(DAMAGED)
    assert dataset['facts']['total'] == 3 * 32 * 32
    assert REPORT_ADVICE not in ''.join(capsys.readouterr())


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    class Planted:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / 'ran',)

    root = make(tmp_path / 'set', saved(np.array([[Planted()] * 3] * 3, dtype=object), allow_pickle=True), files=2)
    assert main(['scan', str(root)]) == 2
    assert main(['fix', str(root / 'labels'), '--num-classes', '5', '--out', str(tmp_path / 'fixed')]) == 1
    assert not (tmp_path / 'ran').exists()


#: Arrays that are whole, and no label maps: what each is called, and the call that makes labels of it.
OTHER_SHAPES = [
    ((6, 32, 40), '(6, H, W)', 'argmax(0)'),
    ((64, 48, 3), '(H, W, 3)', 'argmax(-1)'),
    ((2, 1, 40, 32), '4 dimensions', 'squeeze()'),
    ((1, 400), 'one row', 'reshape(height, width)'),
]


@pytest.mark.parametrize(('shape', 'called', 'call'), OTHER_SHAPES)
def test_another_shape_is_not_called_damaged(
    shape: Tuple[int, ...], called: str, call: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    for number in range(3):
        np.save(tmp_path / f'{number}.npy', np.zeros(shape, np.uint8))
    assert main(['scan', str(tmp_path), '--num-classes', '6', '--json', '-']) == 2
    record = json.loads(capsys.readouterr().out)
    assert (record['datasets'], len(record['failed'])) == ([], 1)
    assert [part for part in ('0.npy', called, call, 'check_target') if part not in record['failed'][0]] == []


@pytest.mark.parametrize('pages', [2, 6])
def test_the_pages_of_a_tiff_are_not_left_out_silently(
    pages: int, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    first, *others = [Image.fromarray(np.full((32, 40), number % 2, np.uint8)) for number in range(pages)]
    first.save(tmp_path / 'a.tif', save_all=True, append_images=others)
    assert main(['scan', str(tmp_path), '--num-classes', '2', '--json', '-']) == 2
    assert 'a.tif' in json.loads(capsys.readouterr().out)['failed'][0]
    # Smaller ones are overviews: a loader takes the first page rightly.
    first.save(tmp_path / 'a.tif', save_all=True, append_images=[one.resize((20, 16)) for one in others])
    assert main(['scan', str(tmp_path), '--num-classes', '2', '--json', '-']) == 0


@pytest.mark.parametrize('name', ['a slip', 'below zero'])
def test_an_edit_that_is_followed_leaves_a_clean_set(name: str, tmp_path: Path) -> None:
    root = make(tmp_path / 'set')
    (root / 'labels/07.npy').write_bytes(PLANTED[name][0])
    out = tmp_path / 'fixed'
    assert main(['fix', str(root / 'labels'), '--num-classes', '5', '--out', str(out)]) == 0
    assert scanned(out, tmp_path / 'scan.json')[0] == 0
    with Image.open(out / '07.png') as image:
        assert (np.asarray(image) != CLEAN).sum() == 1
