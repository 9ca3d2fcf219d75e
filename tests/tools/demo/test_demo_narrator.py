"""Condensing a log: losses and guard lines stay, in their order."""

from __future__ import annotations

from mmguard.tools.demo.narrator import Narrator

LOG = """\
11/21 09:01:43 - mmengine - INFO - Hooks will be executed in the following order:
before_run:
11/21 09:01:46 - mmengine - INFO - guard: iter 1: 7 of 64 px skipped (value 26) in 1 of 4 images, first: a.png
11/21 09:01:46 - mmengine - WARNING - guard: first offence.
  likely cause: MG101
11/21 09:01:46 - mmengine - INFO - Exp name: guarded
11/21 09:01:46 - mmengine - INFO - Iter(train) [ 1/12]  lr: 1.0000e-02  eta: 0:00:38  time: 2.0194  \
guard/skipped_pixels: 7.0000  loss: 19.0400  decode.loss_sem_p: 1.6300
11/21 09:01:47 - mmengine - INFO - Iter(train) [ 2/12]  lr: 1.0000e-02  eta: 0:00:38  time: 1.0000  \
guard/skipped_pixels: 0.0000  loss: nan  decode.loss_sem_p: nan
11/21 09:01:48 - mmengine - INFO - guard: summary
the table
"""


def test_condensed_log():
    said: list = []
    narrator = Narrator(said.append)
    for line in LOG.splitlines():
        narrator.hear(line)
    assert 'guard: summary' not in said
    narrator.finish()
    assert said == [
        ' 1/12  loss 19.04  (sem_p 1.63)  2.02 s',
        '       guard: iter 1: 7 of 64 px skipped (value 26) in 1 of 4 images, first: a.png',
        '       guard: first offence.',
        '         likely cause: MG101',
        ' 2/12  loss nan  (sem_p nan)  1.00 s   all labels valid',
        'guard: summary',
        'the table',
    ]
    assert narrator.scalars[1]['loss'] == 19.04
    assert narrator.scalars[2]['loss'] != narrator.scalars[2]['loss']
