"""Printable text from files and exceptions, for a console, a log or a page."""

from __future__ import annotations

#: Longest text and longest name that are shown; paths are not longer.
LONGEST, LONGEST_NAME = 20_000, 4096


def visible(text: str, limit: int = LONGEST) -> str:
    r"""Escape all invisible characters of a text, except line breaks.

    Control and direction marks, unusual spaces and unassigned characters become escapes, and so do bytes of a file
    name that are not UTF-8. A long text is shortened in the middle.

    Example:
        >>> visible('caf\udce9' + chr(0x202E) + 'gnp.exe')
        'caf\\xe9\\u202egnp.exe'
        >>> visible('0123456789', limit=4)
        '01 ... (6 characters) ... 89'
    """
    text = _cut_middle(text, limit)
    return text if text.isprintable() else ''.join(map(_seen, text))


def visible_name(name: str, limit: int = LONGEST_NAME) -> str:
    r"""Escape a name as :func:`visible` does, on one line.

    Example:
        >>> visible_name('a\nb.png')
        'a\\nb.png'
    """
    return visible(name, limit).replace('\n', '\\n')


def _cut_middle(text: str, limit: int) -> str:
    half = limit // 2
    return text if len(text) <= limit else f'{text[:half]} ... ({len(text) - 2 * half:,} characters) ... {text[-half:]}'


def _seen(char: str) -> str:
    if char.isprintable() or char == '\n':
        return char
    code = ord(char)
    if 0xDC80 <= code < 0xDD00:  # a byte of a file name
        code -= 0xDC00
    return f'\\x{code:02x}' if code < 0x100 else f'\\u{code:04x}' if code < 0x10000 else f'\\U{code:08x}'
