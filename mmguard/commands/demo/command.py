"""``mmguard demo``."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Any

from mmguard.commands.arguments import positive
from mmguard.commands.exit_codes import CLEAN
from mmguard.compat.stack import INSTALL, STACKS, find_module_folder
from mmguard.errors import CannotRun


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'demo',
        help='watch a bad label end a stock training, and the guarded one survive it',
        description='Draws a small Cityscapes with invalid labels in it, shows how stock PIDNet-S of MMSegmentation '
        'dies on them and how the guarded one trains on, and finds them with `mmguard scan`, which draws them. '
        'Takes about a minute on two CPU cores.',
    )
    parser.add_argument(
        '--out', type=Path, default=Path('mmguard_demo'), metavar='DIR', help='folder to write to; default: %(default)s'
    )
    parser.add_argument(
        '--iters', type=positive, default=20, metavar='N', help='iterations of the guarded training; default: 20'
    )
    parser.add_argument('--data', action='store_true', help='only write the data set and stock.py, to try commands on')
    parser.set_defaults(
        run=run, interrupted='mmguard demo: interrupted; its child processes have ended, run it again at any time'
    )


def run(args: argparse.Namespace) -> int:
    if not args.data:
        _check_frameworks()  # nothing is written before

    from mmguard.commands.demo.story import run_demo

    run_demo(args.out, args.iters, args.data)
    return CLEAN


def _check_frameworks() -> None:
    """Import what a training needs.

    Raises:
        CannotRun: A package is missing; the message says how to install all that are.
    """
    missing = [module for module in ('mmengine', 'mmcv', 'mmseg') if find_module_folder(module) is None]
    if missing:
        commands = (' && '.join(INSTALL[stack][module] for module in missing) for stack in STACKS)
        raise CannotRun(f'needs {", ".join(missing)}: {", or ".join(commands)}')
    for module in ('mmcv.ops', 'mmseg', 'mmseg.models', 'mmseg.datasets', 'mmseg.engine'):
        importlib.import_module(module)
