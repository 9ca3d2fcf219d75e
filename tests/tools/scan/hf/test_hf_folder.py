"""Image folders of Hugging Face: planted faults are named with their lines, damaged files do not end the scan."""

from __future__ import annotations

import io
import json
import os
import random
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from PIL import Image
from scans import edits, scanned

from mmguard.cli import main

NAMES = ('cat', 'cow', 'dog')


@lru_cache(maxsize=None)
def picture(width: int = 64, height: int = 48) -> bytes:
    out = io.BytesIO()
    Image.new('RGB', (width, height), 0).save(out, 'JPEG')
    return out.getvalue()


def objects(*pairs: Tuple[Any, Any], keys: Tuple[str, str] = ('bbox', 'categories')) -> Dict[str, Any]:
    return {keys[0]: [box for _, box in pairs], keys[1]: [label for label, _ in pairs]}


def sound(number: int, named: bool = True) -> List[Tuple[Any, List[float]]]:
    draw = random.Random(number)
    found = []
    for place in range(3):
        label = (number + place) % 3
        box = [draw.randint(2, 30), draw.randint(2, 20), draw.randint(4, 20) + 0.5, draw.randint(4, 20)]
        found.append((NAMES[label] if named else label, box))
    return found


def row(number: int, *more: Tuple[Any, Any], named: bool = True, **other: Any) -> Dict[str, Any]:
    return {'file_name': f'{number:02d}.jpg', 'objects': objects(*sound(number, named), *more), **other}


def make(root: Path, rows: List[Any], name: str = 'metadata.jsonl') -> Path:
    """Writes rows (a text as it is), and the images that they name."""
    root.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(''.join(f'{one if isinstance(one, str) else json.dumps(one)}\n' for one in rows))
    for number in range(len(rows)):
        (root / f'{number:02d}.jpg').write_bytes(picture())
    return root


BOX = [5, 5, 10, 10]
#: What is planted, each in a line of its own -> the code that names it, and what it says.
PLANTED: List[Tuple[Any, str, str]] = [
    (row(0, ('cat', [40, 5, 40, 10])), 'MG152', 'metadata.jsonl: line 1, object 3: 40, 5, 40, 10'),
    (row(1, ('cat', [100, 5, 20, 10])), 'MG109', 'metadata.jsonl: line 2, object 3'),
    (row(2, ('cat', [5, 5, 0, 10])), 'MG109', 'metadata.jsonl: line 3, object 3'),
    (row(3, ('cat', [5, 5, 10])), 'MG176', 'bbox is not four finite numbers: metadata.jsonl: line 4, object 3'),
    (row(4, ('cat', ['5', 5, 10, 10])), 'MG176', 'metadata.jsonl: line 5, object 3'),
    (row(5, (None, BOX)), 'MG176', 'neither a whole number nor a name: metadata.jsonl: line 6, object 3'),
    ({**row(6), 'file_name': None}, 'MG176', 'a row has no file_name: metadata.jsonl: line 7'),
    ('{"file_name": "07.jpg", "objects"', 'MG176', 'a line is no JSON object: metadata.jsonl: line 8'),
    ({**row(8), 'objects': dict(row(8)['objects'], bbox=[BOX])}, 'MG176', 'not as many: metadata.jsonl: line 9: 1, 3'),
    ({**row(9), 'objects': 7}, 'MG176', 'objects is no table of lists: metadata.jsonl: line 10'),
    ({**row(10), 'objects': {'bbox': [BOX]}}, 'MG176', 'lacks a list of bbox, or of category: metadata.jsonl: line 11'),
    ({**row(11), 'file_name': '12.jpg'}, 'MG147', '12.jpg'),
    (row(12), 'MG147', '12.jpg'),
    ({**row(13), 'file_name': 'gone.jpg'}, 'MG150', 'gone.jpg'),
    (row(14, ('cat', [-9, 5, 20, 10])), 'MG152', 'metadata.jsonl: line 15, object 3: -9, 5, 20, 10'),
]  # fmt: skip


