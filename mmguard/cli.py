"""Command line: parses arguments, runs one command, and turns exceptions into messages and exit codes."""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import re
import sys
import traceback
from typing import Any, Iterable, List, NoReturn, Optional, Sequence, Tuple

from mmguard.commands import CLEAN, COULD_NOT_RUN, FOUND, INTERRUPTED, READER_GONE
from mmguard.commands.outputs import check_outputs
from mmguard.commands.packages import find_install_command
from mmguard.entry_points import find_entry_points
from mmguard.errors import CannotRun, collect_failures
from mmguard.language import translate
from mmguard.text import REPORT_ADVICE, describe_broken_import, describe_error, describe_exit, visible, visible_name
from mmguard.version import __version__

DESCRIPTION = 'Keeps bad labels from killing, or quietly spoiling, a training run.'

#: Commands in the order of the help. Each is a module or package in ``mmguard.commands``; commands of plugins follow.
COMMANDS = ('demo', 'scan', 'report', 'check', 'dry-run', 'apply', 'fix', 'env', 'trace', 'replay', 'explain')
#: Group of entry points for commands. Each entry point is a function that adds the parser of one command.
GROUP = 'mmguard.commands'

#: Names of arguments with the file that a command reads or writes; error messages name this file.
_TARGETS = ('config', 'configs', 'target', 'log', 'record', 'out')


def main(argv: Optional[List[str]] = None) -> int:
    """Run a command, and turn any exception into a message on standard error.

    Returns:
        int: The exit code; 2 if the command could not run, 130 if Ctrl-C ended it.
    """
    args, is_parsed = argparse.Namespace(command='', debug=False), False
    if not _has_streams():
        return COULD_NOT_RUN
    _write_every_character()
    try:
        argv = sys.argv[1:] if argv is None else argv
        parser = _build_parser(argv)
        parser.parse_args(argv, args)
        is_parsed = True
        if not hasattr(args, 'run'):
            parser.print_help()
            return CLEAN
        check_outputs(args)
        with collect_failures() as failures:
            code: int = args.run(args)
        sys.stdout.flush()
        for reason in failures.values():
            print(visible_name(f'mmguard {args.command}: could not run: {reason}'), file=sys.stderr)
        return COULD_NOT_RUN if failures and code in (CLEAN, FOUND) else code
    except KeyboardInterrupt:
        print(f'\n{getattr(args, "interrupted", "mmguard: interrupted")}', file=sys.stderr)
        return INTERRUPTED
    except (Exception, SystemExit) as error:  # SystemExit: a config is a program, and its code 1 would mean findings
        if isinstance(error, SystemExit) and not is_parsed:  # argparse has printed help, version or usage
            raise
        # rich turns a BrokenPipeError into a SystemExit.
        if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes again when it exits
            return READER_GONE
        if args.debug:
            print(visible(traceback.format_exc()), file=sys.stderr)
        print(visible_name(f'mmguard {args.command}'.rstrip() + f': {_describe_failure(error, args)}'), file=sys.stderr)
        return COULD_NOT_RUN


def _has_streams() -> bool:
    """Replace closed standard streams by the null device, and return True if stdout was open."""
    closed = [name for name in ('stdin', 'stdout', 'stderr') if getattr(sys, name) is None]
    for name in closed:
        # Open until the process ends. For writing, so that reading a closed stdin raises instead of returning EOF.
        setattr(sys, name, open(os.devnull, 'w'))  # noqa: SIM115
    if 'stdout' in closed:
        print('mmguard: standard output is closed; redirect it to a file, or to /dev/null', file=sys.stderr)
    return 'stdout' not in closed


