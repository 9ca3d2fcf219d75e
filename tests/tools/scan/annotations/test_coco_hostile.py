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

from mmguard.tools.scan.annotations import scan_coco

GOOD = json.dumps(coco([ann(number) for number in range(5)]))


def with_(key: str, value: Any, kind: str = 'annotations') -> bytes:
    record = coco([ann(0), ann(1)])
    record[kind][0][key] = value
    return json.dumps(record).encode()


def instead(kind: str, value: Any) -> bytes:
    return json.dumps({**coco([ann(0), ann(1)]), kind: value}).encode()


def nested(depth: int) -> bytes:
    return GOOD.replace('"iscrowd": 0', '"iscrowd": 0, "x": ' + '[' * depth + ']' * depth, 1).encode()


#: What is in the file -> a part of what is reported about it.
DAMAGED: Dict[str, Any] = {
    'empty': (b'', 'the file is empty'),
    'blank': (b' \n\t ', 'cut off'),
    'cut in a number': (GOOD[: GOOD.index('0.jpg') + 60].encode(), 'cut off'),
    'cut in a text': (GOOD[: GOOD.index('.jpg')].encode(), 'cut off'),
    'cut in a key': (GOOD[: GOOD.index('annotations') + 4].encode(), 'is no COCO JSON'),
    'cut between elements': (GOOD[: GOOD.index('"id": 3') - 1].encode(), 'cut off'),
    'cut before the end': (GOOD[:-1].encode(), 'cut off'),
    'zeros at the end': ((GOOD[:-200] + '\0' * 200).encode(), 'is damaged'),
    'no JSON': (b'hello', 'is no COCO JSON'),
    'XML': (b'<annotation></annotation>', 'is no COCO JSON'),
    'JPEG': (b'\xff\xd8\xff\xe0' + os.urandom(500), 'is no COCO JSON'),
    'zeros': (b'\0' * 1000, 'is not UTF-8 text'),
    'gzip': (gzip.compress(GOOD.encode()), 'is not UTF-8 text'),
    'UTF-16': (GOOD.encode('utf-16'), 'is no'),
    'UTF-16 without mark': (GOOD.encode('utf-16-le'), 'is not UTF-8 text'),
    'UTF-32': (GOOD.encode('utf-32-be'), 'is not UTF-8 text'),
    'BOM': (b'\xef\xbb\xbf' + GOOD.encode(), 'byte-order mark'),
    'Latin-1': (GOOD.replace('"cat"', '"größe"').encode('latin-1'), 'are not UTF-8'),
    'Latin-1 in a text nobody reads': (with_('note', 'é').replace(b'\\u00e9', b'\xe9'), 'are not UTF-8'),
    'Latin-1 in a text behind': (GOOD[:-1].encode() + b', "info": "\xe9"}', 'are not UTF-8'),
    'lone surrogate': (GOOD.replace('"cat"', '"\\ud800"').encode(), 'holds half of a character'),
    'lone surrogate in a file name': (with_('file_name', '\udc80.jpg', 'images'), 'no file can have that name'),
    'JSON lines': ('\n'.join([GOOD, GOOD]).encode(), 'more behind the end'),
    'list': (b'[{"images": []}]', 'is no COCO JSON'),
    'number': (b'42', 'is no COCO JSON'),
    'null': (b'null', 'is no COCO JSON'),
    'text': (b'"annotations"', 'is no COCO JSON'),
    'empty object': (b'{}', 'has no "images"'),
    'labelme': (b'{"version": "5.0", "shapes": [], "imagePath": "a.jpg"}', 'has no "annotations"'),
    'images missing': (b'{"annotations": [], "categories": []}', 'has no "images"'),
    'annotations are an object': (instead('annotations', {'1': ann(1)}), '"annotations" is no list'),
    'annotations are null': (instead('annotations', None), '"annotations" is no list'),
    'images are a number': (instead('images', 5), '"images" is no list'),
    'categories are texts': (instead('categories', ['cat', 'dog']), 'a category is no object'),
    'categories without a name': (instead('categories', [{'id': 1}]), 'a category has no name'),
    'categories without an id': (instead('categories', [{'name': 'cat'}]), 'a category has no id'),
    'categories of text ids': (instead('categories', [{'id': 'one', 'name': 'cat'}]), 'no whole number'),
    'annotations are garbage': (instead('annotations', [1, 'x', None, [], [[]], True]), 'an annotation is no object'),
    'images are garbage': (instead('images', [1, 'x', None, [], {}]), 'an image is no object'),
    'no keys at all': (instead('annotations', [{}, {}, {}]), None),
    'box of text': (with_('bbox', 'abcd'), 'bbox is not four numbers'),
    'box of texts': (with_('bbox', ['1', '2', '3', '4']), 'bbox is not four numbers'),
    'box of three': (with_('bbox', [1, 2, 3]), 'bbox is not four numbers'),
    'box of five': (with_('bbox', [1, 2, 3, 4, 5]), 'bbox is not four numbers'),
    'box of lists': (with_('bbox', [[1], [2], [3], [4]]), 'bbox is not four numbers'),
    'box of booleans': (with_('bbox', [True, False, True, True]), 'bbox is not four numbers'),
    'box as an object': (with_('bbox', {'x': 1}), 'bbox is not four numbers'),
    'image_id is a list': (with_('image_id', [1]), 'image_id is neither'),
    'category_id is an object': (with_('category_id', {}), 'category_id is neither'),
    'category_id is a text': (with_('category_id', 'cat'), 'category_id names no category'),
    'area is a text': (with_('area', 'big'), 'area is no number'),
    'width is a text': (with_('width', '640', 'images'), 'width is no number'),
    'file_name is a number': (with_('file_name', 7, 'images'), 'file_name is no text'),
    'file_name with a null byte': (with_('file_name', 'a\0/b.jpg', 'images'), None),
    'file_name leads away': (with_('file_name', '../../../../etc/x.jpg', 'images'), None),
    'crowd is garbage': (with_('iscrowd', {'a': []}), 'iscrowd is neither'),
    'crowd is a text': (with_('iscrowd', '0'), 'iscrowd is neither'),
    'ignore is a text': (with_('ignore', '0'), 'ignore is neither'),
    'segments are garbage': (with_('segments_info', 5), 'segments_info is no list'),
    'segments hold garbage': (with_('segments_info', [5, None, {}]), 'segments_info holds'),
    'huge id': (with_('id', 10**400), None),
    'id is NaN': (with_('id', float('nan')), 'id is neither a number'),
    'image_id is NaN': (with_('image_id', float('nan')), 'image_id is neither a number'),
    'width is NaN': (with_('width', float('nan'), 'images'), 'the size is not between'),
    'width is infinite': (with_('width', float('inf'), 'images'), 'the size is not between'),
    'width of 400 digits': (with_('width', 10**400, 'images'), 'the size is not between'),
    'height of 30 digits': (with_('height', 10**30, 'images'), 'the size is not between'),
    'height is 0': (with_('height', 0, 'images'), 'the size is not between'),
    'digits without end that nobody reads': (with_('note', 7).replace(b'7', b'9' * 5000), 'is damaged'),
    'digits without end': (GOOD.replace('"id": 3', '"id": ' + '9' * 5000).encode(), 'is damaged'),
    'number beyond a float': (GOOD.replace('[10, 10,', '[1e999, 10,').encode(), None),
    'NaN': (GOOD.replace('[10, 10,', '[NaN, -Infinity,').encode(), None),
    'deep': (nested(200_000), 'nested too deeply'),
    'deep enough': (nested(100), None),
    'deep and open': (b'{"images": ' + b'[' * 3_000_000, 'nested too deeply'),
    'deep outside': (b'{"info": ' + b'{"a":' * 1_000_000, 'nested too deeply'),
    'key without a value': (b'{"annotations"}', 'is no COCO JSON'),
    'key without quotes': (b'{annotations: []}', 'is no COCO JSON'),
    'single quotes': (GOOD.replace('"', "'").encode(), 'is no COCO JSON'),
    'comma too many': (GOOD.replace('}]', '},]').encode(), 'is damaged'),
    'comma missing': (GOOD.replace('}, {', '} {').encode(), 'is damaged'),
    'comment': (b'// mine\n' + GOOD.encode(), 'is no COCO JSON'),
    'key twice': (GOOD[:-1].encode() + b', "annotations": []}', 'has "annotations" twice'),
    'one long text': (b'{"images": ["' + b'x' * 5_000_000, 'cut off'),
    'line break in a text': (GOOD.replace('"cat"', '"c\nat"').encode(), 'is damaged'),
}


