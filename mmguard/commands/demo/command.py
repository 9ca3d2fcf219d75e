"""Command ``mmguard demo``, which draws a data set, trains without and with mmguard, and scans the labels."""

from __future__ import annotations

import argparse
import importlib
import math
import re
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from mmguard.commands import CLEAN, FOUND
from mmguard.commands.arguments import add_arguments, positive
from mmguard.commands.child import build_python_command
from mmguard.compat.stack import INSTALL, STACKS, build_base_source, find_module_folder
from mmguard.errors import CannotRun
from mmguard.files.regular import write_whole

_ARGUMENTS = """\
--out DIR  folder to write to; default: %(default)s
--iters N  iterations of the guarded training; default: 20
--data  only write the data set and stock.py, without any training
"""
STOCK = 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'
#: File that marks a folder as created by the demo, so that the next demo may empty the folder.
MARK_FILE = '.mmguard_demo'

SMALL_CONFIG = """\
# PIDNet-S on Cityscapes as MMSegmentation ships it, made small enough for two CPU cores: its model, its four losses and
# their class weights are untouched. Run from this folder:  python -m mmguard.commands.demo.train stock.py
_base_ = {stock}

data_root = 'cityscapes'
crop_size = (256, 512)  # whole images, so that every count can be compared with the label files

norm_cfg = dict(type='BN')
model = dict(
    data_preprocessor=dict(size=crop_size),
    backbone=dict(norm_cfg=norm_cfg, init_cfg=None),
    decode_head=dict(norm_cfg=norm_cfg),
)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='GenerateEdge', edge_width=4),
    dict(type='PackSegInputs'),
]
train_dataloader = dict(
    batch_size=4,
    num_workers=0,
    persistent_workers=False,
    dataset=dict(data_root=data_root, pipeline=train_pipeline),
)
train_cfg = dict(type='IterBasedTrainLoop', max_iters={iters}, val_interval={beyond})
val_dataloader = val_cfg = val_evaluator = None
test_dataloader = test_cfg = test_evaluator = None
log_processor = dict(window_size=1)  # no averages over iterations
default_hooks = dict(logger=dict(interval=1), checkpoint=None)
env_cfg = dict(cudnn_benchmark=False)
"""
#: Either a message of the guard in mmengine's log, with its continuation lines, or an iteration with its loss.
_SAID = re.compile(r' - (guard: .*(?:\n(?!\d\d/\d\d ).*)*)|Iter\(train\) +\[ *(\d+/\d+)\].* loss: (\S+)')
_SCAN_CODE = 'from mmguard.cli import main\nsys.exit(main(sys.argv[1:]))\n'


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'demo',
        help='watch an invalid label crash a stock training, and the same training with guards run to its end',
        description='Draws a small data set in the layout of Cityscapes, with invalid labels. Stock PIDNet-S of '
        'MMSegmentation crashes at these labels; PIDNet-S with guards trains to the end. `mmguard scan` then finds and '
        'draws the invalid labels. Takes about a minute on two CPU cores.',
    )
    out, iters = dict(type=Path, default=Path('mmguard_demo')), dict(type=positive, default=20)
    add_arguments(parser, _ARGUMENTS, out=out, iters=iters)
    parser.set_defaults(
        run=run, interrupted='mmguard demo: interrupted; its child processes have ended, run it again at any time'
    )


def run(args: argparse.Namespace) -> int:
    if not args.data:
        _check_frameworks()  # nothing is written before
    run_demo(args.out, args.iters, args.data)
    return CLEAN


def _check_frameworks() -> None:
    """Import the packages that a training needs.

    Raises:
        CannotRun: A package is missing; the message has the commands that install all missing ones.
    """
    missing = [module for module in ('mmengine', 'mmcv', 'mmseg') if find_module_folder(module) is None]
    if missing:
        commands = (' && '.join(INSTALL[stack][module] for module in missing) for stack in STACKS)
        raise CannotRun(f'needs {", ".join(missing)}: {", or ".join(commands)}')
    for module in ('mmcv.ops', 'mmseg', 'mmseg.models', 'mmseg.datasets', 'mmseg.engine'):
        importlib.import_module(module)


