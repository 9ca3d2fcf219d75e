"""One file with what a test puts into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Union


def put(path: Path, content: Union[str, bytes]) -> Path:
    """Write a file, and the folders it is in; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def put_config(path: Path, /, **parts: Any) -> Path:
    """Write a config of these names and values."""
    return put(path, ''.join(f'{name} = {value!r}\n' for name, value in parts.items()))
