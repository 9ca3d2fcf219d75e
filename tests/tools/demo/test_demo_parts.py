"""The parts of the demo: its data, its folder, what it reads of a log, and its picture."""

from __future__ import annotations

import copy
import json

import cv2
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from mmguard.log.guard_log import read_log
from mmguard.tools.demo.dataset import RAW_IDS, SIZE, SLIP, write_dataset
from mmguard.tools.demo.folder import empty_folder
from mmguard.tools.demo.pictures import COLOURS, draw_offenders, overlay
from mmguard.tools.demo.street import street_scene
from mmguard.tools.demo.training import Narrator, is_label_error, last_traceback, objections


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


@pytest.mark.parametrize('seed', range(8))
def test_scene_labels_are_train_ids(seed):
    image, label = street_scene(*SIZE, seed=seed)
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


BATCH_SIZE = 4
HEAD = """\
11/21 09:01:42 - mmengine - INFO - Hooks will be executed
Traceback (most recent call last):
  File "/somewhere/mmguard/demo/train.py", line 46, in <module>
    main()
  File "/somewhere/mmseg/models/losses/cross_entropy_loss.py", line 45, in cross_entropy
    loss = F.cross_entropy(
"""
PLANTED = {'a.png': {26: 3, 200: 4}}
LOG = """\
before_run:
11/21 09:01:46 - mmengine - INFO - guard: first offence.
  likely cause: MG101
11/21 09:01:46 - mmengine - INFO - Exp name: guarded
11/21 09:01:46 - mmengine - INFO - Iter(train) [ 1/12]  lr: 1.0000e-02  time: 2.0194  loss: 19.0400  decode.x: 1.6300
11/21 09:01:47 - mmengine - INFO - Iter(train) [ 2/12]  lr: 1.0000e-02  time: 1.0000  loss: nan  decode.x: nan
"""


@pytest.mark.parametrize(
    ('error', 'by_label'),
    [
        ('IndexError: Target 26 is out of bounds.', True),
        ('torch.AcceleratorError: CUDA error: device-side assert triggered\nCUDA kernel errors might be', True),
        ('IndexError: Target 27 is out of bounds.', False),
        ("ModuleNotFoundError: No module named 'mmcv._ext'", False),
    ],
)
def test_only_a_planted_label_counts(error, by_label):
    output = (HEAD + error).splitlines()
    assert is_label_error(output, PLANTED) == by_label
    assert last_traceback(output)[-1] == error.splitlines()[0]


def test_no_traceback():
    assert last_traceback(['Killed']) == []
    assert not is_label_error(['Killed'], PLANTED)


def test_a_log_in_brief():
    said: list = []
    narrator = Narrator(said.append)
    for line in LOG.splitlines():
        narrator.hear(line)
    assert said == ['guard: first offence.', '  likely cause: MG101', '1/12  loss 19.04', '2/12  loss nan']
    assert narrator.losses[1] == 19.04
    assert narrator.losses[2] != narrator.losses[2]


@pytest.fixture
def records(dataset):
    """What a guard logs that reads every file once."""
    return [
        {
            'mode': 'train',
            'iter': number,
            'total': BATCH_SIZE * SIZE[0] * SIZE[1],
            'skipped_pixels': sum(values.values()),
            'samples': [
                {
                    'source': file,
                    'skipped': sum(values.values()),
                    'remapped': 0,
                    'values': {str(v): n for v, n in values.items()},
                }
            ],
            'losses': {},
        }
        for number, (file, values) in enumerate(dataset.planted.items(), 1)
    ]


@pytest.fixture
def object_to(dataset, tmp_path):
    def find(records, iters):
        (tmp_path / 'label_guard.jsonl').write_text('\n'.join(map(json.dumps, records)))
        return objections(read_log(tmp_path).files(), dataset, iters, BATCH_SIZE)

    return find


def test_all_fits_also_in_a_round_that_is_not_full(records, object_to):
    assert object_to(records, 5) == []
    assert object_to(records[:3], 3) == []


def test_a_file_that_is_met_again_is_logged_without_values(records, object_to):
    again = copy.deepcopy(records)
    for record in again:
        for sample in record['samples']:
            del sample['values']
    assert object_to(records + again, 10) == []
    assert object_to(records, 10)


@pytest.mark.parametrize('change', ['value', 'count', 'clean file', 'missed', 'again'])
def test_a_log_that_does_not_fit(records, dataset, change, object_to):
    record, sample = records[0], records[0]['samples'][0]
    value, count = next(iter(sample['values'].items()))
    if change == 'value':
        sample['values']['199'] = sample['values'].pop(value)
    elif change == 'count':
        sample['values'][value] = count + 1
    elif change == 'clean file':
        clean = next(file for file in dataset.labels if file not in dataset.planted)
        record['samples'].append({'source': clean, 'skipped': 1, 'remapped': 0, 'values': {'13': 1}})
    else:
        records = records[1:] if change == 'missed' else [*records, records[0]]
    assert object_to(records, 5)


def test_the_picture_is_readable_and_shows_the_cars(dataset, tmp_path):
    draw_offenders(dataset, tmp_path / 'offenders.png')
    shown = cv2.imread(str(tmp_path / 'offenders.png')).astype(float)
    assert min(shown.shape[:2]) > 400
    loud = 255 * np.array(to_rgb(COLOURS[26]))[::-1]
    alike = np.abs(shown / shown.max(axis=2, keepdims=True).clip(1) - loud / loud.max()).max(axis=2) < 0.08
    assert alike.sum() > 2000


def test_overlay_colours_these_pixels_only():
    photo = np.full((40, 60, 3), 100, np.uint8)
    label = np.zeros((40, 60), np.uint8)
    label[10:20, 30:50] = 200
    picture = overlay(photo, label, {200: '#ff0000'}).astype(int)
    assert picture.shape == (80, 120, 3)
    red = picture[..., 0] - picture[..., 1] > 100
    inside = np.zeros_like(red)
    inside[21:39, 61:99] = True  # the outline is white
    assert (red == inside).all()
