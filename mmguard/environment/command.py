"""What ``mmguard env`` shows."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import List, Optional

from mmguard.environment.facts import gather
from mmguard.environment.verdicts import ERROR, OK, WARNING, Verdict, verdicts, worst
from mmguard.files import write_whole

_COLOURS = {OK: '\x1b[32m', WARNING: '\x1b[33m', ERROR: '\x1b[31m'}


def show_environment(json_file: Optional[str], try_imports: bool = True) -> int:
    """Prints a verdict per line.

    Args:
        json_file (str, optional): Where to write them as JSON, too; ``'-'``: to standard output, instead.
        try_imports (bool): Also import every package once.

    Returns:
        int: 1 where there is an error, else 0; 2 where the JSON cannot be written.
    """
    lines = verdicts(gather(try_imports))
    text = json.dumps({'worst': worst(lines), 'lines': [line.to_json() for line in lines]}, indent=1)
    if json_file == '-':
        print(text)
    else:
        _print(lines)
        if json_file is not None:
            try:
                write_whole(Path(json_file), (text + '\n').encode())
            except OSError as error:
                print(f'mmguard env: {json_file} cannot be written: {error}', file=sys.stderr)
                return 2
    return 1 if worst(lines) == ERROR else 0


def _print(lines: List[Verdict]) -> None:
    width = max(len(line.name) for line in lines)
    for line in lines:
        colour, end = (_COLOURS[line.level], '\x1b[0m') if sys.stdout.isatty() else ('', '')
        print(f'{colour}{line.level:<7}{end}  {line.name:<{width}}  {line.found}')
        if line.advice:
            print(f'{"":<7}  {"":<{width}}  -> {line.advice}')
