"""Parquet files of Hugging Face: their labels against the names of their ClassLabel, as they lie on the Hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scans import scanned

from mmguard.cli import main

LABEL = {'names': ['cat', 'cow', 'dog'], '_type': 'ClassLabel'}
PICTURE = {'_type': 'Image'}
OBJECTS = {'bbox': {'feature': {'_type': 'Value'}, '_type': 'List'}, 'category': {'feature': LABEL, '_type': 'List'}}
IMAGE = {'bytes': b'\xff\xd8', 'path': '7.jpg'}


def write(path: Path, features: Dict[str, Any], **columns: List[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({'image': [{**IMAGE, 'path': f'{path.stem} {n}.jpg'} for n in range(12)], **columns})
    said = json.dumps({'info': {'features': {'image': PICTURE, **features}}})
    pq.write_table(table.replace_schema_metadata({'huggingface': said}), path, row_group_size=5)
    return path


def whole(root: Path, *labels: Any, name: str = 'train-00000-of-00001') -> Path:
    return write(root / f'data/{name}.parquet', {'label': LABEL}, label=[*labels, *[0, 1, 2] * 4][:12])


@pytest.mark.parametrize('target', ['', 'data'])
def test_parts_of_splits(target: str, tmp_path: Path) -> None:
    names = ('train-00000-of-00002', 'train-00001-of-00002-0123456789abcdef', 'validation-00000-of-00001')
    files = [whole(tmp_path, name=name) for name in names]
    code, found, facts = scanned(tmp_path / target, tmp_path / 'scan.json')
    assert (code, found, facts['total'], facts['class_names']) == (0, {}, 24, LABEL['names'])
    datasets = json.loads((tmp_path / 'scan.json').read_text())['datasets']
    assert [(one['name'], one['facts']['files']) for one in datasets] == [('train', 24), ('validation', 12)]
    assert scanned(files[2], tmp_path / 'scan.json')[2]['files'] == 12
    assert scanned(tmp_path / target, tmp_path / 'scan.json', '--split', 'val')[2]['files'] == 12


@pytest.mark.parametrize('name', ['plain_text/train/0000', 'train', 'default/train-00000-of-00001'])
def test_names_of_files(name: str, tmp_path: Path) -> None:
    write(tmp_path / f'{name}.parquet', {'label': LABEL}, label=[0, 1, 7, *[0, 1, 2] * 3])
    code, found, _ = scanned(tmp_path, tmp_path / 'scan.json')
    assert (code, list(found)) == (1, ['MG107'])
    assert f'{Path(name).name}.parquet: row 2' in found['MG107']


def test_boxes_are_named_with_their_rows(tmp_path: Path) -> None:
    objects = [{'bbox': [[5.0, 5.0, 9.0, 9.0]], 'category': [number % 3]} for number in range(12)]
    objects[7] = {'bbox': [[60.0, 5.0, 30.0, 9.0]], 'category': [1]}
    sizes = {'width': [64] * 12, 'height': [48] * 12}
    path = write(tmp_path / 'train.parquet', {'objects': OBJECTS}, objects=objects, **sizes)
    code, found, facts = scanned(path, tmp_path / 'scan.json')
    assert (code, list(found), facts['total']) == (1, ['MG152'], 12)
    assert 'row 7, object 0' in found['MG152']


def test_label_maps_in_a_column(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    write(tmp_path / 'train.parquet', {'annotation': PICTURE}, annotation=[IMAGE] * 12)
    assert main(['scan', str(tmp_path)]) == 2
    assert "of the column 'annotation'" in capsys.readouterr().out


def test_other_tables_are_left_alone(tmp_path: Path) -> None:
    pq.write_table(pa.table({'label': [0, 1]}), tmp_path / 'a.parquet')
    assert main(['scan', str(tmp_path)]) == 2
    assert main(['scan', str(tmp_path / 'a.parquet')]) == 2


@pytest.mark.parametrize('part', range(10))
def test_a_file_that_is_cut_off(part: int, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    whole(tmp_path, name='train-00000-of-00002')
    path = whole(tmp_path, name='train-00001-of-00002')
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * part // 10])
    code, found, _ = scanned(tmp_path, tmp_path / 'scan.json')
    assert (code, list(found)) == (1, ['MG132'])
    assert 'train-00001-of-00002.parquet' in found['MG132']
    assert main(['scan', str(path)]) in (1, 2)
    printed = capsys.readouterr()
    assert 'should not happen' not in printed.out + printed.err
