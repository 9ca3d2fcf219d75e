"""Descriptions of exceptions: the failure, its owner, and what to do."""

from __future__ import annotations

import os
import traceback
from typing import Optional

#: Advice for a failure of mmguard's own.
REPORT_IT = 'please report it in the issue tracker of mmguard, with the output of `mmguard env`'

_HERE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), '')


def words_of(error: BaseException, limit: int = 400) -> str:
    """Describe an exception in one line; for a failed import, name the package.

    Example:
        >>> words_of(IndexError('Target 24 is out of bounds.'))
        'IndexError: Target 24 is out of bounds.'
    """
    return broken_import(error) or _format_line(error, limit)


def broken_import(error: BaseException) -> str:
    """Return which package could not be imported, and why; empty if no import failed."""
    link: Optional[BaseException] = error
    while link is not None:
        package = _find_import(link)
        if package:
            return f'{package} cannot be imported: {_format_line(link)} (`mmguard env` shows what is installed)'
        link = link.__cause__ or (link.__context__ if isinstance(link, ImportError) else None)
    return ''


def own_failure(error: BaseException) -> str:
    """Return ``'mmguard/functional/softmax.py:31 in _kept'`` if mmguard's code raised an exception; else empty.

    Exceptions that mmguard raises on purpose are messages for the user, not failures.
    """
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not os.path.abspath(frames[-1].filename).startswith(_HERE):
        return ''
    last = frames[-1]
    if (last.line or '').startswith('raise'):
        return ''
    return f'mmguard/{last.filename[len(_HERE) :].replace(os.sep, "/")}:{last.lineno} in {last.name}'


def describe_exit(error: SystemExit) -> str:
    """Describe the end of a program that raises SystemExit.

    Example:
        >>> describe_exit(SystemExit(0))
        'ends the program (SystemExit: 0)'
    """
    return f'ends the program ({_format_line(error)}{line_of(error, ", ")})'


def line_of(error: BaseException, before: str = ' at ') -> str:
    """Return the line of the user's file that raised an exception; empty if unknown."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if 'site-packages' not in frame.filename]
    last = frames[-1] if frames else None
    if last is None or last.name != '<module>' or not os.path.isfile(last.filename):
        return ''
    return f'{before}{last.filename}:{last.lineno}'


def _find_import(error: BaseException) -> str:
    """Return the package whose import raised an exception."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        # mmengine runs a config as a module without a name.
        package = str(frame.f_globals.get('__name__', '')).partition('.')[0]
        if frame.f_code.co_name == '<module>' and package not in ('', '__main__', 'mmguard'):
            return package
    return ''


def _format_line(error: BaseException, limit: int = 400) -> str:
    try:
        text = ' '.join(str(error).split())[:limit]
    except Exception:  # a user's exception whose __str__ fails
        text = ''
    return f'{type(error).__name__}: {text}' if text else type(error).__name__
