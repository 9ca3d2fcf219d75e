"""Data sets of Hugging Face that were saved to disk: their labels against the names of their ClassLabel."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Dict, List

import pyarrow as pa
import pytest
from scans import scanned

from mmguard.cli import main

LABEL = {'names': ['cat', 'cow', 'dog'], '_type': 'ClassLabel'}
WHOLE = {'dtype': 'int64', '_type': 'Value'}
IMAGE = [{'bytes': b'\xff\xd8', 'path': f'{number}.jpg'} for number in range(12)]
#: The same in the words of earlier versions, and of later ones.
OBJECTS: List[Any] = [
    {'bbox': {'feature': {'dtype': 'float32', '_type': 'Value'}, '_type': 'List'},
     'category': {'feature': LABEL, '_type': 'List'}},
    {'feature': {'bbox': {'dtype': 'float32', '_type': 'Value'}, 'category': LABEL}, '_type': 'Sequence'},
    [{'bbox': {'dtype': 'float32', '_type': 'Value'}, 'category': LABEL}],
]  # fmt: skip


def save(folder: Path, features: Dict[str, Any], columns: Dict[str, List[Any]]) -> Path:
    folder.mkdir(parents=True)
    name = 'data-00000-of-00001.arrow'
    table = pa.table(columns)
    with pa.OSFile(str(folder / name), 'wb') as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, max_chunksize=5)
    (folder / 'dataset_info.json').write_text(json.dumps({'features': {'image': {'_type': 'Image'}, **features}}))
    (folder / 'state.json').write_text(json.dumps({'_data_files': [{'filename': name}], '_split': None}))
    return folder


def whole(folder: Path, labels: List[Any]) -> Path:
    return save(folder, {'label': LABEL}, {'image': IMAGE, 'label': labels})


def boxes(folder: Path, planted: Any = None, features: Any = OBJECTS[0]) -> Path:
    objects = [{'bbox': [[5.0, 5.0, 9.0, 9.0]], 'category': [number % 3]} for number in range(12)]
    if planted is not None:
        objects[7] = {'bbox': [*objects[7]['bbox'], planted[1]], 'category': [1, planted[0]]}
    if isinstance(features, list):
        keys = ('bbox', 'category')
        objects = [[dict(zip(keys, pair)) for pair in zip(one['bbox'], one['category'])] for one in objects]  # type: ignore
    sizes = {'width': [64] * 12, 'height': [48] * 12}
    return save(
        folder, {'width': WHOLE, 'height': WHOLE, 'objects': features}, {'image': IMAGE, **sizes, 'objects': objects}
    )


@pytest.mark.parametrize('features', OBJECTS)
def test_clean_sets(features: Any, tmp_path: Path) -> None:
    code, found, facts = scanned(whole(tmp_path / 'whole', [0, 1, 2] * 4), tmp_path / 'scan.json')
    assert (code, found, facts['total'], facts['class_names']) == (0, {}, 12, LABEL['names'])
    code, found, facts = scanned(boxes(tmp_path / 'boxes', features=features), tmp_path / 'scan.json')
    assert (code, found, facts['total'], facts['class_names']) == (0, {}, 12, LABEL['names'])


def test_splits(tmp_path: Path) -> None:
    for split, labels in (('train', [0, 1, 2] * 4), ('test', [0, 1, 9] * 4)):
        whole(tmp_path / 'set' / split, labels)
    (tmp_path / 'set/dataset_dict.json').write_text('{"splits": ["train", "test"]}')
    assert scanned(tmp_path / 'set', tmp_path / 'scan.json')[0] == 1
    assert scanned(tmp_path / 'set', tmp_path / 'scan.json', '--split', 'train')[:2] == (0, {})


@pytest.mark.parametrize('label', [3, 7, -1])
def test_labels_without_a_name_are_named_with_their_rows(label: int, tmp_path: Path) -> None:
    code, found, _ = scanned(whole(tmp_path / 'set', [0, 1, 2, label, *[0, 1] * 4]), tmp_path / 'scan.json')
    assert code == 1
    assert 'data-00000-of-00001.arrow: row 3' in json.dumps(found)
    code, found, _ = scanned(boxes(tmp_path / 'boxes', (label, [1.0, 1.0, 5.0, 5.0])), tmp_path / 'scan.json')
    assert code == 1
    assert 'data-00000-of-00001.arrow: row 7, object 1' in json.dumps(found)


@pytest.mark.parametrize(('box', 'expected'), [
    ([60.0, 5.0, 30.0, 9.0], 'MG152'), ([99.0, 5.0, 9.0, 9.0], 'MG109'), ([5.0, 5.0, 0.0, 9.0], 'MG109'),
    ([5.0, float('nan'), 9.0, 9.0], 'MG176'), ([5.0, 9.0, 9.0], 'MG176'), (None, 'MG176'),
])  # fmt: skip
def test_boxes_are_named_with_their_rows(box: Any, expected: str, tmp_path: Path) -> None:
    code, found, _ = scanned(boxes(tmp_path / 'set', (0, box)), tmp_path / 'scan.json')
    assert (code, list(found)) == (1, [expected])
    assert 'row 7, object 1' in found[expected]


def test_a_label_that_is_missing(tmp_path: Path) -> None:
    _, found, _ = scanned(whole(tmp_path / 'set', [0, 1, 2, None, *[0, 1] * 4]), tmp_path / 'scan.json')
    assert 'row 3: None' in found['MG176']


def test_without_names_nothing_is_said(tmp_path: Path) -> None:
    assert main(['scan', str(save(tmp_path / 'set', {'label': WHOLE}, {'image': IMAGE, 'label': [0, 1, 2] * 4}))]) == 2


def test_without_pyarrow_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    whole(tmp_path / 'set', [0, 1, 2] * 4)
    monkeypatch.setitem(sys.modules, 'pyarrow', None)
    assert main(['scan', str(tmp_path / 'set')]) == 2
    assert 'pip install pyarrow' in capsys.readouterr().err


SMALL = [
    b'',
    b'{',
    b'[]',
    b'{}',
    b'{"features": 7}',
    b'{"_data_files": [7, {"filename": "../a"}]}',
    b'\xff',
    b'[' * 9999,
]


@pytest.mark.parametrize('name', ['dataset_info.json', 'state.json', 'data-00000-of-00001.arrow'])
@pytest.mark.parametrize('content', [*SMALL, bytes(200)])
def test_damaged_files_are_not_clean(content: bytes, name: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder = whole(tmp_path / 'set', [0, 1, 2] * 4)
    (folder / name).write_bytes(content)
    assert main(['scan', str(folder)]) in (1, 2)
    printed = capsys.readouterr()
    assert 'should not happen' not in printed.out + printed.err


@pytest.mark.parametrize('part', range(1, 10))
def test_a_file_that_is_cut_off(part: int, tmp_path: Path) -> None:
    path = whole(tmp_path / 'set', [0, 1, 2] * 4) / 'data-00000-of-00001.arrow'
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * part // 10])
    assert main(['scan', str(path.parent)]) == 1
