"""The file that a dying training leaves behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Optional

from mmguard.files import write_whole

#: Counts up when a field changes its meaning.
FORMAT = 1


def write_record(path: str, record: Dict[str, Any]) -> Optional[Exception]:
    """Writes a record, whole or not at all.

    Args:
        path (str): The file; its folder is made.
        record (dict): JSON-able; losses may be NaN or infinite, which are written as such names.

    Returns:
        Exception, optional: why it could not be written. Nothing is raised: the training's own end counts more.
    """
    try:
        text = json.dumps(_plain(record), indent=1, ensure_ascii=False, allow_nan=False, default=str)
        write_whole(Path(path), text.encode(errors='backslashreplace'))
    except Exception as error:
        return error
    return None


def read_record(path: str) -> Dict[str, Any]:
    """Reads a record.

    Raises:
        OSError: No such file.
        ValueError: No record of this format; the message names the file.
    """
    with open(path, encoding='utf-8', errors='replace') as file:
        try:
            record = json.load(file)
        except ValueError as error:
            raise ValueError(f'{path}: not a crash record ({error})') from error
    if not isinstance(record, dict) or not isinstance(record.get('batches'), list):
        raise ValueError(f'{path}: not a crash record: it has no "batches". Wanted is a label_guard_crash.json')
    if record.get('format') != FORMAT:
        raise ValueError(f'{path}: format {record.get("format")!r}, this mmguard reads {FORMAT}')
    return record


def _plain(value: Any) -> Any:
    """JSON knows no NaN: ``'nan'``, ``'inf'``, ``'-inf'``, which ``float`` reads again."""
    if isinstance(value, float) and (value != value or value in (float('inf'), float('-inf'))):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
