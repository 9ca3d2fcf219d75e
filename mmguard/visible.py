"""Names in which every character is seen, for a console, a log or a page."""

from __future__ import annotations

import os
import unicodedata

#: Categories of characters that are seen otherwise than they are, or not at all: control, format (also those that
#: reverse the direction of writing), surrogates.
_UNSEEN = ('Cc', 'Cf', 'Cs', 'Zl', 'Zp')


def visible(name: str) -> str:
    r"""A name in which every character is seen: bytes that are no UTF-8, control and direction marks as escapes.

    Example:
        >>> visible('caf\udce9' + chr(0x202E) + 'gnp.exe')
        'caf\\xe9\\u202egnp.exe'
    """
    if name.isascii() and name.isprintable():
        return name
    try:
        name = os.fsencode(name).decode('utf-8', 'backslashreplace')
    except UnicodeEncodeError:  # surrogates that stand for no byte of a file name
        name = name.encode('utf-8', 'backslashreplace').decode('utf-8')
    return ''.join(_escape(char) if unicodedata.category(char) in _UNSEEN and char != '\n' else char for char in name)


def _escape(char: str) -> str:
    code = ord(char)
    return f'\\x{code:02x}' if code < 0x100 else f'\\u{code:04x}' if code < 0x10000 else f'\\U{code:08x}'


def visible_name(name: str) -> str:
    r"""The name of a file, on one line.

    Example:
        >>> visible_name('a\nb.png')
        'a\\nb.png'
    """
    return visible(name).replace('\n', '\\n')
