"""``mmguard env``."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'env',
        help='what is installed, whether it goes together, and what to do where it does not',
        description='A verdict per line on Python, the stack (OpenMMLab, onedl), torch and its CUDA, NumPy, OpenCV, '
        'mmengine, mmcv and its ops, mmsegmentation and mmdetection: ok, warning or error, and what to do. Exit code 1 '
        'where there is an error. '
        'Packages are imported in a child process; --no-import reads files alone.',
    )
    parser.add_argument('--json', metavar='FILE', help="write the verdicts as JSON, too; '-': to standard output")
    parser.add_argument('--no-import', action='store_true', help='do not try the imports (at once, but sees less)')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.environment.command import show_environment

    return show_environment(args.json, try_imports=not args.no_import)
