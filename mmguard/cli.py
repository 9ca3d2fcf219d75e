"""The command line."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from typing import List, Optional

from mmguard.commands.packages import how_to_install
from mmguard.commands.parser import Parser
from mmguard.errors import CannotRun
from mmguard.failures import REPORT_IT, broken_import, words_of
from mmguard.version import __version__

COULD_NOT_RUN = 2
INTERRUPTED = 130
#: As a program that SIGPIPE ends: who read the output (`| head`) has gone.
READER_GONE = 141

#: Modules of ``mmguard.commands``, in the order of the help.
COMMANDS = ('demo', 'scan', 'report', 'check', 'apply', 'fix', 'env', 'trace', 'replay', 'nnunet', 'explain')


def main(argv: Optional[List[str]] = None) -> int:
    """Runs a command. Whatever it raises becomes words on standard error.

    Args:
        argv (list[str], optional): The words after ``mmguard``. ``None``: those of the command line.

    Returns:
        int: its exit code; 2 where it could not run, 130 where Ctrl-C ended it.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    if not hasattr(args, 'run'):
        parser.print_help()
        return 0
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print(f'\n{getattr(args, "interrupted", "mmguard: interrupted")}', file=sys.stderr)
        return INTERRUPTED
    except (Exception, SystemExit) as error:  # SystemExit: a config is a program, and its code 1 would mean findings
        # rich makes a SystemExit of it.
        if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
            return READER_GONE
        if args.debug:
            traceback.print_exc()
        print(f'mmguard {args.command}: {_said_of(error)}', file=sys.stderr)
        return COULD_NOT_RUN


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog='mmguard', description='Keeps bad labels from killing, or quietly spoiling, a training run.')
    parser.add_argument('--version', action='version', version=f'mmguard {__version__}')
    debug = 'show the traceback of what a command could not do'
    parser.add_argument('--debug', action='store_true', help=debug)
    commands = parser.add_subparsers(title='commands', metavar='COMMAND', dest='command')
    for name in COMMANDS:
        importlib.import_module(f'mmguard.commands.{name}').add_to(commands)
        # No default of its own, which would undo that of the parser above.
        commands.choices[name].add_argument('--debug', action='store_true', default=argparse.SUPPRESS, help=debug)
    return parser


def _said_of(error: BaseException) -> str:
    if isinstance(error, CannotRun):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and how_to_install(error):
        return str(how_to_install(error))
    if broken_import(error):
        return broken_import(error)
    if isinstance(error, OSError):
        return f'{error.filename}: {error.strerror}' if error.filename and error.strerror else str(error)
    return f'{words_of(error)}\nThis should not happen: {REPORT_IT}, and what this command shows with --debug'


if __name__ == '__main__':
    sys.exit(main())
