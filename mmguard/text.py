"""Functions for texts that people read: format numbers and lists, escape characters, describe exceptions."""

from __future__ import annotations

import os
import re
import traceback
from functools import reduce
from textwrap import TextWrapper
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Union
from unicodedata import east_asian_width

from mmguard.language import Message, choose_language, translate


def quantity(number: int, one: str, many: Optional[str] = None) -> Message:
    """Return a number with its noun in singular or plural.

    Example:
        >>> quantity(1, 'file'), quantity(1204, 'file'), quantity(0, 'class')
        ('1 file', '1,204 files', '0 classes')
    """
    return Message(f'{{number:,}} {one}', f'{{number:,}} {many or _pluralize(one)}', number=number)


def plural(number: int, one: str, many: Optional[str] = None) -> Message:
    """Return the singular or plural of a noun for a number; ``many`` is an irregular plural.

    Example:
        >>> plural(1, 'entry'), plural(2, 'entry'), plural(2, 'box'), plural(2, 'key'), plural(2, 'px')
        ('entry', 'entries', 'boxes', 'keys', 'px')
        >>> plural(3, 'kind of stuff', 'kinds of stuff')
        'kinds of stuff'
    """
    return Message(one, many or _pluralize(one), number=number)


def _pluralize(one: str) -> str:
    if one.endswith('px'):
        return one
    if re.search('[^aeiou]y$', one):
        return f'{one[:-1]}ies'
    return f'{one}es' if re.search('(s|x|z|ch|sh)$', one) else f'{one}s'


def join_with_and(texts: Iterable[str]) -> str:
    """Join texts with "and".

    Example:
        >>> join_with_and(['train', 'val', 'test']), join_with_and([])
        ('train and val and test', '')
    """
    return _fold('{first} and {last}', texts)


def join_with_or(texts: Iterable[str]) -> str:
    """Join texts with "or"."""
    return _fold('{first} or {last}', texts)


def _fold(template: str, texts: Iterable[str]) -> str:
    return reduce(lambda first, last: Message(template, first=first, last=last) if first else last, texts, '')


def shorten_list(lines: Sequence[str], limit: int = 10) -> List[str]:
    """Return the first ``limit`` lines, and one line with the number of omitted lines.

    Example:
        >>> shorten_list(['a', 'b', 'c', 'd'], 2)
        ['a', 'b', '... and 2 more']
    """
    more = len(lines) - limit
    return [*lines[:limit], *([Message('... and {more:,} more', more=more)] if more > 0 else [])]


def shorten(value: object, length: int = 60) -> str:
    """Shorten a value for a message: one line of at most ``length`` characters.

    Only the visible part of a list or dict is formatted, so that huge and self-referential values are supported.

    Example:
        >>> shorten('a' * 100, 10), shorten({'a': [1, 2]})
        ("'aaaaaa...", "{'a': [1, 2]}")
    """
    text = ''
    for piece in _split_message(value, length):
        text += piece
        if len(text) > length:
            return f'{text[: length - 3]}...'
    return text


_ENDS: Dict[type, Sequence[str]] = {list: '[]', tuple: '()', set: '{}', frozenset: ('frozenset({', '})')}


def _split_message(value: Any, length: int) -> Iterator[str]:
    if isinstance(value, (str, bytes)):
        yield repr((hide_credentials(value[:LONGEST_NAME]) if isinstance(value, str) else value)[: length + 1])
    elif isinstance(value, dict):
        yield '{'
        for number, (key, inner) in enumerate(value.items()):
            yield ', ' if number else ''
            yield from _split_message(key, length)
            yield ': '
            yield from _split_message(inner, length)
        yield '}'
    elif type(value) in _ENDS and value:
        begin, end = _ENDS[type(value)]
        yield begin
        for number, inner in enumerate(value):
            yield ', ' if number else ''
            yield from _split_message(inner, length)
        yield ',)' if isinstance(value, tuple) and len(value) == 1 else end
    else:
        try:
            yield ' '.join(repr(value).split())
        except (ValueError, RecursionError):  # an int of thousands of digits
            yield f'a {type(value).__name__}'


#: Maximum number of displayed characters of a text, and of a name (the longest path that Linux allows).
LONGEST, LONGEST_NAME = 20_000, 4096


#: Pattern of the parts between which a line may be broken: words, and Chinese characters with their punctuation.
_CHINESE, _OPENS, _CLOSES = '\u3400-\u9fff', '\uff08\u201c', '\uff0c\u3002\uff1b\uff1a\u3001\uff1f\uff01\uff09\u201d'
_PARTS = rf'\s+|[{_OPENS}]*[{_CHINESE}][{_CLOSES}]*|[^\s{_CHINESE}]+?(?=[{_OPENS}]*[{_CHINESE}]|\s|$)'


class _Wrapper(TextWrapper):
    """TextWrapper that may also break a line between Chinese characters."""

    def _split(self, text: str) -> List[str]:
        if choose_language() == 'en':
            return super()._split(text)
        return [_Columns(part) for part in re.findall(_PARTS, text)]


class _Columns(str):
    """String whose ``len()`` is its width in terminal columns."""

    def __len__(self) -> int:
        return super().__len__() + _count_wide(self)


def _count_wide(text: str) -> int:
    return sum(east_asian_width(char) in 'WF' for char in text)


def wrap(text: str, width: int, first: str = '', rest: str = '') -> List[str]:
    """Wrap a text without breaking words; the first line begins with ``first``, all others with ``rest``."""
    return _Wrapper(
        width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    ).wrap(text)


