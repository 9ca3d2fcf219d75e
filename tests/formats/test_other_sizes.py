"""Images whose size on disk is not that in the annotations."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mmguard.formats.files import LOOKED_AT, find_size_mismatches


def test_sizes_are_height_and_width_turned_by_a_tag_or_not(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # stored lying, shown upright
    Image.new('RGB', (30, 20)).save(tmp_path / 'plain.png')
    Image.new('RGB', (30, 20)).save(tmp_path / 'turned.jpg', exif=exif)
    Image.new('RGB', (15, 10)).save(tmp_path / 'small.jpg')
    names = ['plain.png', 'turned.jpg', 'turned.jpg', 'small.jpg']
    stated = np.array([[20.0, 30.0], [20.0, 30.0], [30.0, 20.0], [20.0, 30.0]])
    compared, found = find_size_mismatches(str(tmp_path), names, stated)
    assert compared == 4
    assert found == [('small.jpg', (10, 15), (20, 30))]


@pytest.mark.parametrize('reported', [(0.0, 30.0), (float('nan'), 30.0), (float('-inf'), float('-inf'))])
def test_a_size_that_is_not_reported_is_not_compared(tmp_path: Path, reported: tuple) -> None:
    Image.new('RGB', (30, 20)).save(tmp_path / 'a.png')
    assert find_size_mismatches(str(tmp_path), ['a.png'], np.array([reported])) == (0, [])


def test_what_cannot_be_read_is_left_to_others(tmp_path: Path) -> None:
    (tmp_path / 'text.jpg').write_text('no image')
    (tmp_path / 'folder.jpg').mkdir()
    os.mkfifo(tmp_path / 'pipe.jpg')
    names = ['text.jpg', 'folder.jpg', 'pipe.jpg', 'missing.jpg', '', 'null\0byte.jpg']
    assert find_size_mismatches(str(tmp_path), names, np.full((6, 2), 20.0)) == (0, [])
    assert find_size_mismatches(str(tmp_path), [], np.empty((0, 2))) == (0, [])


def test_of_many_images_some_are_looked_at_from_the_first_to_the_last(tmp_path: Path) -> None:
    Image.new('RGB', (30, 20)).save(tmp_path / 'a.png')
    names = ['a.png'] * 5000
    sizes = np.tile([20.0, 30.0], (5000, 1))
    sizes[[0, -1]] = 7
    compared, found = find_size_mismatches(str(tmp_path), names, sizes)
    assert compared == LOOKED_AT
    assert len(found) == 2
