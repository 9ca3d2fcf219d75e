"""The parts of the demo: its data, its folder, and what it reads of a log."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from mmguard.tools.demo.dataset import RAW_IDS, SIZE, SLIP, write_dataset
from mmguard.tools.demo.story import empty_folder
from mmguard.tools.demo.street import draw_street
from mmguard.tools.demo.training import Narrator

pytest.importorskip('mmseg')


def test_planted_counts_are_those_of_the_files(dataset):
    for file in dataset.labels:
        label = cv2.imread(str(dataset.root / file), cv2.IMREAD_UNCHANGED)
        values, counts = np.unique(label[(label >= 19) & (label != 255)], return_counts=True)
        assert dict(zip(values.tolist(), counts.tolist())) == dataset.planted.get(file, {})
        assert cv2.imread(str(dataset.find_image(file))).shape == (SIZE[1], SIZE[0], 3)


def test_most_files_are_clean_and_both_faults_occur(dataset):
    assert len(dataset.labels) > 2 * len(dataset.planted)
    values = {value for planted in dataset.planted.values() for value in planted}
    assert SLIP in values
    assert len(values & set(RAW_IDS.values())) > 1


def test_a_seed_gives_the_same_data_set(dataset, tmp_path):
    again = write_dataset(tmp_path)
    assert again.planted == dataset.planted
    for file in (dataset.labels[0], dataset.labels[-1]):
        assert (again.root / file).read_bytes() == (dataset.root / file).read_bytes()
        assert again.find_image(file).read_bytes() == dataset.find_image(file).read_bytes()


@pytest.mark.parametrize('seed', range(8))
def test_scene_labels_are_train_ids(seed):
    image, label = draw_street(*SIZE, seed=seed)
    assert image.dtype == label.dtype == np.uint8
    assert image.std() > 20
    present = set(np.unique(label).tolist())
    assert present - {255} <= set(range(19))
    assert {0, 2, 8, 10, 13, 255} <= present  # road, houses, trees, sky, cars, the own bonnet


def test_made_anew(tmp_path):
    folder = empty_folder(tmp_path / 'a' / 'demo')
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
    said: list = []
    narrator = Narrator(said.append)
    for line in LOG.splitlines():
        narrator.hear(line)
    assert said == ['guard: first offence.', '  likely cause: MG101', '1/12  loss 19.04', '2/12  loss nan']
    assert narrator.losses[1] == 19.04
    assert narrator.losses[2] != narrator.losses[2]
