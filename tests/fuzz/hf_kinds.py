"""Data sets of Hugging Face: metadata of image folders, and what was saved to disk."""

from __future__ import annotations

import io
import json
from typing import Any, Dict, List

from annotation_kinds import NAMES, picture
from kinds import Files, Kind
from mutations import damaged_bytes, damaged_json, damaged_lines, damaged_table


def _rows() -> Files:
    boxes = [[5, 5, 20, 15.5], [30, 20, 10, 10]]
    rows = [
        dict(file_name='0.jpg', objects=dict(bbox=boxes, categories=['cat', 'dog']), width=64, height=48),
        dict(file_name='1.jpg', objects=[dict(bbox=boxes[0], category='bird')]),
        dict(file_name='2.jpg', objects=dict(bbox=[], categories=[])),
    ]
    files: Files = {f'train/{number}.jpg': (picture(), ()) for number in range(3)}
    content = b''.join(json.dumps(row).encode() + b'\n' for row in rows)
    return {'train/metadata.jsonl': (content, (damaged_lines,)), **files}


def _table() -> Files:
    lines = ['file_name,label,text', '0.jpg,cat,"a, b"', '1.jpg,dog,', '2.jpg,bird,x', '']
    files: Files = {f'{number}.jpg': (picture(), ()) for number in range(3)}
    return {'metadata.csv': ('\n'.join(lines).encode(), (damaged_table,)), **files}


def saved() -> Files:
    """A split of whole images, and one of objects."""
    label: Dict[str, Any] = dict(names=list(NAMES), _type='ClassLabel')
    number = dict(dtype='int64', _type='Value')
    box = dict(feature=dict(dtype='float32', _type='Value'), _type='List')
    boxes = [dict(bbox=[[5.0, 5.0, 9.0, 9.0]], category=[place % 3]) for place in range(6)]
    objects = dict(bbox=box, category=dict(feature=label, _type='List'))
    sizes: Dict[str, List[int]] = dict(width=[64] * 6, height=[48] * 6)
    return {
        'dataset_dict.json': (b'{"splits": ["train", "validation"]}', (damaged_json,)),
        **_split('train', dict(label=label), dict(label=[0, 1, 2, 0, 1, 2])),
        **_split('validation', dict(width=number, height=number, objects=objects), dict(**sizes, objects=boxes)),
    }


def _split(name: str, features: Dict[str, Any], columns: Dict[str, List[Any]]) -> Files:
    import pyarrow as pa

    images = [dict(bytes=b'\xff\xd8', path=f'{place}.jpg') for place in range(6)]
    table = pa.table(dict(image=images, **columns))
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table, max_chunksize=4)
    data = 'data-00000-of-00001.arrow'
    info = json.dumps(dict(features=dict(image=dict(_type='Image'), **features))).encode()
    state = json.dumps(dict(_data_files=[dict(filename=data)], _split=name)).encode()
    return {
        f'{name}/{data}': (out.getvalue(), (damaged_bytes,)),
        f'{name}/dataset_info.json': (info, (damaged_json,)),
        f'{name}/state.json': (state, (damaged_json,)),
    }


_COMMANDS = ('scan . --json {out}/scan.json', 'scan {file} --html {out}/page.html', 'fix . --out {out}/fixed')
_OPTIONS = {
    'scan': ('--num-classes 3', '--num-classes 2', '--classes cat,dog', '--images .'),
    'fix': ('--classes cat,dog,bird', '--rename cat:Cat', '--edit safe'),
}

KINDS = (
    Kind('hf_rows', _rows, _COMMANDS, _OPTIONS, needs=('PIL',), renamed=True),
    Kind('hf_table', _table, _COMMANDS, _OPTIONS, needs=('PIL',), renamed=True),
    Kind(
        'hf_saved',
        saved,
        ('scan . --json {out}/scan.json', 'scan train --html {out}/page.html', 'scan validation'),
        {'scan': ('--num-classes 3', '--num-classes 2', '--split train')},
        needs=('pyarrow',),
    ),
)
