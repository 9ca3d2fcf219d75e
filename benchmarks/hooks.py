"""LabelGuardHook and FlightRecorderHook: host time per iteration at batch 16 with four guarded losses."""

from __future__ import annotations

import tempfile
from typing import Any, Dict, List

import torch
from mmengine.hooks import RuntimeInfoHook
from mmengine.runner import Runner
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample
from torch import nn
from torch.utils.data import DataLoader

import mmguard
from benchmarks.timing import Row, interleaved

BATCH = 16


class _Model(nn.Module):
    """Four guarded losses, as in PIDNet."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)
        self.losses = nn.ModuleList(mmguard.GuardedCrossEntropyLoss() for _ in range(4))

    def forward(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError('never run: the hook is called by itself')


def rows(device: str, rounds: int) -> List[Row]:
    with tempfile.TemporaryDirectory() as folder:
        runner = built_runner(_Model().to(device), folder)
        hook, recorder, stock = mmguard.LabelGuardHook(), mmguard.FlightRecorderHook(), RuntimeInfoHook()
        hook.before_run(runner)
        hook.before_train(runner)
        stock.after_train_iter(runner, 0, None, {f'loss_{i}': torch.zeros(()) for i in range(6)})
        clean, offending = batch(False), batch(True)
        log_vars = {f'loss_{i}': torch.zeros((), device=device) for i in range(6)}

        def iteration(seen: Dict[str, Any]) -> None:
            hook.after_train_iter(runner, 0, seen, log_vars)

        def recorded(seen: Dict[str, Any]) -> None:
            recorder.before_train_iter(runner, 0, seen)

        calls = {
            'clean': _counted(runner.model, device, lambda: iteration(clean)),
            'offending': _counted(runner.model, device, lambda: iteration(offending)),
            'recorder': lambda: recorded(offending),
            'RuntimeInfoHook': lambda: stock.after_train_iter(runner, 0, clean, log_vars),
        }
        with recorder.around_training(runner):
            ms = interleaved(calls, rounds * 10, device)
        hook.after_run(runner)
    return [
        Row('hook, clean iteration, ms', ms['clean'], None, 0.15),
        Row('hook, 4 offending images, ms', ms['offending'], None, 2.0),
        Row('recorder, 4 offending images, ms', ms['recorder'], None, 0.5),
        Row("hook, clean / mmengine's RuntimeInfoHook", ms['clean'], ms['RuntimeInfoHook'], None),
    ]


def built_runner(model: nn.Module, folder: str) -> Runner:
    """Build a runner that is ready to train."""
    runner = Runner(
        model=model,
        work_dir=folder,
        train_dataloader=DataLoader([0] * BATCH),
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=10_000),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
        log_level='ERROR',
    )
    runner._train_loop = runner.build_train_loop(runner._train_loop)
    runner.optim_wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    return runner


def _counted(model: nn.Module, device: str, call: Any) -> Any:
    """Return ``call`` preceded by new counts of every loss, as in a training iteration."""
    valid = torch.tensor(1000, device=device)

    def run() -> None:
        for loss in model.losses:
            loss._record(valid, 1000)
        call()

    return run


def batch(offending: bool, size: int = BATCH) -> Dict[str, Any]:
    """Return a batch of guarded samples; with ``offending`` the first four have invalid labels."""
    guard = mmguard.GuardSegLabels(num_classes=19)
    samples = []
    for number in range(size):
        label = torch.zeros(1, 64, 64, dtype=torch.int64)
        if offending and number < 4:
            label[0, :8] = 33
        sample = SegDataSample(metainfo=dict(img_path=f'image-{number}.png', seg_map_path=f'label-{number}.png'))
        sample.gt_sem_seg = PixelData(data=label)
        samples.append(guard({'data_samples': sample})['data_samples'])
    return {'data_samples': samples}
