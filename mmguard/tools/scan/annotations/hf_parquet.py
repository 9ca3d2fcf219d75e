"""Parquet files of Hugging Face, as data sets lie on the Hub: ``data/train-00000-of-00002.parquet``."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, Iterator, List, Mapping, Sequence

from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.scan.annotations.hf_rows import Row, rows_of_batch
from mmguard.tools.scan.sources.folders import walk
from mmguard.tools.storage.files import open_regular

ENDING = '.parquet'
#: So many names in a folder are looked at.
_FILES = 5000
_MARK, _KEY = b'PAR1', b'huggingface'
_LARGEST_END = 64 << 20
_PART = re.compile(r'(?P<split>.+?)-\d+-of-\d+(-[0-9a-f]+)?')


def is_parquet(path: str) -> bool:
    """Whether a file is Parquet that ``datasets`` wrote: its end says what the columns are."""
    try:
        with open_regular(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 8, 0))
            end = file.read(8)
            length = int.from_bytes(end[:4], 'little')
            if end[4:] != _MARK or not 0 < length < min(size, _LARGEST_END):
                return False
            file.seek(size - 8 - length)
            return _KEY in file.read(length)
    except (OSError, ValueError):
        return False


def parquet_splits(target: str) -> Dict[str, List[str]]:
    """Split -> its files; empty where a target has none that ``datasets`` wrote.

    Args:
        target (str): A file, of whatever origin, or a folder.
    """
    if os.path.isfile(target):
        return {target: [target]} if target.lower().endswith(ENDING) else {}
    found: Dict[str, List[str]] = {}
    seen = 0
    for place, names, _ in walk(target, lambda *_: None):
        for name in names:
            if name.lower().endswith(ENDING):
                found.setdefault(_split_of(os.path.relpath(os.path.join(place, name), target)), []).append(
                    os.path.join(place, name)
                )
        seen += len(names)
        if seen > _FILES:
            break
    return found if any(is_parquet(files[0]) for files in found.values()) else {}


def _split_of(path: str) -> str:
    """``data/train-00000-of-00002.parquet``: train; ``plain_text/train/0000.parquet``: plain_text/train."""
    folder, name = os.path.split(path)
    stem = name[: -len(ENDING)]
    part = _PART.fullmatch(stem)
    split = part.group('split') if part else '' if stem.isdigit() else stem
    folder = '' if folder == 'data' else folder
    return '/'.join(one for one in (folder, split) if one) or stem


def features_of_parquet(path: str, faults: Faults) -> Mapping[str, Any]:
    """What a file says of its columns; empty where it says nothing. Needs pyarrow."""
    import pyarrow.parquet as pq

    try:
        said = (pq.read_schema(path).metadata or {}).get(_KEY, b'{}')
        features = json.loads(said)['info']['features']
    except (KeyError, TypeError):
        return {}
    except Exception as error:  # a damaged file raises what it likes
        faults.add('cannot be read: no Parquet, or damaged', f'{os.path.basename(path)}: {str(error)[:120]}')
        return {}
    return features if isinstance(features, dict) else {}


def rows_of_parquet(files: Sequence[str], wanted: Sequence[str], faults: Faults) -> Iterator[Row]:
    """The rows of files; never raises. Needs pyarrow.

    Args:
        files (list[str]): Parts of one split.
        wanted (list[str]): Columns; the others, images above all, stay unread.
        faults (Faults): Takes what is wrong.
    """
    import pyarrow.parquet as pq

    for path in files:
        name, first = os.path.basename(path), 0
        try:
            with pq.ParquetFile(path) as opened:
                there = [one for one in wanted if one.partition('.')[0] in opened.schema_arrow.names]
                for batch in opened.iter_batches(columns=there):
                    yield from rows_of_batch(batch, name, first)
                    first += batch.num_rows
        except Exception as error:  # a damaged file raises what it likes
            faults.add('cannot be read: no Parquet, or damaged', f'{name}: {str(error)[:120]}')
