"""Texts that commands print: kept in ``tests/snapshots``, a file per command, and read in review."""

from __future__ import annotations

import platform
import re
import tempfile
from pathlib import Path
from typing import Dict

import numpy as np
import torch

from mmguard.version import __version__

FOLDER = Path(__file__).with_name('snapshots')

#: Differs between two runs of one command, or between two machines -> its placeholder.
PLACEHOLDERS = {
    re.escape(tempfile.gettempdir()) + r'/pytest-of-[^/\s]+/pytest-\d+(/popen-gw\d+)?(/[\w.-]+)?': 'TMP',
    r'/[^\s\'"`:]*/site-packages\b': 'SITE',
    re.escape(str(FOLDER.parents[1])): 'ROOT',
    r'\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?\b|\b\d{8}_\d{6}\b': 'DATE',
    '|'.join(map(re.escape, (torch.__version__, np.__version__, platform.python_version(), __version__))): 'VERSION',
    r'\b\d+(\.\d+)? ?(ms|s|min|h)\b(?! each)': 'TIME',
    r'\bat 0x[0-9a-f]+': 'at ADDRESS',
    r'^─+ (\S+) ─+$': r'── \1 ──',
    r'[ \t]+$': '',
}


def normalize(text: str) -> str:
    """Replace temporary paths, times and versions by placeholders."""
    for pattern, placeholder in PLACEHOLDERS.items():
        text = re.sub(pattern, placeholder, text, flags=re.MULTILINE)
    return text.strip('\n')


def read_sections(path: Path) -> Dict[str, str]:
    """Return the sections of a file by name; none where there is no file."""
    parts = re.split(r'^== (.+) ==\n', path.read_text(encoding='utf-8') if path.exists() else '', flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.strip('\n') for part in parts[2::2])))


def write_sections(path: Path, sections: Dict[str, str]) -> None:
    """Write the sections, sorted by name; a file without any is removed."""
    if not sections:
        path.unlink()
        return
    path.write_text(
        '\n\n'.join(f'== {name} ==\n{sections[name]}' for name in sorted(sections)) + '\n', encoding='utf-8'
    )
