"""The comparison of log and labels can say no."""

from __future__ import annotations

import copy
import dataclasses
import json

import pytest

from mmguard.tools.demo.dataset import SIZE
from mmguard.tools.demo.verification import read_log, verify

BATCH_SIZE = 4
TOTAL = BATCH_SIZE * SIZE[0] * SIZE[1]


@pytest.fixture
def records(dataset):
    """What a guard logs that reads every file once."""
    return [
        {
            'iter': number,
            'total': TOTAL,
            'skipped_pixels': sum(values.values()),
            'samples': [
                {'source': file, 'skipped': sum(values.values()), 'values': {str(v): n for v, n in values.items()}}
            ],
            'losses': {'decode_head.loss_decode.0': {'skipped': 0, 'remapped': 0}},
        }
        for number, (file, values) in enumerate(dataset.planted.items(), 1)
    ]


def objections(records, dataset, iters=5):
    return verify(records, dataset, iters, BATCH_SIZE).objections


def test_all_fits(records, dataset):
    verdict = verify(records, dataset, 5, BATCH_SIZE)
    assert verdict.objections == []
    assert verdict.pixels == sum(sum(values.values()) for values in dataset.planted.values())
    assert set(verdict.reads.values()) == {1}


def test_a_round_that_is_not_full(records, dataset):
    assert objections(records[:3], dataset, iters=3) == []
    assert objections(records + records[:1], dataset, iters=7) == []


def test_a_file_that_is_met_again_is_logged_without_values(records, dataset, tmp_path):
    again = copy.deepcopy(records)
    for record in again:
        for sample in record['samples']:
            del sample['values']
    path = tmp_path / 'label_guard.jsonl'
    path.write_text('\n'.join(map(json.dumps, records + again)))
    assert objections(read_log(path), dataset, iters=10) == []
    path.write_text('\n'.join(map(json.dumps, again + records)))
    assert 'was logged with {}' in objections(read_log(path), dataset, iters=10)[0]


def test_a_file_that_the_guard_missed(records, dataset):
    (objection,) = objections(records[1:], dataset)
    assert records[0]['samples'][0]['source'] in objection


def test_a_file_met_too_often(records, dataset):
    assert 'logged 2 times, trained on 1' in objections(records + records[:1], dataset)[0]


@pytest.mark.parametrize('change', ['value', 'count', 'sum', 'total', 'twice', 'clean file'])
def test_a_log_that_does_not_fit(records, dataset, change):
    records = copy.deepcopy(records)
    record, sample = records[0], records[0]['samples'][0]
    value, count = next(iter(sample['values'].items()))
    if change == 'value':
        sample['values']['199'] = sample['values'].pop(value)
    elif change == 'count':
        sample['values'][value] = count + 1
    elif change == 'sum':
        record['skipped_pixels'] += 1
    elif change == 'total':
        record['total'] -= 1
    elif change == 'twice':
        record['losses']['decode_head.loss_decode.0']['skipped'] = 1
    else:
        record['samples'].append({'source': dataset.clean[0], 'skipped': 0, 'values': {'13': 1}})
    assert objections(records, dataset)


def test_label_files_that_are_not_as_planted(records, dataset):
    file = next(iter(dataset.planted))
    other = dataclasses.replace(dataset, planted={**dataset.planted, file: {200: 1}})
    assert any('holds' in objection for objection in objections(records, other))
