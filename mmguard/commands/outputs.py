"""Output files named by the user: ``--json`` and ``--html``.

A mistyped name must not destroy a data set. So an existing file is replaced only if it is empty or an earlier output
of the same option, and never if the command reads the file. Links are followed; devices, pipes, sockets and the
standard streams are refused (``-`` is standard output).
"""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Union

from mmguard.errors import CannotRun
from mmguard.files.regular import NOT_REGULAR_FAULT, open_regular, write_whole
from mmguard.text import hide_credentials

_HEAD = 1024
_JSON = b'{\n "written_by": "mmguard"'

#: {option: function that returns True if a file begins like an earlier output of the option}.
_IS_OURS: Dict[str, Callable[[bytes], bool]] = {
    'json': lambda head: head.startswith(_JSON),
    'html': lambda head: b'<title>mmguard: ' in head,
}


def check_outputs(args: argparse.Namespace) -> None:
    """Refuse to replace files that are not earlier outputs. Call this before the command reads data.

    All other arguments that name a file are taken as inputs of the command.
    """
    named = {option: getattr(args, option, None) for option in _IS_OURS}
    outputs = {option: os.fspath(path) for option, path in named.items() if path is not None and path != '-'}
    given = [value for name, value in vars(args).items() if name not in (*_IS_OURS, 'out')]
    read = [path for value in given for path in (value if isinstance(value, list) else [value]) if _is_file(path)]
    for option, path in outputs.items():
        why = _find_objection(path, option)
        if not why and os.path.exists(path) and any(os.path.samefile(path, one) for one in read):
            why = 'is read by this command'
        if not why and list(map(os.path.realpath, outputs.values())).count(os.path.realpath(path)) > 1:
            why = 'is named by two options'
        if why:
            raise CannotRun(f'--{option} {path} {why}: name another file')


def write_json(target: str, record: Mapping[str, Any]) -> None:
    """Write the result of ``--json``: atomically to a file, or to standard output for ``'-'``."""
    text = hide_credentials(json.dumps({'written_by': 'mmguard', **record}, indent=1)) + '\n'
    if target == '-':
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        write_output(target, text.encode())
    except OSError as error:
        raise CannotRun(f'{target} cannot be written: {error.strerror or error}') from error


def write_output(path: Union[str, Path], content: bytes) -> None:
    """Write a file named by the user atomically; a link is followed and kept."""
    write_whole(Path(os.path.realpath(path)) if os.path.islink(path) else Path(path), content)


def _is_file(value: Any) -> bool:
    try:
        return isinstance(value, (str, Path)) and os.path.isfile(value)
    except ValueError:  # a null byte
        return False


def _find_objection(path: str, option: str) -> str:
    """Return the reason why a file must not be replaced, or '' if replacing it is allowed."""
    if not os.path.exists(path):
        return 'is a broken link' if os.path.islink(path) else ''
    status, other = os.stat(path), ' (-: standard output)' if option == 'json' else ''
    if not stat.S_ISREG(status.st_mode):
        return NOT_REGULAR_FAULT + other
    if _is_stream(status):
        return f'is a standard stream of this command{other}'
    with open_regular(path) as file:
        head = file.read(_HEAD)
    return '' if not head or _IS_OURS[option](head) else 'exists, and mmguard did not write it'


def _is_stream(status: os.stat_result) -> bool:
    for stream in range(3):
        with suppress(OSError):  # it is closed
            if os.path.samestat(status, os.fstat(stream)):
                return True
    return False