def test_planted_faults_are_named_with_their_lines(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', [planted for planted, _, _ in PLANTED] + [row(15)])
    code, found, facts = scanned(root, tmp_path / 'scan.json')
    assert code == 1
    said = json.dumps([facts['annotations'][key] for key in ('unreadable', 'box_examples')])
    for _, expected, words in PLANTED:
        assert expected in found
        assert words in said.replace('": ["', ': ').replace('", "', '; ') + found[expected], words
    assert set(found) - {'MG146'} == {expected for _, expected, _ in PLANTED}  # rows 9 and 10 teach nothing
    (root / '15.jpg').write_bytes(picture(30, 20))
    make(tmp_path / 'sized', [row(number, width=64, height=48) for number in range(14)])
    (tmp_path / 'sized/05.jpg').write_bytes(picture(30, 20))
    assert '05.jpg: 30 x 20 on disk' in scanned(tmp_path / 'sized', tmp_path / 'scan.json')[1]['MG175']


def test_labels_against_classes(tmp_path: Path) -> None:
    root = make(tmp_path / 'numbers', [row(number, named=False) for number in range(14)])
    assert scanned(root, tmp_path / 'scan.json', '--num-classes', '3')[:2] == (0, {})
    code, found, _ = scanned(root, tmp_path / 'scan.json', '--num-classes', '2')
    assert 'metadata.jsonl: line 1' in next(iter(found.values()))
    assert code == 1
    (tmp_path / 'minus').mkdir()
    make(tmp_path / 'minus', [row(number, *[(-1, BOX)] * (number == 4), named=False) for number in range(14)])
    code, found, _ = scanned(tmp_path / 'minus', tmp_path / 'scan.json', '--num-classes', '3')
    assert 'metadata.jsonl: line 5, object 3' in found['MG105']
    root = make(tmp_path / 'named', [row(number, *[('horse', BOX)] * (number == 2)) for number in range(14)])
    found = scanned(root, tmp_path / 'scan.json', '--classes', 'cat,cow,dog')[1]
    assert "1 annotation of 'horse'" in found['MG154']


#: Objects behind those of the first rows, or rows, and the code of the finding that goes.
EDITS: Dict[str, Tuple[List[Any], List[str], str]] = {
    'case': ([('Cat', BOX), ('cat ', BOX)], [], 'MG177'),
    'a slip': ([('cowx', BOX), ('doog', BOX)], ['--classes', 'cat,cow,dog'], 'MG154'),
    'over the edge': ([('cat', [40, 5, 40, 10])], [], 'MG152'),
    'below 0': ([('cat', [-9, 5, 20, 10])], [], 'MG152'),
    'outside': ([('cat', [100, 5, 20, 10])], [], 'MG109'),
    'no area': ([('cat', [5, 5, 0, 10])], [], 'MG109'),
    'a box of three': ([('cat', [5, 5, 9]), (None, BOX)], [], 'MG176'),
    'a line that is none': (['{"file_name": '], [], 'MG176'),
    'a row of no image': ([{'file_name': '', 'objects': {}}], [], 'MG176'),
}


@pytest.mark.parametrize('in_records', [False, True])
@pytest.mark.parametrize('name', sorted(EDITS))
def test_every_edit_followed_leaves_a_clean_set(name: str, in_records: bool, tmp_path: Path) -> None:
    planted, options, code = EDITS[name]
    rows: List[Any] = [row(number) for number in range(14)]
    for number, one in enumerate(planted):
        if isinstance(one, tuple):
            rows[number] = row(number, one)
        else:
            rows.append(one)
    for one in rows if in_records else ():
        if isinstance(one, dict) and one['objects']:
            pairs = zip(one['objects']['bbox'], one['objects']['categories'])
            one['objects'] = [{'bbox': box, 'category': label} for box, label in pairs]
    root = make(tmp_path / 'set', rows)
    assert set(scanned(root, tmp_path / 'scan.json', *options)[1]) == {code}
    written = edits(tmp_path / 'scan.json')
    assert set(written.values()) == {code}
    for number in written:
        out = tmp_path / f'fixed {number}'
        assert main(['fix', str(root), '--out', str(out), '--edit', str(number), *options]) == 0
        assert scanned(out, tmp_path / 'again.json', *options)[:2] == (0, {})
        lines, before = (out / 'metadata.jsonl').read_text().splitlines(), (root / 'metadata.jsonl').read_text()
        assert lines[5] == before.splitlines()[5]
        assert (out / '05.jpg').read_bytes() == picture()


def csv_of(labels: List[Any], head: str = 'file_name,label') -> str:
    return '\n'.join([head, *(f'{number:02d}.jpg,{label}' for number, label in enumerate(labels))])


@pytest.mark.parametrize('planted', ['Cat', ' cat', 'COW'])
def test_names_in_csv(planted: str, tmp_path: Path) -> None:
    labels = [NAMES[number % 3] for number in range(14)]
    root = make(tmp_path / 'set', [csv_of([*labels[:-1], planted])], 'metadata.csv')
    for number in range(14):
        (root / f'{number:02d}.jpg').write_bytes(picture())
    assert set(scanned(root, tmp_path / 'scan.json')[1]) == {'MG177'}
    for number in edits(tmp_path / 'scan.json'):
        out = tmp_path / f'fixed {number}'
        assert main(['fix', str(root), '--out', str(out), '--edit', str(number)]) == 0
        code, found, facts = scanned(out, tmp_path / 'again.json')
        assert (code, found, facts['total']) == (0, {}, 14)


# ---- nothing wrong


@pytest.mark.parametrize('keys', [('bbox', 'categories'), ('bbox', 'category'), ('boxes', 'labels')])
def test_clean_sets(keys: Tuple[str, str], tmp_path: Path) -> None:
    rows = [{'file_name': f'{n:02d}.jpg', 'objects': objects(*sound(n), keys=keys), 'more': 7} for n in range(14)]
    rows[0]['objects'] = objects(keys=keys)  # nothing is in this image
    root = make(tmp_path / 'set', rows)
    for target in (root, root / 'metadata.jsonl'):
        code, found, facts = scanned(target, tmp_path / 'scan.json')
        assert (code, found, facts['total'], facts['num_classes'], facts['files']) == (0, {}, 39, 3, 14)


def test_splits_and_labels_of_whole_images(tmp_path: Path) -> None:
    for split in ('train', 'test'):
        labels = [NAMES[number % 3] for number in range(14)]
        make(tmp_path / 'set' / split, [csv_of(labels)], 'metadata.csv')
        for number in range(14):
            (tmp_path / 'set' / split / f'{number:02d}.jpg').write_bytes(picture())
    code, found, facts = scanned(tmp_path / 'set', tmp_path / 'scan.json')
    assert (code, found, facts['files'], facts['class_names']) == (0, {}, 28, list(NAMES))
    rows = [{'file_name': f'{number:02d}.jpg', 'labels': [number % 3, (number + 1) % 3]} for number in range(14)]
    code, found, facts = scanned(make(tmp_path / 'several', rows), tmp_path / 'scan.json', '--num-classes', '3')
    assert (code, found, facts['total']) == (0, {}, 28)


def test_captions_are_no_labels(tmp_path: Path) -> None:
    rows = [{'file_name': f'{number:02d}.jpg', 'text': 'a cat'} for number in range(3)]
    make(tmp_path / 'set', rows)
    assert main(['scan', str(tmp_path / 'set/metadata.jsonl')]) == 2


# ---- damaged


def _line(record: Any) -> bytes:
    return json.dumps(record).encode() + b'\n'


GOOD = _line(row(0))
DAMAGED: Dict[str, bytes] = {
    'null bytes': GOOD + bytes(100),
    'binary': GOOD + bytes(range(256)) * 3,
    'latin-1': GOOD + '{"file_name": "caf\xe9.jpg", "label": 1}'.encode('latin-1'),
    'cut off': GOOD + GOOD[:30],
    'a list': GOOD + b'[1, 2]\n',
    'a number': GOOD + b'7\n',
    'nested': GOOD + b'[' * 100_000,
    'two in a line': GOOD + GOOD.strip() + GOOD,
    'half a character': GOOD + b'{"file_name": "a.jpg", "label": "\\ud800"}\n',
    'half a path': GOOD + b'{"file_name": "\\ud800.jpg", "label": "cat"}\n',
    'a null byte in a path': GOOD + _line({'file_name': 'a\0.jpg', 'label': 'cat'}),
    'paths of anything': GOOD + b''.join(_line({**row(1), 'file_name': one}) for one in (7, [], {}, True)),
    'objects of anything': GOOD + b''.join(_line({**row(1), 'objects': one}) for one in (7, 'a', [1], True)),
    'boxes of anything': GOOD + _line(row(1, *[('cat', one) for one in (None, 7, 'a', {}, [None] * 4, [[]] * 4)])),
    'nan': GOOD + b'{"file_name": "a.jpg", "objects": {"bbox": [[NaN, 1, 2, 3]], "category": ["cat"]}}\n',
    'huge': GOOD + b'{"file_name": "a.jpg", "objects": {"bbox": [[1' + b'0' * 4000 + b', 1, 2]], "category": [1]}}\n',
    'labels of anything': GOOD + _line(row(1, *[(one, BOX) for one in (None, 1.5, [], {}, True, '', 1 << 40)])),
    'label of nothing': GOOD + _line({'file_name': '00.jpg', 'label': None}),
    'a table of anything': GOOD + _line({**row(1), 'objects': {'bbox': 7, 'category': None}}),
    'another number': GOOD + _line({**row(1), 'objects': {'bbox': [BOX], 'category': []}}),
}  # fmt: skip


@pytest.mark.parametrize('name', sorted(DAMAGED))
def test_damage_does_not_end_the_scan(name: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = make(tmp_path / 'set', [row(number) for number in range(14)])
    (root / 'train').mkdir()
    (root / 'train/metadata.jsonl').write_bytes(DAMAGED[name])
    (root / 'train/00.jpg').write_bytes(picture())
    code, _, facts = scanned(root, tmp_path / 'scan.json')
    assert code == 1
    assert 'train/metadata.jsonl' in json.dumps(facts['annotations']['unreadable'])
    assert facts['total'] >= 42
    assert main(['fix', str(root), '--out', str(tmp_path / 'fixed')]) in (0, 1)
    printed = capsys.readouterr()
    assert 'should not happen' not in printed.out + printed.err
    assert main(['scan', str(root / 'train')]) in (1, 2)


@pytest.mark.parametrize('content', [b'', b' \n', b'file_name,label', b'file_name,label\na,b,c\n', b'"\n', b'\xff\xfe'])
def test_csv_without_a_row_is_not_clean(content: bytes, tmp_path: Path) -> None:
    (tmp_path / 'metadata.csv').write_bytes(content)
    assert main(['scan', str(tmp_path)]) in (1, 2)
    assert main(['scan', str(tmp_path / 'metadata.csv')]) in (1, 2)


def test_pipes_and_links(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', [row(number) for number in range(14)])
    for name in ('a', 'b', 'c'):
        (root / name).mkdir()
    os.mkfifo(root / 'a/metadata.jsonl')
    (root / 'b/metadata.jsonl').symlink_to(tmp_path / 'nothing')
    (root / 'c/metadata.jsonl').symlink_to(root / 'c/metadata.jsonl')
    code, found, _ = scanned(root, tmp_path / 'scan.json')
    assert (code, list(found)) == (1, ['MG132'])
