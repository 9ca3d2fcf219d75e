"""What every command promises, whatever it is given."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import signal
import sys
import traceback
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import mmguard
from mmguard.cli import main

#: Of the processor: on a busy machine a command waits for others. What merely waits is ended after ten times as many.
SECONDS = 30
#: Beside what the imports take, which is the other half of a gigabyte.
MEGABYTES = 512
#: A command that asks for more than this is stopped there, so that the machine lives on.
_CEILING = 2 << 30
#: What a command says of an exception that nobody foresaw; the first begins a line: a damaged record may hold it, too.
_UNFORESEEN = ('\nTraceback (most recent call last)', 'This should not happen')
#: The script of mmguard's own pages.
_SCRIPT = (Path(mmguard.__file__).parent / 'commands/page/templates/page.js').read_text(encoding='utf-8')
_TURNS = '\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069'


class Hang(BaseException):
    """A command did not come to its end; no ``except Exception`` stops it."""


class Outcome(NamedTuple):
    """What a command did.

    Attributes:
        code (int): Its exit code.
        out, err (str): What it printed.
        broken (list[str]): The promises that it broke, each in a line.
    """

    code: Any
    out: str
    err: str
    broken: List[str]


def run(argv: Sequence[str], outputs: Optional[Path] = None) -> Outcome:
    """Runs a command in this process.

    Args:
        argv (list[str]): Its words.
        outputs (Path, optional): The folder into which all of its files are to be written.
    """
    out = io.TextIOWrapper(io.BytesIO(), encoding='utf-8', write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding='utf-8', errors='backslashreplace', write_through=True)
    broken: List[str] = []
    code: Any = None
    with _bounded() as peak, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(list(argv))
        except SystemExit as ended:  # argparse
            code = ended.code
        except Hang:
            broken.append(f'hangs: more than {SECONDS} s in {innermost(sys.exc_info()[2])}')
        except BaseException as error:
            broken.append(f'traceback: {type(error).__name__} in {innermost(error.__traceback__)}: {str(error)[:200]}')
    printed, said = (stream.buffer.getvalue().decode('utf-8', 'replace') for stream in (out, err))  # type: ignore[attr-defined]
    if not broken:
        if code not in (0, 1, 2) or isinstance(code, bool):
            broken.append(f'exit code {code!r}')
        # With --debug a traceback is what was asked for.
        unforeseen = _UNFORESEEN[1:] if '--debug' in argv else _UNFORESEEN[::-1]
        broken += [f'unforeseen: {_after(word, said)}' for word in unforeseen if word in f'\n{said}'][:1]
    if peak[0] > MEGABYTES << 20:
        broken.append(f'memory: {peak[0] >> 20:,} MB')
    broken += [f'{name} shows {unseen(text)}' for name, text in (('stdout', printed), ('stderr', said)) if unseen(text)]
    if outputs is not None and outputs.is_dir():
        broken += [wrong for path in sorted(outputs.rglob('*')) for wrong in wrong_with(path)]
    return Outcome(code, printed, said, broken)


def unseen(text: str) -> str:
    """The first character that a terminal would take for a command, or not show; empty where there is none."""
    if text.isascii() and text.replace('\n', '').isprintable():
        return ''
    for char in text:
        if char != '\n' and (unicodedata.category(char) in ('Cc', 'Cs', 'Zl', 'Zp') or char in _TURNS):
            at = text.index(char)
            return f'{char!r} in {text[max(at - 40, 0) : at + 20]!r}'
    return ''


def wrong_with(path: Path) -> List[str]:
    """What is wrong with a file that a command wrote."""
    if path.suffix in ('.part', '.tmp') or '.part' in path.name:
        return [f'left behind: {path.name}']
    if path.suffix not in ('.json', '.html') or not path.is_file():
        return []
    try:
        text = path.read_bytes().decode('utf-8')
    except ValueError as error:
        return [f'{path.name} is no UTF-8: {error}']
    if path.suffix == '.json':
        try:
            json.loads(text)
        except (ValueError, RecursionError) as error:
            return [f'{path.name} is no JSON: {error}']
        return []
    page = _Page()
    page.feed(text)
    page.close()
    if not text.rstrip().endswith('</html>'):
        page.wrong.append('is not whole')
    shown = unseen(text)
    return [f'{path.name} {wrong}' for wrong in (*page.wrong, *([f'shows {shown}'] if shown else []))]


class _Page(HTMLParser):
    """Finds what of a page could run, beside its own script."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: List[str] = []

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == 'script' and data != _SCRIPT:
            self.wrong.append(f'has a script: {data[:40]}')

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        if tag in ('iframe', 'object', 'embed', 'base') or (tag == 'script' and attrs):
            self.wrong.append(f'has <{tag}>')
        self.wrong += [f'has {name}=' for name, value in attrs if name.startswith('on')]
        self.wrong += [f'has {value[:30]}' for _, value in attrs if (value or '').strip().startswith('javascript:')]


@contextlib.contextmanager
def _bounded() -> Iterator[List[int]]:
    """Ends what takes too long or too much; yields a list whose only item becomes the peak of the memory."""

    def end(*_: Any) -> None:
        raise Hang

    peak = [0]
    status = _status()
    with contextlib.suppress(OSError), open('/proc/self/clear_refs', 'w') as file:
        file.write('5')  # the peak begins anew
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = {which: signal.signal(which, end) for which in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, 10 * SECONDS)
    if status:
        resource.setrlimit(resource.RLIMIT_AS, (status['VmSize'] + _CEILING, hard))
    try:
        yield peak
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for which, known in before.items():
            signal.signal(which, known)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        if status:
            peak[0] = _status()['VmHWM'] - status['VmRSS']


def _status() -> Dict[str, int]:
    """Sizes of this process in bytes; empty where the system does not say them."""
    try:
        with open('/proc/self/status') as file:
            lines = [line.split() for line in file if line.startswith('Vm')]
    except OSError:
        return {}
    return {line[0][:-1]: int(line[1]) << 10 for line in lines}


def innermost(trace: Any) -> str:
    """The last line of mmguard's own that a traceback passes, and its end."""
    frames = traceback.extract_tb(trace)
    named = [f'{os.sep.join(frame.filename.split(os.sep)[-3:])}:{frame.lineno} {frame.name}' for frame in frames]
    own = [name for frame, name in zip(frames, named) if f'{os.sep}mmguard{os.sep}' in frame.filename]
    return ' <- '.join(dict.fromkeys([*named[-1:], *own[-1:]]))


def _after(word: str, said: str) -> str:
    at = said.find(word.strip())
    lines = (said[at:] if 'Traceback' in word else said[:at]).strip().splitlines()
    return lines[-1][:300] if lines else ''


def why_unforeseen(argv: Sequence[str]) -> str:
    """Where the exception came up that a command did not foresee: with ``--debug`` it says so."""
    said = run([*argv, '--debug']).err
    frames = [line.strip() for line in said.splitlines() if line.startswith('  File ')]
    own = [frame for frame in frames if 'mmguard' in frame]
    return ' <- '.join(dict.fromkeys([*frames[-1:], *own[-1:]]))
