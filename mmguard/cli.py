"""The command line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, List, Optional

from mmguard.version import __version__

INTERRUPTED = 130


def main(argv: Optional[List[str]] = None) -> int:
    """Runs a command.

    Args:
        argv (list[str], optional): The words after ``mmguard``. ``None``: those of the command line.

    Returns:
        int: its exit code; 130 where Ctrl-C ended it.
    """
    parser = argparse.ArgumentParser(
        prog='mmguard', description='Keeps bad labels from killing, or quietly spoiling, a training run.'
    )
    parser.add_argument('--version', action='version', version=f'mmguard {__version__}')
    commands = parser.add_subparsers(title='commands', metavar='COMMAND')
    _add_demo(commands)
    args = parser.parse_args(argv)
    if not hasattr(args, 'run'):
        parser.print_help()
        return 0
    try:
        return args.run(args)
    except KeyboardInterrupt:
        print(f'\n{args.interrupted}', file=sys.stderr)
        return INTERRUPTED


def _add_demo(commands: Any) -> None:
    parser = commands.add_parser(
        'demo',
        help='watch a bad label end a stock training, and the guarded one survive it',
        description='Draws a small Cityscapes with invalid labels in it, shows how stock PIDNet-S of MMSegmentation '
        'dies on them and how the guarded one trains on, compares the counts it logged with the label files, and '
        'draws what it found. Takes about a minute on two CPU cores.',
    )
    parser.add_argument('--out', type=Path, default=Path('mmguard_demo'), metavar='DIR', help='default: %(default)s')
    parser.add_argument(
        '--iters', type=_positive, default=20, metavar='N', help='iterations of the guarded training, default: 20'
    )
    parser.set_defaults(
        run=_demo, interrupted='mmguard demo: interrupted; its child processes have ended, run it again at any time'
    )


def _demo(args: argparse.Namespace) -> int:
    from mmguard.demo.story import run_demo

    return run_demo(args.out, args.iters)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f'must be at least 1, got {number}')
    return number


if __name__ == '__main__':
    sys.exit(main())
