"""Options and argument types of the commands."""

from __future__ import annotations

import argparse
import json
import os
import re
from typing import Any, Dict, Tuple

from mmguard.files.regular import read_regular
from mmguard.labels import OTHERS
from mmguard.text import shorten

#: Largest label and count; larger numbers overflow in mmguard or in the frameworks.
_LARGEST_LABEL, _LARGEST_COUNT = 2**63 - 1, 2**31 - 1


#: Options of several commands: of those that print findings, that offer edits of a config, and that read a config.
VERBOSE = '-v, --verbose  show all causes, edits and notes, not only three sentences per finding\n'
NO_VERIFY = '--no-verify  offer edits without building and calling the parts that they change\n'
RUN_CODE = """\
--run-code  run the code that a CONFIG in YAML or JSON names, as for a CONFIG in Python; use it only if you trust CONFIG
"""
#: Pattern of an argument: names, metavar, and after two spaces the help, which may continue in indented lines.
_ARGUMENT = re.compile(r'^([^\s,]+(?:, [^\s,]+)*)(?: (\S+))?  (.*(?:\n +.*)*)', re.MULTILINE)


def add_arguments(parser: Any, text: str, **settings: Any) -> None:
    """Add the arguments in a text to a parser. An argument with neither metavar nor settings is a switch.

    Args:
        parser (ArgumentParser): A parser, or an argument group of a parser.
        text (str): One argument per line, such as ``-n, --number N  number of files``; indented lines continue it.
        settings: {name of an argument: its type, its choices, or a dict of keywords of ``add_argument``}.
    """
    for names, metavar, described in _ARGUMENT.findall(text):
        flags = names.split(', ')
        given = settings.get(flags[-1].lstrip('-').replace('-', '_'), {})
        keywords = dict(given if isinstance(given, dict) else {'type' if callable(given) else 'choices': given})
        if metavar:
            keywords['metavar'] = metavar
        elif not given:
            keywords['action'] = 'store_true'
        parser.add_argument(*flags, **keywords, help=' '.join(described.split()))


def label(text: str) -> int:
    """Parse a label, an integer of at most 64 bits."""
    return _parse_integer(text, _LARGEST_LABEL)


def positive(text: str) -> int:
    """Parse an integer of at least 1."""
    number = _parse_integer(text, _LARGEST_COUNT)
    if number < 1:
        raise argparse.ArgumentTypeError(f'must be at least 1, got {number}')
    return number


def processes(text: str) -> int:
    """Parse a number of processes from 1 to 1024."""
    return _parse_integer(str(positive(text)), 1024)


def _parse_integer(text: str, limit: int) -> int:
    number = int(text)
    if abs(number) > limit:
        raise argparse.ArgumentTypeError(f'must be at most {limit:,}, got {shorten(text)}')
    return number


def class_names(text: str) -> Tuple[str, ...]:
    """Parse class names from ``'cat,dog'`` or a file with one name per line.

    Example:
        >>> class_names('cat, dog')
        ('cat', 'dog')
    """
    try:
        names = read_regular(text).decode('utf-8-sig').splitlines() if os.path.isfile(text) else text.split(',')
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f'{shorten(text)} cannot be read: {error}') from error
    return tuple(name.strip() for name in names if name.strip())


def label_map(text: str) -> Dict[Any, int]:
    """Parse a label map from ``'7:0,8:1'``, ``'{"7": 0, "8": 1}'`` or a .json file; ``'*'`` maps all other values.

    Example:
        >>> label_map('7:0, 8:1, *:255')
        {7: 0, 8: 1, '*': 255}
    """
    try:
        written = read_regular(text).decode() if text.endswith('.json') else text
        if written.lstrip().startswith('{'):
            pairs = json.loads(written).items()
        else:
            pairs = [pair.split(':') for pair in written.split(',')]
        return {_parse_value(raw): label(str(int(to))) for raw, to in pairs}
    except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise argparse.ArgumentTypeError(
            f'expected a label map such as 7:0,8:1 (VALUE:CLASS; *:255 maps all other values), or a .json file that '
            f'contains a label map, got {shorten(text)}'
        ) from error


def _parse_value(raw: Any) -> Any:
    text = str(raw).strip()
    return OTHERS if text == OTHERS else label(str(int(raw)))
