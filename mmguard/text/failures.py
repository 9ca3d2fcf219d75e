"""Exceptions in words: what failed, whose failure it is, and what to do."""

from __future__ import annotations

import os
import traceback
from typing import Optional

#: What to do about a failure that is mmguard's own.
REPORT_IT = 'please report it in the issue tracker of mmguard, with the output of `mmguard env`'

_HERE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), '')


def words_of(error: BaseException, limit: int = 400) -> str:
    """An exception in one line; of one that ended the import of a package, which package that is.

    Example:
        >>> words_of(IndexError('Target 24 is out of bounds.'))
        'IndexError: Target 24 is out of bounds.'
    """
    return broken_import(error) or _in_one_line(error, limit)


def broken_import(error: BaseException) -> str:
    """Which package an exception kept from being imported, and why; empty where it was not raised by an import."""
    link: Optional[BaseException] = error
    while link is not None:
        package = _imported_in(link)
        if package:
            return f'{package} cannot be imported: {_in_one_line(link)} (`mmguard env` shows what is installed)'
        link = link.__cause__ or (link.__context__ if isinstance(link, ImportError) else None)
    return ''


def own_failure(error: BaseException) -> str:
    """``'mmguard/functional/softmax.py:31 in _kept'`` where an exception came up in a line of mmguard; else empty.

    One that mmguard raises itself is a message for the user, and no failure.
    """
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not os.path.abspath(frames[-1].filename).startswith(_HERE):
        return ''
    last = frames[-1]
    if (last.line or '').startswith('raise'):
        return ''
    return f'mmguard/{last.filename[len(_HERE) :].replace(os.sep, "/")}:{last.lineno} in {last.name}'


def ended_by(error: SystemExit) -> str:
    """What a program does that raises SystemExit, in words.

    Example:
        >>> ended_by(SystemExit(0))
        'ends the program (SystemExit: 0)'
    """
    return f'ends the program ({_in_one_line(error)}{line_of(error, ", ")})'


def line_of(error: BaseException, before: str = ' at ') -> str:
    """The line of the user's own file in which an exception came up; empty where none is known."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if 'site-packages' not in frame.filename]
    last = frames[-1] if frames else None
    if last is None or last.name != '<module>' or not os.path.isfile(last.filename):
        return ''
    return f'{before}{last.filename}:{last.lineno}'


def _imported_in(error: BaseException) -> str:
    """The package whose import an exception ended."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        # mmengine runs a config as a module without a name.
        package = str(frame.f_globals.get('__name__', '')).partition('.')[0]
        if frame.f_code.co_name == '<module>' and package not in ('', '__main__', 'mmguard'):
            return package
    return ''


def _in_one_line(error: BaseException, limit: int = 400) -> str:
    try:
        text = ' '.join(str(error).split())[:limit]
    except Exception:  # an exception of the user's own, which cannot say what it is
        text = ''
    return f'{type(error).__name__}: {text}' if text else type(error).__name__
