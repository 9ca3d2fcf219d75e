"""Settings of a command: which findings it shows, which severity changes its exit code, and its output format."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple, Type

from mmguard.commands import CLEAN, FOUND
from mmguard.commands.arguments import add_arguments
from mmguard.errors import CannotRun
from mmguard.language import Message
from mmguard.text import quantity, shorten, visible_name

if TYPE_CHECKING:
    from mmguard.commands.machine_formats import ReportEntry
    from mmguard.findings.finding import Finding
    from mmguard.findings.rule import Rule

_MACHINE_FORMATS = ('github', 'sarif', 'junit')
#: Values of ``--format``; ``'text'`` is for people, ``'json'`` is the same as ``--json -``.
FORMATS = ('text', 'json', *_MACHINE_FORMATS)
#: The severities of :mod:`mmguard.findings.finding`, repeated here because ``--help`` must not import that module.
SEVERITIES = ('error', 'warning', 'info')
WARNING = 'warning'

#: Maximum size of pyproject.toml in bytes, and of dots in a line (parsing is quadratic in the levels of a key).
_LARGEST, _MOST_DOTS = 1 << 20, 200
_SETTINGS = {'select': list, 'ignore': list, 'fail-on': str, 'format': str}


class RuleSelection(NamedTuple):
    """Selected rules, severity and format, from the options and ``[tool.mmguard]`` of pyproject.toml."""

    select: Tuple[str, ...] = ()  #: Codes, or beginnings of codes; empty for all codes.
    ignore: Tuple[str, ...] = ()  #: Codes, or beginnings of codes, to leave out.
    fail_on: str = WARNING  #: Lowest severity of a finding that gives exit code 1.
    format: str = 'text'  #: One of ``FORMATS``.
    hidden_by: str = ''  #: The options, or the pyproject.toml, that hide findings.

    @property
    def for_people(self) -> bool:
        """True if the text for people goes to standard output; otherwise it goes to standard error."""
        return self.format == 'text'

    def select_rules(self) -> List[Type[Rule]]:
        """Return the rules chosen by ``select`` and ``ignore``."""
        from mmguard.findings.engine import select_rules

        try:
            return select_rules(self.select, self.ignore)
        except ValueError as error:
            raise CannotRun(str(error)) from error

    def choose_failures(self, failures: Mapping[str, str]) -> List[str]:
        """Return the reasons why chosen rules could not run."""
        codes = {rule.code for rule in self.select_rules()}
        return [reason for code, reason in failures.items() if code in codes]

    def split(self, findings: Sequence[Finding]) -> Tuple[List[Finding], List[Finding], List[str]]:
        """Return the selected findings, the hidden findings, and a list with a note about them (or [])."""
        codes = {rule.code for rule in self.select_rules()}
        shown, hidden = ([one for one in findings if (one.code in codes) is kept] for kept in (True, False))
        note = Message('{number} hidden by {by}', number=quantity(len(hidden), 'finding'), by=self.hidden_by)
        return shown, hidden, [note] * bool(hidden)

    def build_entries(
        self, target: str, shown: Sequence[Finding], hidden: Sequence[Finding] = (), roots: Sequence[str] = ()
    ) -> List[ReportEntry]:
        """Return an entry for each finding if :meth:`write` writes the format, else []."""
        if self.format not in _MACHINE_FORMATS:
            return []
        from mmguard.commands.machine_formats import build_entry

        groups = (('', shown), (self.hidden_by, hidden))
        return [build_entry(finding, target, roots, by) for by, findings in groups for finding in findings]

    def write(self, command: str, target: str, entries: Sequence[ReportEntry], failed: Sequence[str] = ()) -> None:
        """Write the findings to standard output if the format is ``'github'``, ``'sarif'`` or ``'junit'``."""
        if self.format in _MACHINE_FORMATS:
            from mmguard.commands.machine_formats import write_entries

            write = getattr(sys.stdout, 'write_commands' if self.format == 'github' else 'write', sys.stdout.write)
            write(write_entries(self.format, command, target, entries, failed))
            sys.stdout.flush()

    def choose_exit_code(self, severities: Sequence[str]) -> int:
        """Return the exit code for findings of these severities."""
        failing = SEVERITIES[: SEVERITIES.index(self.fail_on) + 1]
        return FOUND if any(severity in failing for severity in severities) else CLEAN


def codes(text: str) -> List[str]:
    """Parse codes separated by commas."""
    return [code.strip().upper() for code in text.split(',') if code.strip()]


_SELECTION = """\
--select CODES  show only these findings, such as MG201,MG214 (or MG21 for all MG21x)
--ignore CODES  show all findings except these
"""
_OUTCOME = """\
--fail-on  exit with 1 for findings of this severity or above; default: warning
--format  format of standard output: text (default), json (as --json -), github (annotations), sarif or junit. The text
  goes to standard error unless the format is text