def test_there_are_enough_kinds() -> None:
    assert len(DAMAGED) >= 40


@pytest.mark.parametrize('kind', list(DAMAGED))
def test_damaged_files_are_reported(tmp_path: Path, kind: str) -> None:
    data, reported = DAMAGED[kind]
    path = tmp_path / 'train.json'
    path.write_bytes(data)
    start = time.perf_counter()
    for options in ({}, {'num_classes': 2}, {'class_names': ['cat', 'bird']}, {'images': str(tmp_path)}):
        facts = scan_coco(str(path), **options)  # type: ignore[arg-type]
        assert facts.annotations is not None
        unreadable = facts.annotations.unreadable
        if reported is not None and (reported != 'folder of images' or 'images' in options):
            (what,) = [what for what in unreadable if reported in what]
            assert unreadable[what]
            assert reported == 'folder of images' or all('train.json' in place for place in unreadable[what])
        assert sum(facts.histogram.values()) <= facts.total
        assert facts.offending_files <= facts.files
    assert time.perf_counter() - start < 20


def test_what_stands_before_the_damage_is_counted(tmp_path: Path) -> None:
    path = tmp_path / 'train.json'
    path.write_text(GOOD[: GOOD.index('"id": 3') - 1])
    facts = scan_coco(str(path))
    assert (facts.files, facts.total) == (3, 3)


