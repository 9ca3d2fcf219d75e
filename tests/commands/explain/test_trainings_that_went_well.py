"""Logs of trainings that went well, warnings and caught exceptions among them: nothing is said of any."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Callable, Dict

import pytest
from warm import TORCHRUN, run

from mmguard.commands.explain.explanation import explain_text

PLAIN = """
import logging
import sys
import traceback
import warnings
import torch
import torch.nn.functional as F

logging.basicConfig(level=logging.INFO, format='%(asctime)s - %(name)s - %(levelname)s - %(message)s')
log = logging.getLogger('train')
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1, 201):
    if step == 20:
        try:
            F.cross_entropy(torch.rand(2, 3), torch.tensor([0, 255]))
        except IndexError:
            traceback.print_exc()  # a sample that is left out
            log.exception('sample 17 is left out')
    if step == 40:
        warnings.warn('RuntimeError: CUDA error is not likely here')
        print('Warning: loss is not finite would be said here', file=sys.stderr)
    x = torch.rand(4, 3)
    loss = F.cross_entropy(model(x), torch.tensor([0, 1, 0, 1]))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    log.info('Epoch [1][%d/200] lr: 0.1, loss: %.4f, mean_error: %.3f, grad_norm: inf', step, loss, loss / 2)
log.info('class  IoU  Acc: road 77.1 88.0, person nan nan; best mIoU 0.5')
"""
BARS = """
import sys

for epoch in range(3):
    for step in range(200):
        bar = f'{step // 2}%|###   | {step}/200 [00:01<00:02, 99.1it/s, loss=0.51]'
        print(f'\\rEpoch {epoch}:  {bar}', end='', file=sys.stderr)
    print(file=sys.stderr)
    print(f'epoch {epoch} train_loss 0.5 val_loss 0.6 error_rate 0.1')
print('Training done. Exit code 0.')
"""
RANKS = """
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group('gloo')
model = DistributedDataParallel(torch.nn.Linear(3, 2), find_unused_parameters=True)
for step in range(50):
    loss = model(torch.rand(4, 3)).sum()
    loss.backward()
    print(f'rank {dist.get_rank()} step {step} loss: {float(loss):.4f}', flush=True)
dist.barrier()
os._exit(0)  # gloo may abort as it is taken down, where one rank is gone before the other
"""
MMENGINE = """
import sys
import torch
from mmengine.model import BaseModel
from mmengine.runner import Runner

class Model(BaseModel):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, *inputs, mode='loss'):
        return dict(loss=self.layer(torch.stack(inputs)).square().mean(), error_rate=torch.zeros(()))

runner = Runner(
    Model(), work_dir=sys.argv[1], train_dataloader=dict(
        dataset=[torch.rand(3) for _ in range(64)], batch_size=2, sampler=dict(type='DefaultSampler', shuffle=True)),
    train_cfg=dict(by_epoch=True, max_epochs=2), optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
    default_hooks=dict(logger=dict(type='LoggerHook', interval=2)))
runner.train()
"""


def output_of(source: str, *launcher: str) -> str:
    with TemporaryDirectory() as folder:
        script = Path(folder, 'train.py')
        script.write_text(source)
        environment = {**os.environ, 'OMP_NUM_THREADS': '1', 'GLOO_SOCKET_IFNAME': 'lo'}
        program = [TORCHRUN, *launcher, str(script)] if launcher else [source, folder]
        done = run(*program, name=str(script), environment=environment)
    assert done.returncode == 0, done.output
    return done.output


@lru_cache(maxsize=None)
def log_of(kind: str) -> str:
    if kind == 'mmengine':
        pytest.importorskip('mmengine')
        return output_of(MMENGINE)
    if kind == 'torchrun':
        return output_of(RANKS, '--standalone', '--nproc_per_node=2')
    return output_of({'plain': PLAIN, 'bars': BARS}[kind])


def each_line(mark: str) -> Callable[[str], str]:
    return lambda text: ''.join(f'{mark}{line}\n' for line in text.splitlines())


FORMS: Dict[str, Callable[[str], str]] = {
    'as it is': lambda text: text,
    'windows': lambda text: text.replace('\n', '\r\n'),
    'rank': each_line('[rank0]: '),
    'tee': each_line('[default1]:'),
    'colored': each_line('\x1b[32m'),
    'twice': lambda text: text + text,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize('kind', ['plain', 'bars', 'torchrun', 'mmengine'])
@pytest.mark.parametrize('form', FORMS)
def test_nothing_is_said(kind: str, form: str) -> None:
    found = explain_text([FORMS[form](log_of(kind))])
    assert found is None, (found.trouble, found.signature)