"""


def add_selection(parser: Any) -> None:
    """Add the options that select findings; an option that is not given is ``None``, so that pyproject.toml decides."""
    add_arguments(parser, _SELECTION, select=codes, ignore=codes)
    add_outcome(parser)


def add_outcome(parser: Any) -> None:
    """Add the options for exit code and output format."""
    add_arguments(parser, _OUTCOME, fail_on=SEVERITIES, format=FORMATS)


def read_selection(args: argparse.Namespace) -> RuleSelection:
    """Return the rule selection. A setting comes from the command line, or else from the nearest pyproject.toml.

    Raises:
        CannotRun: pyproject.toml cannot be read, or a setting is wrong.
    """
    path, settings = _read_settings([getattr(args, 'target', ''), *getattr(args, 'configs', ())])
    given = {name: getattr(args, name, None) for name in RuleSelection._fields}
    chosen = {name: value for name, value in given.items() if value is not None}
    if args.json == '-':  # overrides the setting of a project, and excludes another --format
        if chosen.get('format', 'json') != 'json':
            said = f'--json - and --format {args.format} both write to standard output'
            raise CannotRun(f'{said}: name a file for --json')
        chosen['format'] = 'json'
    found = RuleSelection()._replace(**{**settings, **chosen})
    if found.format == 'json' and args.json is None:
        args.json = '-'
    hiding = [f'--{name}' if name in chosen else path for name in ('select', 'ignore') if getattr(found, name)]
    by = ', '.join(dict.fromkeys(hiding))
    return found._replace(select=tuple(found.select), ignore=tuple(found.ignore), hidden_by=by)


def _read_settings(targets: Sequence[str]) -> Tuple[str, Dict[str, Any]]:
    """Return the nearest pyproject.toml outside of the targets, and its ``[tool.mmguard]``; print its path if used."""
    from mmguard.files.regular import read_regular

    path = _find_project(targets)
    try:
        table = dict(_parse(read_regular(path, _LARGEST)).get('tool', {}).get('mmguard', {})) if path else {}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CannotRun(f'{path} cannot be read: {error}') from error
    settings: Dict[str, Any] = {}
    for name, value in table.items():
        kind = _SETTINGS.get(name)
        if kind is None:
            raise CannotRun(f'{path}: [tool.mmguard] has no setting {shorten(name)}; known: {", ".join(_SETTINGS)}')
        known = {'fail-on': SEVERITIES, 'format': FORMATS}.get(name)
        if not isinstance(value, kind) or (known and value not in known):
            expected = f'one of {", ".join(known)}' if known else 'a list of codes'
            raise CannotRun(f'{path}: {name} of [tool.mmguard] must be {expected}, got {shorten(value)}')
        settings[name.replace('-', '_')] = codes(','.join(map(str, value))) if kind is list else value
    if settings:
        print(visible_name(f'settings: {path}'), file=sys.stderr)
    return path, settings


def _find_project(targets: Sequence[str]) -> str:
    """Return the nearest pyproject.toml between the working directory and the root of its repository, '' without one.

    A pyproject.toml inside of a target belongs to the scanned data, and must not hide findings.
    """
    from mmguard.files.regular import list_project

    inside = tuple(os.path.join(os.path.realpath(one), '') for one in targets if os.path.isdir(one))
    paths = (os.path.join(folder, 'pyproject.toml') for folder in list_project(os.getcwd(), ['.git']))
    found = next((path for path in paths if os.path.isfile(path) and not os.path.realpath(path).startswith(inside)), '')
    return found and os.path.relpath(found)


def _parse(data: bytes) -> Dict[str, Any]:
    if b'tool.mmguard' not in data:
        return {}
    if max(line.count(b'.') for line in data.splitlines()) > _MOST_DOTS:
        raise ValueError(f'a line has more than {_MOST_DOTS} dots')
    try:
        toml: Any = importlib.import_module('tomllib' if sys.version_info >= (3, 11) else 'tomli')
    except ImportError as error:
        raise ValueError('[tool.mmguard] needs tomli before Python 3.11: pip install tomli') from error
    settings: Dict[str, Any] = toml.loads(data.decode('utf-8'))
    return settings
