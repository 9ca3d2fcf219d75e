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


SHOWN = """
from small_runs import tiny_config, add_loop, Run
config = distributed(tiny_config(sys.argv[1], sys.argv[2], iters=7))
config.default_hooks.logger.interval = 3
config.train_cfg.val_interval = 7
add_loop(config, 'val')
run = Run(config).train()
hub = run.runner.message_hub
for tag in ('train/guard/skipped_pixels', 'val/guard/val/skipped_pixels'):
    print('SUMS', hub.get_scalar(tag).data[0].tolist(), flush=True)
print('NAMES', sorted(name for name in hub.log_scalars if 'guard' in name), flush=True)
leave()
"""


def test_what_is_shown_adds_up_to_the_lines_of_all_ranks(cityscapes: str, work_dir: str) -> None:
    ranks = run_ranks(SHOWN, cityscapes, work_dir)
    lines = [line for path in glob(osp.join(work_dir, '*', 'label_guard*.jsonl')) for line in read_lines(path)]
    train, val = (
        {line.get('step', line['iter']): 0 for line in lines if line['mode'] == mode} for mode in ('train', 'val')
    )
    for line in lines:
        (train if line['mode'] == 'train' else val)[line.get('step', line['iter'])] += line['skipped_pixels']
    ends = (3, 6, 7)
    shown = [sum(n for at, n in train.items() if start < at <= end) for start, end in zip((0, *ends), ends)]
    assert sum(shown) == sum(train.values()) > 0
    for rank in ranks:
        assert rank.returncode == 0, rank.output[-3000:]
        assert rank.said('SUMS') == [str(shown), str(list(val.values()))]
        assert rank.said('NAMES') == ["['train/guard/skipped_pixels', 'val/guard/val/skipped_pixels']"]
    written = read_lines(glob(osp.join(work_dir, '*', 'vis_data', 'scalars.json'))[0])
    assert [line['guard/skipped_pixels'] for line in written if 'guard/skipped_pixels' in line] == shown
