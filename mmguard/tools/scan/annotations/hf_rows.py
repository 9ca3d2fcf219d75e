"""The rows of a data set of Hugging Face: of ``metadata.jsonl``, of ``metadata.csv``, or of one saved to disk."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from mmguard.tools.scan.annotations.faults import Faults, short
from mmguard.tools.scan.annotations.shape_records import read_bytes, read_json

METADATA = ('metadata.jsonl', 'metadata.csv')
INFO, STATE = 'dataset_info.json', 'state.json'
#: Keys that name an image, what it shows, and its objects.
FILE, LABELS, OBJECTS = 'file_name', ('label', 'labels'), 'objects'
BOXES = ('bbox', 'bboxes', 'boxes')
CATEGORIES = ('category', 'categories', 'label', 'labels', 'category_id')
_WHOLE = re.compile(r'-?\d{1,9}')


class Row(NamedTuple):
    """A row.

    Attributes:
        where (str): How messages name it.
        record (dict): What it holds.
    """

    where: str
    record: Dict[str, Any]


def rows_of_metadata(path: str, source: str, faults: Faults) -> Iterator[Row]:
    """The rows of a metadata file; never raises.

    Args:
        path (str): The file.
        source (str): How messages name it.
        faults (Faults): Takes what is wrong.
    """
    content = read_bytes(path, source, faults)
    if content is None:
        return
    try:
        text = content.decode('utf-8-sig')
    except UnicodeDecodeError as error:
        faults.add('is not UTF-8', f'{source}: {error.reason} at byte {error.start}')
        return
    lines = _of_csv(text, source, faults) if path.lower().endswith('.csv') else _of_jsonl(text, source, faults)
    yield from lines


def _of_jsonl(text: str, source: str, faults: Faults) -> Iterator[Row]:
    for number, line in enumerate(text.split('\n'), 1):
        where = f'{source}: line {number}'
        record = record_of(line)
        if record is not None:
            yield Row(where, record)
        elif line.strip():
            faults.add('a line is no JSON object', f'{where}: {short(line)}')


def record_of(line: str) -> Optional[Dict[str, Any]]:
    """What a line of JSONL holds; ``None`` where it is no object."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _of_csv(text: str, source: str, faults: Faults) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text), strict=True)
    head: List[str] = []
    try:
        for cells in reader:
            where = f'{source}: line {reader.line_num}'
            if not head:
                head = cells
            elif len(cells) == len(head):
                yield Row(where, {key: _number(cell) if key in LABELS else cell for key, cell in zip(head, cells)})
            elif cells:
                faults.add('a line has not as many cells as the first', f'{where}: {len(cells)}, {len(head)}')
    except csv.Error as error:
        faults.add('a line is no CSV', f'{source}: line {reader.line_num}: {error}')


def _number(cell: str) -> Any:
    return int(cell) if _WHOLE.fullmatch(cell.strip()) else cell


def features_of_saved(folder: str, faults: Faults) -> Mapping[str, Any]:
    """What a saved data set says of its columns; empty where it says nothing."""
    content = read_json(os.path.join(folder, INFO), INFO, faults)
    features = content[0].get('features') if content and isinstance(content[0], dict) else None
    if isinstance(features, dict):
        return features
    if content is not None:
        faults.add('has no "features"', INFO)
    return {}


def names_of_features(features: Mapping[str, Any]) -> Tuple[List[str], str, str]:
    """The names of a ClassLabel, the column that it is in, and that of the image.

    The column is ``'objects.category'`` where it is that of objects; empty: there is none.
    """
    image = next((key for key, one in features.items() if isinstance(one, dict) and one.get('_type') == 'Image'), '')
    for key, feature in features.items():
        for path, inner in _leaves(key, feature):
            if isinstance(inner.get('names'), list) and inner.get('_type') == 'ClassLabel':
                return [str(name) for name in inner['names']], path, image
    return [], '', image


def _leaves(path: str, feature: Any, depth: int = 0) -> Iterator[Tuple[str, Dict[str, Any]]]:
    if isinstance(feature, list):
        feature = feature[0] if feature else None
    if not isinstance(feature, dict) or depth > 4:
        return
    if '_type' in feature and 'feature' not in feature:
        yield path, feature
    elif 'feature' in feature:
        yield from _leaves(path, feature['feature'], depth + 1)
    else:
        for key, inner in feature.items():
            yield from _leaves(f'{path}.{key}', inner, depth + 1)


def rows_of_arrow(folder: str, faults: Faults) -> Iterator[Row]:
    """The rows of a saved data set, images left out; never raises. Needs pyarrow.

    Args:
        folder (str): That of ``state.json``.
        faults (Faults): Takes what is wrong.
    """
    import pyarrow as pa

    content = read_json(os.path.join(folder, STATE), STATE, faults)
    files = content[0].get('_data_files') if content and isinstance(content[0], dict) else None
    if not isinstance(files, list):
        if content is not None:
            faults.add('has no "_data_files"', STATE)
        return
    for file in files:
        name = file.get('filename') if isinstance(file, dict) else None
        if not isinstance(name, str) or os.path.basename(name) != name or not name:
            faults.add('a data file has no name', f'{STATE}: {short(file)}')
            continue
        first = 0
        try:
            with pa.memory_map(os.path.join(folder, name)) as opened, pa.ipc.open_stream(opened) as stream:
                for batch in stream:
                    yield from rows_of_batch(batch, name, first)
                    first += batch.num_rows
        except Exception as error:  # a damaged file raises what it likes
            faults.add('cannot be read: no Arrow stream, or damaged', f'{name}: {str(error)[:120]}')


def rows_of_batch(batch: Any, name: str, first: int) -> Iterator[Row]:
    """The rows of a batch of Arrow, of each image its path alone."""
    batch.validate(full=True)  # of a damaged one its values may lie outside of the file: the process would end there
    columns: Dict[str, List[Any]] = {}
    for key, column in zip(batch.schema.names, batch.columns):
        kind = column.type
        fields = [kind.field(place).name for place in range(kind.num_fields)]
        if 'path' in fields and set(fields) <= {'bytes', 'path'}:  # an image: where it was is all that is read of it
            column = column.field('path')
        columns[key] = column.to_pylist()
    for number in range(batch.num_rows):
        yield Row(f'{name}: row {first + number}', {key: values[number] for key, values in columns.items()})
