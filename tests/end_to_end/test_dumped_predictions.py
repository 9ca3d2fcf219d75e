"""What a run hands on, and what others pickle, is read by a Python that has no mmguard."""

from __future__ import annotations

import os.path as osp
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, List

import pytest
import torch
from mmengine.dataset import pseudo_collate
from small_det_runs import MAKERS, build, small_config
from small_runs import GUARD, LOAD, PACK, Run, add_loop, tiny_config

pytestmark = pytest.mark.slow

#: Unpickles a file where mmguard does not exist, and says what its samples carry.
READ = """
import pickle, sys
class Without:
    def find_spec(self, name, *_):
        if name.split('.')[0] == 'mmguard':
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Without())
with open(sys.argv[1], 'rb') as file:
    print([sample.get('label_guard') for sample in pickle.load(file)])
"""


def read_without_mmguard(path: Path) -> List[Any]:
    ended = subprocess.run([sys.executable, '-c', READ, str(path)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return list(eval(ended.stdout.splitlines()[-1]))


def test_predictions_of_the_test_loop(cityscapes: str, work_dir: str, tmp_path: Path) -> None:
    dump = tmp_path / 'predictions.pkl'
    config = tiny_config(cityscapes, work_dir)
    add_loop(config, 'test')
    config.test_evaluator = [config.test_evaluator, dict(type='DumpResults', out_file_path=str(dump))]
    run = Run(config).test()
    records = read_without_mmguard(dump)
    assert [record['pixels']['total'] for record in records] == [64 * 64] * 3
    skipped = [record['pixels'].get('skipped', 0) for record in records]
    assert sum(skipped) == sum(line['skipped_pixels'] for line in run.lines('test')) > 0


def test_samples_of_boxes(tmp_path: Path) -> None:
    config = small_config('mask_rcnn', MAKERS['mask_rcnn'](str(tmp_path / 'data')), str(tmp_path))
    _, dataset = build(config)
    samples = [dataset[number]['data_samples'] for number in range(8)]
    dump = tmp_path / 'samples.pkl'
    dump.write_bytes(pickle.dumps(samples))
    found = [record['instances'] for record in read_without_mmguard(dump)]
    assert sum(one.get('skipped', 0) for one in found) == sum(sum(one.get('reasons', {}).values()) for one in found) > 0


def test_a_checkpoint_holds_plain_data(cityscapes: str, work_dir: str, tmp_path: Path) -> None:
    config = tiny_config(cityscapes, work_dir)
    config.default_hooks.checkpoint = dict(type='CheckpointHook', by_epoch=False, interval=4)
    Run(config).train()
    state = torch.load(osp.join(work_dir, 'iter_4.pth'), weights_only=False)
    dump = tmp_path / 'checkpoint.pkl'
    dump.write_bytes(pickle.dumps([{'label_guard': state['message_hub']['runtime_info']['label_guard'], **state}]))
    assert len(read_without_mmguard(dump)[0]) == 11


def test_samples_of_a_guard_with_a_label_map(cityscapes: str, work_dir: str, tmp_path: Path) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK, {**GUARD, 'label_map': {24: 13, '*': 255}}])
    dataset = Run(config).runner.build_dataloader(config.train_dataloader).dataset
    dump = tmp_path / 'batch.pkl'
    dump.write_bytes(pickle.dumps(pseudo_collate([dataset[0], dataset[2]])['data_samples']))
    assert [record['pixels']['mapped'] > 0 for record in read_without_mmguard(dump)] == [True, True]