def test_of_a_key_that_stands_twice_the_last_counts(tmp_path: Path) -> None:
    path = tmp_path / 'train.json'
    path.write_text(f'{GOOD[:-1]}, "annotations": [{json.dumps(ann(0))}], "images": []}}')
    facts = scan_coco(str(path))
    assert (facts.files, facts.total) == (0, 1)


def test_the_box_that_is_no_number_is_named(tmp_path: Path) -> None:
    path = tmp_path / 'train.json'
    path.write_text(GOOD.replace('[10, 10,', '[NaN, 10,', 2).replace('[10, 10,', '[1e999, 10,', 1))
    facts = scan_coco(str(path))
    assert facts.reasons == {'box_not_finite': 3}
    assert facts.annotations is not None
    assert facts.annotations.without_key == {}


@pytest.mark.parametrize('make', [Path.mkdir, os.mkfifo, lambda path: os.symlink('nowhere', path), lambda path: None])
def test_what_is_no_file_is_reported_at_once(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / 'train.json'
    make(path)
    facts = scan_coco(str(path))
    assert facts.annotations is not None
    assert any('cannot be read' in what for what in facts.annotations.unreadable)


def test_many_faults_of_a_kind_are_named_in_part(tmp_path: Path) -> None:
    record = coco([ann(number, bbox='x') for number in range(500)])
    facts = scan_coco(write(tmp_path, record))
    assert facts.annotations is not None
    places = facts.annotations.unreadable['bbox is not four numbers']
    assert places[0] == "train.json: annotations[0]: 'x'"
    assert (len(places), places[-1]) == (21, 'and 480 more')