def _write_every_character() -> None:
    """Escape what stdout cannot encode and, on GitHub Actions, texts that would run as workflow commands."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors='backslashreplace')
    streams: List[Any] = [sys.stdout, sys.stderr] if os.environ.get('GITHUB_ACTIONS') else []
    for stream in streams:  # GitHub's runner executes '::' at the beginning of a line, and '##[' anywhere
        stream.write_commands = write = getattr(stream, 'write_commands', stream.write)
        stream.write = lambda text, write=write: write(re.sub(r'(?m)(^[^\S\n]*:|##)(?=[:[])', r'\1 ', text))


def _build_parser(argv: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return a parser for the command that ``argv`` names, or for all commands if ``argv`` does not name one."""
    first = next((word for word in argv if not word.startswith('-')), '')
    others = {} if first in COMMANDS else {point.name: point.load for point in find_entry_points(GROUP)}
    names = list(dict.fromkeys((*COMMANDS, *others)))
    parser = Parser(prog='mmguard', description=translate(DESCRIPTION))
    parser.add_argument('--version', action='version', version=f'mmguard {__version__}')
    debug = translate('show the traceback if the command fails')
    parser.add_argument('--debug', action='store_true', help=debug)
    commands = parser.add_subparsers(title=translate('commands'), metavar='COMMAND', dest='command')
    for name in [first] if first in names else names:
        if name in COMMANDS:
            importlib.import_module(f'mmguard.commands.{name.replace("-", "_")}').add_to(commands)
        else:
            others[name]()(commands)
        summary = commands._choices_actions[-1]
        summary.help = translate(summary.help or '')
        # A default would override the value that the parent parser has set.
        commands.choices[name].add_argument('--debug', action='store_true', default=argparse.SUPPRESS, help=debug)
    return parser


def _describe_failure(error: BaseException, args: argparse.Namespace) -> str:
    if isinstance(error, CannotRun):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and find_install_command(error):
        return str(find_install_command(error))
    named = next((getattr(args, name) for name in _TARGETS if getattr(args, name, None)), '')
    file = f'{" ".join(named) if isinstance(named, list) else named}: ' if named else ''
    if isinstance(error, SystemExit):
        return f'{file}code that it imports or runs {describe_exit(error)}'
    if describe_broken_import(error):
        return describe_broken_import(error)
    if isinstance(error, OSError):
        return f'{error.filename}: {error.strerror}' if error.filename and error.strerror else f'{file}{error}'
    return (
        f'{file}{describe_error(error)}. This should not happen: {REPORT_ADVICE}, and what this command shows with '
        f'--debug'
    )


class Parser(argparse.ArgumentParser):
    """Parser that suggests the nearest option for an unknown option, and does not accept abbreviated options.

    If ``--ignore`` were accepted for ``fix --ignore-index``, it could be confused with ``check --ignore``.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments, allow_abbrev=False)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Tuple[Any, List[str]]:  # type: ignore[override]
        # Fail here: the usage of the parent parser would not list the options of this command.
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self._refuse(unknown)
        return found, unknown

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"argument COMMAND: invalid choice: '(.*?)'", message)
        known = [name for action in self._actions if action.dest == 'command' for name in action.choices or ()]
        nearest = _find_nearest(unknown.group(1), known) if unknown else None
        super().error(visible_name(f'{message}; did you mean {nearest}?' if nearest else message))

    def _refuse(self, unknown: Sequence[str]) -> NoReturn:
        options = [word.partition('=')[0] for word in unknown if word.startswith('-')]
        if not options:
            self.error(f'unrecognized arguments: {" ".join(unknown)}')
        named = []
        for option in options:
            nearest = _find_nearest(option, self._option_string_actions)
            named.append(f'{option} (did you mean {nearest}?)' if nearest else option)
        self.error(f'no such option: {", ".join(named)}')


def _find_nearest(option: str, options: Iterable[str]) -> Optional[str]:
    options = list(options)
    begun = [name for name in options if name.startswith(option)]
    return next(iter(begun or difflib.get_close_matches(option, options, n=1)), None)


if __name__ == '__main__':
    if sys.path[0] == os.getcwd() and not __file__.startswith(sys.path[0]):
        del sys.path[0]  # where `python -m` puts the working directory
    sys.exit(main())
