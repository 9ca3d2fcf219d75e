"""Two processes under DistributedDataParallel, gloo."""

from __future__ import annotations

import os.path as osp
from glob import glob

import pytest
from ranks import run_ranks
from small_runs import expected_samples, read_lines

pytestmark = pytest.mark.slow

CHILD = """
from small_runs import tiny_config, Run
config = distributed(tiny_config(sys.argv[1], sys.argv[2], iters=3))
config.custom_hooks[0].interval = 2
# Images are dealt out in turns. Rank 0: 0, 2; 3, 5; 0, 2. Rank 1: 6, 4; 7, 7; 1, 4, so it is clean after the first.
config.train_dataloader.dataset.indices = [0, 6, 2, 4, 3, 7, 5, 7, 0, 1, 2, 4]
run = Run(config).train()
print('SUMS', run.runner.message_hub.get_scalar('train/guard/skipped_pixels').data[0].tolist(), flush=True)
leave()
"""


def test_scalars_are_summed_over_ranks_and_no_rank_waits(cityscapes: str, work_dir: str) -> None:
    """The third iteration is reported after training: also by the rank that saw nothing."""
    ranks = run_ranks(CHILD, cityscapes, work_dir)
    skipped = [sample['skipped'] for sample in expected_samples(cityscapes, 'gtFine/train')]
    sums = [skipped[0] + skipped[2] + skipped[3] + skipped[5] + skipped[6], skipped[0] + skipped[2]]
    for rank in ranks:
        assert rank.returncode == 0, rank.output[-3000:]
        assert rank.said('SUMS') == [str(sums)]
    by_rank = [
        [(line['iter'], line['skipped_pixels']) for line in read_lines(glob(osp.join(work_dir, '*', name))[0])]
        for name in ('label_guard.jsonl', 'label_guard.rank1.jsonl')
    ]
    assert by_rank == [[(2, sums[0] - skipped[6]), (3, sums[1])], [(2, skipped[6])]]
