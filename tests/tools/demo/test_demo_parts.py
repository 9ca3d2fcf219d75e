"""The parts of the demo: its data, its folder, and what it shows of a log."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from mmguard.tools.demo.dataset import RAW_IDS, SIZE, SLIP, draw_street, write_dataset
from mmguard.tools.demo.story import _SAID, empty_folder


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


@pytest.mark.parametrize('seed', range(8))
def test_scene_labels_are_train_ids(seed):
    image, label = draw_street(*SIZE, seed=seed)
    assert image.dtype == label.dtype == np.uint8
    assert image.std() > 20
    present = set(np.unique(label).tolist())
    assert present - {255} <= set(range(19))
    assert {0, 2, 8, 10, 13, 255} <= present  # road, houses, trees, sky, cars, the own hood


def test_made_anew(tmp_path):
    folder = tmp_path / 'a' / 'demo'
    empty_folder(folder)
    (folder / 'runs').mkdir(exist_ok=True)
    (folder / 'runs' / 'old.txt').write_text('old')
    kept = tmp_path / 'kept'
    kept.mkdir(exist_ok=True)
    (kept / 'file').write_text('mine')
    (folder / 'link').symlink_to(kept)
    empty_folder(folder)
    assert [path.name for path in folder.iterdir()] == ['.mmguard_demo']
    assert (kept / 'file').read_text() == 'mine'


LOG = """\
before_run:
11/21 09:01:46 - mmengine - INFO - guard: first offence.
  likely cause: MG101
11/21 09:01:46 - mmengine - INFO - Exp name: guarded
11/21 09:01:46 - mmengine - INFO - Iter(train) [ 1/12]  lr: 1.0000e-02  time: 2.0194  loss: 19.0400  decode.x: 1.6300
11/21 09:01:47 - mmengine - INFO - Iter(train) [ 2/12]  lr: 1.0000e-02  time: 1.0000  loss: nan  decode.x: nan
"""


def test_a_log_in_brief():
    assert _SAID.findall(LOG) == [
        ('guard: first offence.\n  likely cause: MG101', '', ''),
        ('', '1/12', '19.0400'),
        ('', '2/12', 'nan'),
    ]
