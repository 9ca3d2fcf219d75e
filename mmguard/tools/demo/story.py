"""The complete demo: its folder, its config, and its four steps."""

from __future__ import annotations

import math
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import List

from mmguard.compat.stack import build_base_source
from mmguard.errors import CannotRun
from mmguard.files.regular import write_whole
from mmguard.text import quantity
from mmguard.tools.child import build_python_command
from mmguard.tools.console import Console
from mmguard.tools.demo.dataset import MEANING, NUM_CLASSES, write_dataset
from mmguard.tools.demo.training import CUDA_ERROR, Narrator, find_last_traceback, train_in_child
from mmguard.tools.exit_codes import FOUND

STOCK = 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'
BATCH_SIZE = 4
#: Marks a folder created by the demo, which may empty it.
MARK_FILE = '.mmguard_demo'

SMALL_CONFIG = """\
# PIDNet-S on Cityscapes as MMSegmentation ships it, made small enough for two CPU cores: its model, its four losses and
# their class weights are untouched. Run from this folder:  python -m mmguard.tools.demo.train stock.py
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
    batch_size={batch_size},
    num_workers=0,
    persistent_workers=False,
    dataset=dict(data_root=data_root, pipeline=train_pipeline),
)
train_cfg = dict(type='IterBasedTrainLoop', max_iters={iters}, val_interval={beyond})
val_dataloader = val_cfg = val_evaluator = None
test_dataloader = test_cfg = test_evaluator = None
log_processor = dict(window_size=1)  # every number of its own iteration
default_hooks = dict(logger=dict(interval=1), checkpoint=None)
env_cfg = dict(cudnn_benchmark=False)
"""
_SCAN_CODE = 'from mmguard.cli import main\nsys.exit(main(sys.argv[1:]))\n'


def write_stock(folder: Path, iters: int) -> None:
    """Write ``stock.py``."""
    small = SMALL_CONFIG.format(stock=build_base_source(STOCK), batch_size=BATCH_SIZE, iters=iters, beyond=iters + 1)
    write_whole(folder / 'stock.py', small.encode())


def empty_folder(folder: Path) -> Path:
    """Empty the demo's folder, or create it; refuse a file, and a folder with files not made by the demo."""
    if folder.exists() and not folder.is_dir():
        raise CannotRun(f'{folder} is a file; give another folder with --out')
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK_FILE).is_file():
        raise CannotRun(f'{folder} holds files that the demo did not make; give another folder with --out')
    folder.mkdir(parents=True, exist_ok=True)
    # The mark is written first and never removed, so the next run may empty the folder of an interrupted one.
    write_whole(folder / MARK_FILE, b'made by mmguard demo, which empties this folder each time\n')
    for path in folder.iterdir():
        if path.name == MARK_FILE:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return folder


def run_demo(folder: Path, iters: int, only_data: bool) -> None:
    """Run the demo, or only write its data and the stock config.

    Raises:
        CannotRun: A training or the scan did not end as it must.
    """
    empty_folder(folder)
    console = Console(soft_wrap=True)
    console.print('1/4  A small data set in the layout of Cityscapes', style='bold cyan')
    _write_data(console, folder)
    write_stock(folder, iters)
    if only_data:
        console.print(f'Try it there: cd {shlex.quote(str(folder))} && mmguard scan stock.py')
        return
    console.print('\n2/4  Stock PIDNet-S from MMSegmentation, in a process of its own', style='bold cyan')
    _watch_stock_die(console, folder)
    console.print(f'\n3/4  The same training with mmguard, {quantity(iters, "iteration")}', style='bold cyan')
    _watch_guarded_live(console, folder, iters)
    console.print('\n4/4  mmguard scan stock.py, before any training', style='bold cyan')
    console.file.flush()  # before the output of another process
    command = [*build_python_command(_SCAN_CODE), 'scan', 'stock.py', '--html', 'labels.html']
    if subprocess.run(command, cwd=folder).returncode != FOUND:
        raise CannotRun('the scan did not find the invalid labels')
    console.print(
        f'\nIn {folder}:\n  labels.html  the findings of the scan, with the invalid pixels over their images\n'
        f'  guarded.py   the guarded config: `mmguard apply` writes such a one of yours\n'
        f'  runs         the logs of both trainings, and label_guard.jsonl'
    )


def _write_data(console: Console, folder: Path) -> None:
    with console.status('drawing street scenes ...'):
        dataset = write_dataset(folder / 'cityscapes')
    console.print(f'{len(dataset.labels)} street scenes, with invalid labels planted in {len(dataset.planted)}:')
    for value, meaning in MEANING.items():
        pixels = [values[value] for values in dataset.planted.values() if value in values]
        if pixels:
            console.print(f'  value {value:3}  {meaning:17}  {sum(pixels):7,} px in {quantity(len(pixels), "file")}')


def _watch_stock_die(console: Console, folder: Path) -> None:
    output: List[str] = []
    with console.status('training ...'):
        code = train_in_child('stock.py', folder, output.append)
    end = find_last_traceback(output) or output[-12:]
    for line in end:
        console.print(f'  | {line}', style='dim')
    if code == 0:
        raise CannotRun('the stock training survived: it should have died on the planted labels (runs/stock.txt)')
    if not any(CUDA_ERROR in line or 'is out of bounds' in line for line in end):
        raise CannotRun(f'stock.py ended with code {code}, but not because of a label (runs/stock.txt)')
    console.print(
        f'It dies: a label was looked up among the classes 0..{NUM_CLASSES - 1}. On a GPU this is `{CUDA_ERROR}`: it '
        f'names '
        f'neither value nor file, and the process is unusable afterwards.',
        style='bold red',
    )


def _watch_guarded_live(console: Console, folder: Path, iters: int) -> None:
    from mmguard.tools.apply.command import apply

    apply(str(folder / 'stock.py'), folder / 'guarded.py')
    narrator = Narrator(console.print)
    code = train_in_child('guarded.py', folder, narrator.hear)
    losses = narrator.losses
    if code != 0 or len(losses) != iters or not all(map(math.isfinite, losses.values())):
        raise CannotRun(
            f'the guarded training ended with code {code} after {len(losses)} of {iters} losses (runs/guarded.txt)'
        )
    console.print(f'It trains to the end: loss {losses[1]:.2f} -> {losses[iters]:.2f}.', style='bold green')
