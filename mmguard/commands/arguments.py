"""Argument types that several commands share."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any, Dict, Tuple

from mmguard.files.regular import read_regular
from mmguard.labels import OTHERS
from mmguard.text import shorten

#: Larger numbers overflow here or in the frameworks.
_LARGEST_LABEL, _LARGEST_COUNT = 2**63 - 1, 2**31 - 1


def add_verbose(parser: argparse.ArgumentParser) -> None:
    """Add ``--verbose``, for commands that print findings."""
    parser.add_argument(
        '-v', '--verbose', action='store_true', help='show all causes, edits and notes, not three sentences per finding'
    )


def add_no_verify(parser: argparse.ArgumentParser) -> None:
    """Add ``--no-verify``, for commands that offer edits of a config."""
    parser.add_argument(
        '--no-verify', action='store_true', help='offer edits without building and calling what they touch'
    )


def add_run_code(parser: Any) -> None:
    """Add ``--run-code``, for commands that take a config."""
    parser.add_argument(
        '--run-code',
        action='store_true',
        help='for a CONFIG in YAML or JSON that you trust: import and build the code that it names, as a .py is run',
    )


def label(text: str) -> int:
    """Parse an integer of 64 bits."""
    return _parse_integer(text, _LARGEST_LABEL)


def positive(text: str) -> int:
    """Parse an integer of at least 1."""
    number = _parse_integer(text, _LARGEST_COUNT)
    if number < 1:
        raise argparse.ArgumentTypeError(f'must be at least 1, got {number}')
    return number


def processes(text: str) -> int:
    """Parse a number of processes."""
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
    """Parse a label map from ``'7:0,8:1'``, ``'{"7": 0, "8": 1}'`` or a .json file; ``'*'``: all other values.

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
            f'write a label map as 7:0,8:1 (value in the file:class; *:255 for all others), or name a .json file of '
            f'it, got {shorten(text)}'
        ) from error


def _parse_value(raw: Any) -> Any:
    text = str(raw).strip()
    return OTHERS if text == OTHERS else label(str(int(raw)))
