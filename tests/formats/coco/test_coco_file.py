"""What comes out of the stream is what ``json.load`` reads, wherever the blocks happen to end."""

from __future__ import annotations

import io
import json
from typing import Any, Dict, List, Tuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mmguard.formats.coco import file as json_stream
from mmguard.formats.coco.file import JsonFault, Stream

NASTY = st.sampled_from(['},{', '}]', ']},', '"', '\\', '\\"},{', 'é', '\U0001f600', '\n', '', '"},', '[', '{"a":1}'])
TEXT = st.text(max_size=6) | NASTY
SCALAR = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | TEXT
VALUE = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=12
)
DOCUMENT = st.dictionaries(
    st.sampled_from(['images', 'annotations', 'categories', 'info']) | TEXT,
    st.lists(st.dictionaries(TEXT, VALUE, max_size=4), max_size=12) | st.lists(VALUE, max_size=6) | VALUE,
    max_size=5,
)
LAYOUTS = (
    dict(),
    dict(indent=2),
    dict(separators=(',', ':')),
    dict(separators=(' , ', ' : ')),
    dict(ensure_ascii=False),
)


def arrays(
    data: bytes, types: Dict[str, Any], block: int = json_stream.BLOCK
) -> Tuple[Dict[str, List[Any]], List[str]]:
    found: Dict[str, List[Any]] = {}
    warnings: List[str] = []
    for batch in Stream(io.BytesIO(data), types, lambda what, at: warnings.append(what), block):
        if batch.first == 0:
            found[batch.key] = []
        assert batch.first == len(found[batch.key])
        found[batch.key] += batch.records
    return found, warnings


@pytest.mark.parametrize('block', [3, 40])
@settings(max_examples=40, deadline=None)
@given(document=DOCUMENT, layout=st.sampled_from(LAYOUTS))
@example(document={'images': 100.0}, layout={})  # a number in two blocks
def test_any_document_is_read_as_json_reads_it(block: int, document: Dict[str, Any], layout: Dict[str, Any]) -> None:
    data = json.dumps(document, **layout).encode('utf-8', 'surrogatepass')
    keys = [key for key, value in document.items() if isinstance(value, list)]
    found, warnings = arrays(data, dict.fromkeys(keys, Any), block)
    assert found == {key: document[key] for key in keys}
    assert warnings == []


@pytest.mark.parametrize('block', [30])
@settings(max_examples=40, deadline=None)
@given(document=DOCUMENT, share=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_off_anywhere_is_reported_and_its_beginning_is_read(
    block: int, document: Dict[str, Any], share: float
) -> None:
    data = json.dumps(document).encode()
    cut = data[: int(len(data) * share)]
    stream = Stream(io.BytesIO(cut), dict.fromkeys(document, Any), lambda what, at: None, block)
    found: Dict[str, List[Any]] = {}

    def read() -> None:
        for batch in stream:
            found.setdefault(batch.key, []).extend(batch.records)

    with pytest.raises(JsonFault):
        read()
    for key, records in found.items():
        whole = document[key]
        # The last element may be a number, of which the cut left fewer digits.
        assert records == (whole[: len(records)] if isinstance(whole, list) else [])


def test_nan_and_infinity_are_read_as_json_reads_them() -> None:
    found, _ = arrays(b'{"annotations": [{"bbox": [NaN, -Infinity]}, {"bbox": [1, 2]}]}', {'annotations': Any})
    first, second = found['annotations']
    assert first['bbox'][0] != first['bbox'][0]
    assert first['bbox'][1] == float('-inf')
    assert second == {'bbox': [1, 2]}


def test_only_one_block_is_held_at_a_time() -> None:
    data = json.dumps({'annotations': [{'id': number, 'more': {'x': [{}, {}]}} for number in range(2000)]}).encode()
    stream = Stream(io.BytesIO(data), {'annotations': Any}, lambda what, at: None, 8000)
    largest = 0
    for _ in stream:
        largest = max(largest, len(stream._data))
    assert largest < 20_000 < len(data)


@pytest.mark.parametrize(
    ('data', 'place'),
    [
        (b'{"annotations": [{"a": 1}, {"a" 1}]}', 'annotations[1], byte 32'),
        (b'{"annotations": [{"a": 1}, {"a": 1', 'annotations[1]'),
        (b'{"annotations": [{"a": 1} {"a": 1}]}', 'annotations[0]'),
        (b'{"annotations": [{"a": 1},]}', 'annotations[1]'),
        (b'{"annotations" [{"a": 1}]}', 'byte 15'),
        (b'[1, 2]', 'byte 0'),
        (b'{"annotations": ' + b'[' * 100_000, 'annotations[0]'),
        (b'', 'byte 0'),
    ],
)
def test_damage_is_reported_with_its_place(data: bytes, place: str) -> None:
    with pytest.raises(JsonFault) as caught:
        arrays(data, {'annotations': Any})
    assert place in caught.value.at