class Wrapped(NamedTuple):
    """Paragraph of an output; its first line begins with ``first``, all others with ``rest``."""

    text: str
    first: str = ''
    rest: str = ''


#: Paragraphs of an output, from top to bottom; a plain string is not wrapped.
Rows = List[Union[str, Wrapped]]


def lay_out(rows: Rows, width: int) -> str:
    """Translate and wrap the paragraphs of an output, and escape every invisible character."""
    lines: List[str] = []
    for row in rows:
        text, *indents = row if isinstance(row, Wrapped) else (row,)
        shown = visible(translate(text))
        lines += wrap(shown, width, *indents) if indents else [shown]
    return '\n'.join(lines)


def align_right(text: str, width: int) -> str:
    """Pad a text on the left to ``width`` terminal columns; a Chinese character takes two."""
    return text.rjust(width - _count_wide(text))


def fit(text: str, width: int) -> str:
    """Cut or pad a text to ``width`` terminal columns; a Chinese character takes two.

    Example:
        >>> fit('scan', 6), fit('scan', 2)
        ('scan  ', 'sc')
    """
    text = text[:width]
    while len(text) + _count_wide(text) > width:
        text = text[:-1]
    return text.ljust(width - _count_wide(text))


def visible(text: str, limit: int = LONGEST) -> str:
    r"""Escape all invisible characters of a text, except line breaks.

    Control and direction marks, unusual spaces and unassigned characters become escapes, and so do bytes of a file
    name that are not UTF-8. Credentials in URLs are hidden. A long text is shortened in the middle.

    Example:
        >>> visible('caf\udce9' + chr(0x202E) + 'gnp.exe')
        'caf\\xe9\\u202egnp.exe'
        >>> visible('0123456789', limit=4)
        '01 ... (6 characters) ... 89'
    """
    text = _cut_middle(hide_credentials(text), limit)
    return text if text.isprintable() else ''.join(map(_escape_char, text))


def visible_name(name: str, limit: int = LONGEST_NAME) -> str:
    r"""Escape a name like :func:`visible`, and its line breaks, too.

    Example:
        >>> visible_name('a\nb.png')
        'a\\nb.png'
    """
    return visible(name, limit).replace('\n', '\\n')


_CREDENTIALS = re.compile(
    r'(://)[^\s/"\'\\]*(@)|([?&][\w.-]{0,40}(?:key|token|secret|sig|pass|auth|cred)[\w.-]{0,40}=)[^\s&"\'\\<>)]+', re.I
)


def hide_credentials(text: str) -> str:
    """Hide user and password in the URLs of a text, and secret parameters of their queries."""
    return _CREDENTIALS.sub(r'\1\3***\2', text) if '://' in text else text


def hide_home(text: str) -> str:
    """Replace home folders in the paths of a text by ``~``."""
    own, name = re.escape(os.path.expanduser('~').rstrip('/') or '\0'), r'[^\\/\s<>"\'&]+'
    return re.sub(rf'(?<![\w.~-])(?:{own}(?![\w.-])|(?:/home/|/Users/|[A-Z]:\\Users\\){name})', '~', text)


def _cut_middle(text: str, limit: int) -> str:
    half = limit // 2
    return text if len(text) <= limit else f'{text[:half]} ... ({len(text) - 2 * half:,} characters) ... {text[-half:]}'


def _escape_char(char: str) -> str:
    if char.isprintable() or char == '\n':
        return char
    code = ord(char)
    if 0xDC80 <= code < 0xDD00:  # a byte of a file name
        code -= 0xDC00
    return f'\\x{code:02x}' if code < 0x100 else f'\\u{code:04x}' if code < 0x10000 else f'\\U{code:08x}'


#: Advice for a failure of mmguard itself.
REPORT_ADVICE = 'please report it in the issue tracker of mmguard, with the output of `mmguard env`'

_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '')


def describe_error(error: BaseException, limit: int = 400) -> str:
    """Describe an exception in one line; for a failed import, name the package.

    Example:
        >>> describe_error(IndexError('Target 24 is out of bounds.'))
        'IndexError: Target 24 is out of bounds.'
    """
    return describe_broken_import(error) or _format_line(error, limit)


def describe_broken_import(error: BaseException) -> str:
    """Return a sentence with the package that could not be imported and the error, or '' for other errors."""
    link: Optional[BaseException] = error
    while link is not None:
        package = _find_import(link)
        if package:
            return f'{package} cannot be imported: {_format_line(link)} (`mmguard env` shows what is installed)'
        link = link.__cause__ or (link.__context__ if isinstance(link, ImportError) else None)
    return ''


def find_own_failure(error: BaseException) -> str:
    """Return the line of mmguard's own code that raised an exception, as ``'mmguard/text.py:31 in wrap'``, or ''.

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
    """Describe a SystemExit that was raised by a program that mmguard imports or runs.

    Example:
        >>> describe_exit(SystemExit(0))
        'ends the program (SystemExit: 0)'
    """
    return f'ends the program ({_format_line(error)}{find_line(error, ", ")})'


def find_line(error: BaseException, before: str = ' at ') -> str:
    """Return ``' at FILE:LINE'`` for the line of the user's file that raised an exception; empty if unknown."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if 'site-packages' not in frame.filename]
    last = frames[-1] if frames else None
    if last is None or last.name != '<module>' or not os.path.isfile(last.filename):
        return ''
    return f'{before}{last.filename}:{last.lineno}'


def _find_import(error: BaseException) -> str:
    """Return the package whose import raised an exception, or '' if no import raised the exception."""
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