def empty_folder(folder: Path) -> None:
    """Empty or create the demo's folder. Refuse a file, and a folder with files that the demo did not make."""
    is_ours = (folder / MARK_FILE).is_file()
    if folder.exists() and not is_ours and (not folder.is_dir() or any(folder.iterdir())):
        raise CannotRun(f'{folder} is a file, or holds files that the demo did not make: give another with --out')
    folder.mkdir(parents=True, exist_ok=True)
    # The mark is written first and never removed, so the next run may empty the folder of an interrupted one.
    write_whole(folder / MARK_FILE, b'made by mmguard demo, which empties this folder each time\n')
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != MARK_FILE:
            path.unlink()


def run_demo(folder: Path, iters: int, only_data: bool) -> None:
    """Run the demo; if ``only_data`` is true, only write its data set and the stock config.

    Raises:
        CannotRun: A training or the scan did not end as expected.
    """
    from mmguard.commands.apply.command import apply
    from mmguard.commands.console import Console
    from mmguard.commands.demo.dataset import write_dataset
    from mmguard.commands.demo.train import train_in_child

    empty_folder(folder)
    console = Console(soft_wrap=True)
    title = 'A small data set in the layout of Cityscapes'
    console.print(title if only_data else f'1/4  {title}', style='bold cyan')
    planted = list(write_dataset(folder / 'cityscapes').values())
    pixels = ', '.join(
        f'{value} ({count:,} px)' for value, count in sorted(sum(map(Counter, planted), Counter()).items())
    )
    console.print(f'{len(planted)} street scenes, {sum(map(bool, planted))} of them with invalid labels: {pixels}')
    small = SMALL_CONFIG.format(stock=build_base_source(STOCK), iters=iters, beyond=iters + 1)
    write_whole(folder / 'stock.py', small.encode())
    if only_data:
        target = 'cityscapes --num-classes 19' if find_module_folder('mmseg') is None else 'stock.py'
        console.print(f'Try it there: cd {shlex.quote(str(folder))} && mmguard scan {target}')
        return
    console.print('\n2/4  Stock PIDNet-S from MMSegmentation, in a process of its own', style='bold cyan')
    code, output = train_in_child('stock', folder)
    console.print('\n'.join(f'  | {line}' for line in output.splitlines()[-7:]), style='dim')
    if code == 0:
        raise CannotRun('the stock training did not crash at the planted invalid labels (see runs/stock.txt)')
    if not re.search('CUDA error: device-side assert|is out of bounds', output):
        raise CannotRun(f'stock.py ended with code {code}, but not because of a label (runs/stock.txt)')
    console.print(
        'It crashes: a label is out of range for the 19 classes. On a GPU the message is `CUDA error: device-side '
        'assert triggered`. It names neither value nor file, and the process is unusable afterwards.',
        style='bold red',
    )
    console.print(f'\n3/4  The same training with mmguard: {iters} iterations', style='bold cyan')
    apply(str(folder / 'stock.py'), folder / 'guarded.py')
    code, output = train_in_child('guarded', folder)
    for said, iteration, loss in _SAID.findall(output):
        console.print(said or f'{iteration}  loss {loss}')
    losses = [float(loss) for _, _, loss in _SAID.findall(output) if loss]
    if code != 0 or len(losses) != iters or not all(map(math.isfinite, losses)):
        raise CannotRun(f'guarded.py ended with code {code} after {len(losses)} of {iters} losses (runs/guarded.txt)')
    console.print(f'It trains to the end: loss {losses[0]:.2f} -> {losses[-1]:.2f}.', style='bold green')
    console.print('\n4/4  mmguard scan stock.py, before any training', style='bold cyan')
    console.file.flush()  # before the output of another process
    command = [*build_python_command(_SCAN_CODE), 'scan', 'stock.py', '--html', 'labels.html']
    if subprocess.run(command, cwd=folder).returncode != FOUND:
        raise CannotRun('the scan did not find the invalid labels')
    console.print(
        f'\nIn {folder}:\n  labels.html  the findings of the scan, with the invalid pixels over their images\n'
        f'  guarded.py   the config with guards, written by `mmguard apply`\n'
        f'  runs         the logs of both trainings, and label_guard.jsonl'
    )
