"""The parts of the demo: its data, its folder, and what it shows of a log."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from put_file import put

from mmguard.commands.demo.command import empty_folder
from mmguard.commands.demo.dataset import RAW_IDS, SIZE, SLIP, write_dataset


def image_of(dataset, file):
    name = file.replace('gtFine/', 'leftImg8bit/', 1).replace('_gtFine_labelTrainIds.png', '_leftImg8bit.png')
    return dataset.root / name


pytest.importorskip('mmseg')


def test_planted_counts_are_those_of_the_files(dataset):
    for file, planted in dataset.planted.items():
        label = cv2.imread(str(dataset.root / file), cv2.IMREAD_UNCHANGED)
        values, counts = np.unique(label[(label >= 19) & (label != 255)], return_counts=True)
        assert dict(zip(values.tolist(), counts.tolist())) == planted
        assert cv2.imread(str(image_of(dataset, file))).shape == (SIZE[1], SIZE[0], 3)


def test_most_files_are_clean_and_both_faults_occur(dataset):
    planted = [values for values in dataset.planted.values() if values]
    assert len(dataset.planted) > 2 * len(planted)
    assert set().union(*planted) == {SLIP, *RAW_IDS.values()}


def test_a_seed_gives_the_same_data_set(dataset, tmp_path):
    assert write_dataset(tmp_path) == dataset.planted
    for file in (next(iter(dataset.planted)), next(reversed(dataset.planted))):
        for path in (dataset.root / file, image_of(dataset, file)):
            assert (tmp_path / path.relative_to(dataset.root)).read_bytes() == path.read_bytes()


def test_made_anew(tmp_path):
    folder = tmp_path / 'a' / 'demo'
    empty_folder(folder)
    put(folder / 'runs' / 'old.txt', 'old')
    kept = tmp_path / 'kept'
    put(kept / 'file', 'mine')
    (folder / 'link').symlink_to(kept)
    empty_folder(folder)
    assert [path.name for path in folder.iterdir()] == ['.mmguard_demo']
    assert (kept / 'file').read_text() == 'mine'
