"""Two processes under DistributedDataParallel, gloo."""

from __future__ import annotations

import os
import os.path as osp
import socket
import subprocess
import sys
from glob import glob

import pytest
from small_runs import expected_samples, read_lines

pytestmark = pytest.mark.slow

CHILD = """
import os, sys
import torch.distributed as dist
from small_runs import tiny_config, Run
dist.init_process_group('gloo')
rank = dist.get_rank()
config = tiny_config(sys.argv[1], sys.argv[2], iters=3)
config.experiment_name = config.visualizer.name = 'two-ranks'
config.launcher = 'pytorch'
config.env_cfg.dist_cfg = dict(backend='gloo')
config.model_wrapper_cfg = dict(type='MMDistributedDataParallel', device_ids=None, find_unused_parameters=False)
config.custom_hooks[0].interval = 2
# Images are dealt out in turns. Rank 0: 0, 2; 3, 5; 0, 2. Rank 1: 6, 4; 7, 7; 1, 4, so it is clean after the first.
config.train_dataloader.dataset.indices = [0, 6, 2, 4, 3, 7, 5, 7, 0, 1, 2, 4]
run = Run(config).train()
name = f'train/guard/{sys.argv[3]}'
print('SUMS', rank, run.runner.message_hub.get_scalar(name).data[0].tolist(), flush=True)
dist.destroy_process_group()
"""


def test_scalars_are_summed_over_ranks_and_no_rank_waits(cityscapes: str, work_dir: str) -> None:
    """The third iteration is reported after training: also by the rank that saw nothing."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = str(probe.getsockname()[1])
    here = osp.dirname(__file__)
    paths = os.pathsep.join([osp.dirname(here), osp.dirname(osp.dirname(here))])
    env = {
        **os.environ,
        'PYTHONPATH': paths,
        'MASTER_ADDR': '127.0.0.1',
        'MASTER_PORT': port,
        'WORLD_SIZE': '2',
        'OMP_NUM_THREADS': '1',
    }
    children = [
        subprocess.Popen(
            [sys.executable, '-c', CHILD, cityscapes, work_dir, 'skipped_pixels'],
            env={**env, 'RANK': str(rank), 'LOCAL_RANK': str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [child.communicate(timeout=200)[0] for child in children]
    finally:
        for child in children:
            child.kill()
    skipped = [sample['skipped'] for sample in expected_samples(cityscapes, 'gtFine/train')]
    sums = [skipped[0] + skipped[2] + skipped[3] + skipped[5] + skipped[6], skipped[0] + skipped[2]]
    for rank, output in enumerate(outputs):
        assert children[rank].returncode == 0, output[-3000:]
        assert f'SUMS {rank} {[float(s) for s in sums]}' in output
    by_rank = [
        [(line['iter'], line['skipped_pixels']) for line in read_lines(glob(osp.join(work_dir, '*', name))[0])]
        for name in ('label_guard.jsonl', 'label_guard.rank1.jsonl')
    ]
    assert by_rank == [[(2, sums[0] - skipped[6]), (3, sums[1])], [(2, skipped[6])]]
