"""`mmguard scan` of label files of points without a config: SemanticKITTI's, beside their scans."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Tuple

import numpy as np
import pytest

from mmguard.cli import main
from mmguard.tools.scan.points import PointSettings


def make(root: Path, planted: int = 2) -> Path:
    """Three files of four points, the numbers of objects in the upper bits; the second one's last value is planted."""
    for sample in range(3):
        labels = np.array([0, 1, 19, planted if sample == 1 else 2], np.uint32) + (40000 << 16)
        _write(root / 'labels' / f'{sample}.label', labels)
        _write(root / 'velodyne' / f'{sample}.bin', np.zeros((4, 4), np.float32))
    return root / 'labels'


def _write(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    values.tofile(path)


def scanned(target: Path, capsys: Any, *options: str) -> Tuple[int, str]:
    code = main(['scan', str(target), '--num-classes', '20', '--processes', '1', *options])
    shown = capsys.readouterr()
    return code, ' '.join((shown.out + shown.err).split())


def test_a_value_is_named_with_its_file(tmp_path: Path, capsys: Any) -> None:
    code, text = scanned(make(tmp_path, 40), capsys)
    assert (code, 'value 40 (1 time) in 1 of 3 files in: 1.label' in text) == (1, True), text
    assert scanned(tmp_path / 'labels' / '0.label', capsys)[0] == 0
    assert scanned(tmp_path, capsys, '--label-map', '40:0')[0] == 0


def test_clean_files_are_known_from_the_journal(tmp_path: Path, capsys: Any) -> None:
    target, journal = make(tmp_path, 259), str(tmp_path / 'journal')
    assert scanned(target, capsys, '--journal', journal)[0] == 1
    code, text = scanned(target, capsys, '--journal', journal, '--resume')
    assert (code, '3 files, 3 of them unchanged' in text, '259 (1 time)' in text) == (1, True, True), text
    make(tmp_path)
    assert scanned(target, capsys, '--journal', journal, '--resume')[0] == 0


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (b'', 'MG132 error: Files cannot be read: empty'),
        (b'\0' * 15, 'its size is no multiple of 4 bytes (uint32): 1.label'),
        (b'\0' * 12, 'MG130 error: Label files have another number of points than their scans. seen: 1 file, '
         'e.g. 1.label: 3 labels, 4 points'),
        (np.arange(2000, dtype=np.uint32).tobytes(), 'more than 1,024 values: no labels, or not uint32: 1.label'),
    ],
    ids=['empty', 'part of a number', 'too few', 'no labels'],
)  # fmt: skip
def test_a_damaged_file_is_named(content: bytes, words: str, tmp_path: Path, capsys: Any) -> None:
    target = make(tmp_path)
    (target / '1.label').write_bytes(content)
    code, text = scanned(target, capsys)
    assert (code, words in text) == (1, True), text


def test_a_scan_that_is_missing_or_cut(tmp_path: Path, capsys: Any) -> None:
    target = make(tmp_path)
    (tmp_path / 'velodyne' / '0.bin').unlink()
    (tmp_path / 'velodyne' / '1.bin').write_bytes(b'\0' * 60)
    code, text = scanned(target, capsys)
    assert (code, '1 missing scan:' in text, 'points size is no multiple of 4 float32' in text) == (1, True, True), text


def test_files_whose_dtype_nobody_says_are_not_guessed(tmp_path: Path, capsys: Any) -> None:
    make(tmp_path)
    code, text = scanned(tmp_path / 'velodyne', capsys)
    assert (code, 'name the config of mmdet3d' in text) == (2, True), text


def test_what_a_table_makes_of_a_value() -> None:
    settings = PointSettings(2, ignore_index=255, classes=(0, 1, 9), value_map=((7, 255),))
    table = settings.table()
    assert [table[value] for value in (0, 1, 2, 3, -1, 7, 255)] == [0, 1, 9, 3, -1, 255, 255]
    assert [settings.is_valid(label) for label in (0, 1, 9, 3, -1, 255)] == [True, True, False, False, False, True]
    # 255 in a file cannot be looked up, whatever the head ignores.
    assert not PointSettings(2, ignore_index=255, classes=(0, 1, 9)).is_valid(255)
