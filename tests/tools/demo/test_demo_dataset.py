"""The data set: its layout, and what is planted in it."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from mmguard.tools.demo.dataset import RAW_IDS, SIZE, SLIP, plant, write_dataset
from mmguard.tools.demo.street import street_scene


def test_planted_counts_are_those_of_the_files(dataset):
    for file in dataset.labels:
        label = cv2.imread(str(dataset.root / file), cv2.IMREAD_UNCHANGED)
        values, counts = np.unique(label[(label >= 19) & (label != 255)], return_counts=True)
        assert dict(zip(values.tolist(), counts.tolist())) == dataset.planted.get(file, {})
        assert cv2.imread(str(dataset.image_of(file))).shape == (SIZE[1], SIZE[0], 3)


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
        assert again.image_of(file).read_bytes() == dataset.image_of(file).read_bytes()


def test_nothing_is_planted_in_a_clean_map():
    _, label = street_scene(*SIZE, seed=5)
    spoilt, planted = plant(label, '', np.random.default_rng(0))
    assert planted == {}
    assert (spoilt == label).all()


@pytest.mark.parametrize('seed', range(8))
def test_scene_labels_are_train_ids(seed):
    image, label = street_scene(*SIZE, seed=seed)
    assert image.dtype == label.dtype == np.uint8
    assert image.std() > 20
    present = set(np.unique(label).tolist())
    assert present - {255} <= set(range(19))
    assert {0, 2, 8, 10, 13, 255} <= present  # road, houses, trees, sky, cars, the own bonnet
