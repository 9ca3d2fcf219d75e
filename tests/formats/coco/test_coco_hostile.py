"""No file ends the scan: each of these is reported, with the file and the place."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from coco_cases import ann, coco, write
from put_file import put

from mmguard.formats.coco.read import scan_coco

pytest.importorskip('rich')

GOOD = json.dumps(coco([ann(number) for number in range(5)]))


def with_(key: str, value: Any, kind: str = 'annotations') -> bytes:
    record = coco([ann(0), ann(1)])
    record[kind][0][key] = value
    return json.dumps(record).encode()


def instead(kind: str, value: Any) -> bytes:
    return json.dumps({**coco([ann(0), ann(1)]), kind: value}).encode()


def nested(depth: int) -> bytes:
    return GOOD.replace('"iscrowd": 0', '"iscrowd": 0, "x": ' + '[' * depth + ']' * depth, 1).encode()


DAMAGED: Dict[str, bytes] = {
    'empty': b'',
    'blank': b' \n\t ',
    'cut in a number': GOOD[: GOOD.index('0.jpg') + 60].encode(),
    'cut in a text': GOOD[: GOOD.index('.jpg')].encode(),
    'cut in a key': GOOD[: GOOD.index('annotations') + 4].encode(),
    'cut between elements': GOOD[: GOOD.index('"id": 3') - 1].encode(),
    'cut before the end': GOOD[:-1].encode(),
    'zeros at the end': (GOOD[:-200] + '\0' * 200).encode(),
    'no JSON': b'hello',
    'XML': b'<annotation></annotation>',
    'JPEG': b'\xff\xd8\xff\xe0' + b'\x01' * 300,
    'zeros': b'\0' * 1000,
    'gzip': gzip.compress(GOOD.encode()),
    'UTF-16': GOOD.encode('utf-16'),
    'UTF-16 without mark': GOOD.encode('utf-16-le'),
    'UTF-32': GOOD.encode('utf-32-be'),
    'BOM': b'\xef\xbb\xbf' + GOOD.encode(),
    'Latin-1': GOOD.replace('"cat"', '"größe"').encode('latin-1'),
    'Latin-1 in a text nobody reads': with_('note', 'é').replace(b'\\u00e9', b'\xe9'),
    'Latin-1 in a text behind': GOOD[:-1].encode() + b', "info": "\xe9"}',
    'lone surrogate': GOOD.replace('"cat"', '"\\ud800"').encode(),
    'lone surrogate in a file name': with_('file_name', '\udc80.jpg', 'images'),
    'JSON lines': '\n'.join([GOOD, GOOD]).encode(),
    'list': b'[{"images": []}]',
    'number': b'42',
    'null': b'null',
    'text': b'"annotations"',
    'empty object': b'{}',
    'labelme': b'{"version": "5.0", "shapes": [], "imagePath": "a.jpg"}',
    'images missing': b'{"annotations": [], "categories": []}',
    'annotations are an object': instead('annotations', {'1': ann(1)}),
    'annotations are null': instead('annotations', None),
    'images are a number': instead('images', 5),
    'categories are texts': instead('categories', ['cat', 'dog']),
    'categories without a name': instead('categories', [{'id': 1}]),
    'categories without an id': instead('categories', [{'name': 'cat'}]),
    'categories of text ids': instead('categories', [{'id': 'one', 'name': 'cat'}]),
    'annotations are garbage': instead('annotations', [1, 'x', None, [], [[]], True]),
    'images are garbage': instead('images', [1, 'x', None, [], {}]),
    'no keys at all': instead('annotations', [{}, {}, {}]),
    'box of text': with_('bbox', 'abcd'),
    'box of texts': with_('bbox', ['1', '2', '3', '4']),
    'box of three': with_('bbox', [1, 2, 3]),
    'box of five': with_('bbox', [1, 2, 3, 4, 5]),
    'box of lists': with_('bbox', [[1], [2], [3], [4]]),
    'box of booleans': with_('bbox', [True, False, True, True]),
    'box as an object': with_('bbox', {'x': 1}),
    'image_id is a list': with_('image_id', [1]),
    'category_id is an object': with_('category_id', {}),
    'category_id is a text': with_('category_id', 'cat'),
    'area is a text': with_('area', 'big'),
    'width is a text': with_('width', '640', 'images'),
    'file_name is a number': with_('file_name', 7, 'images'),
    'file_name with a null byte': with_('file_name', 'a\0/b.jpg', 'images'),
    'file_name leads away': with_('file_name', '../../../../etc/x.jpg', 'images'),
    'crowd is garbage': with_('iscrowd', {'a': []}),
    'crowd is a text': with_('iscrowd', '0'),
    'ignore is a text': with_('ignore', '0'),
    'segments are garbage': with_('segments_info', 5),
    'segments hold garbage': with_('segments_info', [5, None, {}]),
    'huge id': with_('id', 10**400),
    'id is NaN': with_('id', float('nan')),
    'image_id is NaN': with_('image_id', float('nan')),
    'width is NaN': with_('width', float('nan'), 'images'),
    'width is infinite': with_('width', float('inf'), 'images'),
    'width of 400 digits': with_('width', 10**400, 'images'),
    'height of 30 digits': with_('height', 10**30, 'images'),
    'height is 0': with_('height', 0, 'images'),
    'digits without end that nobody reads': with_('note', 7).replace(b'7', b'9' * 5000),
    'digits without end': GOOD.replace('"id": 3', '"id": ' + '9' * 5000).encode(),
    'number beyond a float': GOOD.replace('[10, 10,', '[1e999, 10,').encode(),
    'NaN': GOOD.replace('[10, 10,', '[NaN, -Infinity,').encode(),
    'deep': nested(200_000),
    'deep enough': nested(100),
    'deep and open': b'{"images": ' + b'[' * 3_000_000,
    'deep outside': b'{"info": ' + b'{"a":' * 1_000_000,
    'key without a value': b'{"annotations"}',
    'key without quotes': b'{annotations: []}',
    'single quotes': GOOD.replace('"', "'").encode(),
    'comma too many': GOOD.replace('}]', '},]').encode(),
    'comma missing': GOOD.replace('}, {', '} {').encode(),
    'comment': b'// mine\n' + GOOD.encode(),
    'key twice': GOOD[:-1].encode() + b', "annotations": []}',
    'one long text': b'{"images": ["' + b'x' * 5_000_000,
    'line break in a text': GOOD.replace('"cat"', '"c\nat"').encode(),
}
#: What is read all the same.
READABLE = (
    *('no keys at all', 'file_name with a null byte', 'file_name leads away'),
    *('huge id', 'number beyond a float', 'NaN', 'deep enough'),
)


@pytest.mark.parametrize('kind', list(DAMAGED))
def test_damaged_files_are_reported(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path / 'train.json', DAMAGED[kind])
    start = time.perf_counter()
    for options in ({}, {'num_classes': 2}, {'class_names': ['cat', 'bird']}, {'images': str(tmp_path)}):
        facts = scan_coco(str(path), **options)  # type: ignore[arg-type]
        unreadable = facts.annotations.unreadable
        assert unreadable or kind in READABLE
        assert all(path.name in place for places in unreadable.values() for place in places)
        assert sum(facts.histogram.values()) <= facts.total
        assert facts.offending_files <= facts.files
    assert time.perf_counter() - start < 20


def test_what_is_reported_of_each(tmp_path: Path, snapshot: Any) -> None:
    lines = []
    for kind, data in DAMAGED.items():
        (tmp_path / 'train.json').write_bytes(data)
        annotations = scan_coco(str(tmp_path / 'train.json')).annotations
        lines.append(f'{kind}: {"; ".join(annotations.unreadable) or "-"}')
    snapshot('scan_faults', 'COCO files that are damaged', '\n'.join(lines))


def test_what_stands_before_the_damage_is_counted(tmp_path: Path) -> None:
    path = put(tmp_path / 'train.json', GOOD[: GOOD.index('"id": 3') - 1])
    facts = scan_coco(str(path))
    assert (facts.files, facts.total) == (3, 3)


def test_of_a_key_that_stands_twice_the_last_counts(tmp_path: Path) -> None:
    path = put(tmp_path / 'train.json', f'{GOOD[:-1]}, "annotations": [{json.dumps(ann(0))}], "images": []}}')
    facts = scan_coco(str(path))
    assert (facts.files, facts.total) == (0, 1)


def test_the_box_that_is_no_number_is_named(tmp_path: Path) -> None:
    path = put(tmp_path / 'train.json', GOOD.replace('[10, 10,', '[NaN, 10,', 2).replace('[10, 10,', '[1e999, 10,', 1))
    facts = scan_coco(str(path))
    assert facts.reasons == {'box_not_finite': 3}
    assert facts.annotations.without_key == {}


@pytest.mark.parametrize('make', [Path.mkdir, os.mkfifo, lambda path: os.symlink('nowhere', path), lambda path: None])
def test_what_is_no_file_is_reported_at_once(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / 'train.json'
    make(path)
    facts = scan_coco(str(path))
    assert list(facts.annotations.unreadable.values()) == [['train.json']]


def test_many_faults_of_a_kind_are_named_in_part(tmp_path: Path) -> None:
    record = coco([ann(number, bbox='x') for number in range(500)])
    facts = scan_coco(write(tmp_path, record))
    (places,) = facts.annotations.unreadable.values()
    assert places[0] == "train.json: annotations[0]: 'x'"
    assert len(places) == 21
    assert '480' in places[-1]
