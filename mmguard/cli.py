"""The command line."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import List, Optional

from mmguard.commands.packages import how_to_install
from mmguard.version import __version__

COULD_NOT_RUN = 2
INTERRUPTED = 130

#: Modules of ``mmguard.commands``, in the order of the help.
COMMANDS = ('demo', 'scan', 'report', 'check', 'apply', 'fix', 'env', 'trace', 'replay', 'nnunet', 'explain')


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
    commands = parser.add_subparsers(title='commands', metavar='COMMAND', dest='command')
    for name in COMMANDS:
        importlib.import_module(f'mmguard.commands.{name}').add_to(commands)
    args = parser.parse_args(argv)
    if not hasattr(args, 'run'):
        parser.print_help()
        return 0
    try:
        return args.run(args)
    except ModuleNotFoundError as error:
        way_out = how_to_install(error)
        if way_out is None:
            raise
        print(f'mmguard {args.command}: {way_out}', file=sys.stderr)
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print(f'\n{getattr(args, "interrupted", "mmguard: interrupted")}', file=sys.stderr)
        return INTERRUPTED


if __name__ == '__main__':
    sys.exit(main())
