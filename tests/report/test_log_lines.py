"""What of a log can be read, whatever stands in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmguard.report.log_lines import Line, Unread, parse_line, read_lines
from mmguard.report.log_totals import totals_of
from mmguard.tally import Tally

LINE = {
    'mode': 'train', 'iter': 3, 'skipped_pixels': 9, 'remapped_pixels': 1, 'skipped_instances': 0,
    'remapped_instances': 0, 'total': 64,
    'samples': [{'source': 'a.png', 'skipped': 9, 'remapped': 1, 'values': {'11': 9, '-1': 1}}],
    'losses': {'head.loss': {'skipped': 2, 'remapped': 0}},
}  # fmt: skip
COUNTS = st.integers(0, 10**6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def read(tmp_path: Path, content: bytes) -> Any:
    path = tmp_path / 'label_guard.jsonl'
    path.write_bytes(content)
    unread = Unread()
    return list(read_lines([path], unread)), unread


def test_a_line_is_read_whole() -> None:
    line = parse_line(json.dumps(LINE).encode())
    assert (line.mode, line.place) == ('train', 3)
    assert line.pixels == Tally(64, 9, 1)
    assert line.samples['pixels'] == [Tally(0, 9, 1, {11: 9, -1: 1}, 'a.png')]
    assert line.losses['head.loss'].skipped == 2


def test_another_version_may_say_more_and_less() -> None:
    line = parse_line(json.dumps({'mode': 'train', 'iter': 1, 'new': [1], 'samples': [{'kind': 'keypoints'}]}).encode())
    assert line == Line('train', 1, Tally(), Tally(), {'pixels': [], 'instances': []}, {})


def test_a_last_line_without_an_end_is_told_and_left_out(tmp_path: Path) -> None:
    text = json.dumps(LINE).encode()
    lines, unread = read(tmp_path, text + b'\n' + text[:40])
    assert len(lines) == 1
    assert unread.cut_off == [str(tmp_path / 'label_guard.jsonl')]
    assert unread.lines == 0


def test_a_whole_last_line_without_a_newline_counts(tmp_path: Path) -> None:
    lines, unread = read(tmp_path, json.dumps(LINE).encode())
    assert (len(lines), unread.lines, unread.cut_off) == (1, 0, [])


@pytest.mark.parametrize(
    ('text', 'why'),
    [
        (b'\xff\xfe garbage', 'not JSON'),
        (b'[1, 2]', 'not an object'),
        (b'{"a": 1}', "no 'mode'"),
        (b'{"mode": "train", "iter": "x"}', "'iter' is no integer"),
        (b'{"mode": "train", "iter": 1, "samples": 3}', "'samples'"),
        (b'{"mode": "train", "iter": 1, "samples": [{"values": {"x": 1}}]}', 'x'),
        (b'[' * 100_000, 'not JSON'),
    ],
)
def test_garbage_between_lines_is_counted_and_named(tmp_path: Path, text: bytes, why: str) -> None:
    good = json.dumps(LINE).encode() + b'\n'
    lines, unread = read(tmp_path, good + text + b'\n' + good)
    assert len(lines) == 2
    assert unread.lines == 1
    assert unread.first.startswith(f'{tmp_path / "label_guard.jsonl"}:2: ')
    assert why in unread.first


@given(JSON)
def test_no_json_crashes_the_reader(record: Any) -> None:
    for value in (record, {**LINE, 'samples': record}, {**LINE, 'losses': record}, {**LINE, 'total': record}):
        try:
            parse_line(json.dumps(value).encode())
        except ValueError:
            pass


@given(st.lists(st.tuples(st.sampled_from(['a', 'b', 'c']), st.integers(1, 5), COUNTS), max_size=12), st.data())
def test_ranks_add_up_in_any_order(found: List[Any], data: Any) -> None:
    """Lines of several files, dealt and ordered anyhow, give the same totals."""
    lines = [
        parse_line(
            json.dumps(
                {
                    **LINE,
                    'iter': place,
                    'skipped_pixels': n,
                    'samples': [{'source': source, 'skipped': n, 'remapped': 0, 'values': {'9': n}}],
                }
            ).encode()
        )
        for source, place, n in found
    ]
    shuffled = data.draw(st.permutations(lines))
    one, other = totals_of(lines), totals_of(shuffled)
    assert one.keys() == other.keys()
    if one:
        assert one['train'].kinds == other['train'].kinds
        assert one['train'].files == other['train'].files
        assert one['train'].history == other['train'].history
        assert one['train'].kinds['pixels'].skipped == sum(n for *_, n in found)
        assert one['train'].iterations == len({place for _, place, _ in found})
