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


def test_most_files_are_clean_and_both_faults_occur(dataset):
    assert sorted(dataset.clean + list(dataset.planted)) == sorted(dataset.labels)
    assert len(dataset.clean) > len(dataset.planted)
    values = {value for planted in dataset.planted.values() for value in planted}
    assert SLIP in values
    assert len(values & set(RAW_IDS.values())) > 1


def test_layout_is_that_of_cityscapes(dataset):
    for split in ('train', 'val'):
        labels = sorted((dataset.root / 'gtFine' / split).glob('*/*_gtFine_labelTrainIds.png'))
        images = sorted((dataset.root / 'leftImg8bit' / split).glob('*/*_leftImg8bit.png'))
        assert [file.name.split('_gtFine')[0] for file in labels] == [file.name.split('_left')[0] for file in images]
        assert labels
    for file in dataset.labels:
        image = cv2.imread(str(dataset.image_of(file)))
        assert image.shape == (SIZE[1], SIZE[0], 3)
        assert image.std() > 20
    names = (dataset.root / 'clean.txt').read_text().split()
    assert [f'gtFine/train/{name}_gtFine_labelTrainIds.png' for name in names] == dataset.clean


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
    present = set(np.unique(label).tolist())
    assert present - {255} <= set(range(19))
    assert {0, 2, 8, 10, 13, 255} <= present  # road, houses, trees, sky, cars, the own bonnet
