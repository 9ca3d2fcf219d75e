"""What of a log can be read, whatever stands in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmguard.files.typed_json import decoded, parsed
from mmguard.labels.tally import Tally
from mmguard.log.line_reader import Unread
from mmguard.log.lines import Line, read_logs
from mmguard.log.mode_totals import totals_of

LINE = {
    'mode': 'train', 'iter': 3, 'skipped_pixels': 9, 'remapped_pixels': 1, 'skipped_instances': 0,
    'remapped_instances': 0, 'total': 64,
    'samples': [{'source': 'a.png', 'skipped': 9, 'remapped': 1, 'values': {'11': 9, '-1': 1}}],
    'losses': {'head.loss': {'skipped': 2, 'remapped': 0}},
}  # fmt: skip
COUNTS = st.integers(0, 10**6)


def read(tmp_path: Path, content: bytes) -> Any:
    path = tmp_path / 'label_guard.jsonl'
    path.write_bytes(content)
    unread = Unread()
    return list(read_logs([path], unread)), unread


def parse_line(text: bytes) -> Line:
    return decoded(Line, parsed(text))


def test_a_line_is_read_whole() -> None:
    line = parse_line(json.dumps(LINE).encode())
    assert (line.mode, line.place) == ('train', 3)
    assert line.kinds['pixels'] == Tally(64, 9, 1)
    (found,) = line.found('pixels')
    assert found + Tally() == Tally(0, 9, 1, {11: 9, -1: 1}, 'a.png')
    assert line.losses['head.loss'].skipped == 2


def test_another_version_may_say_more_and_less() -> None:
    line = parse_line(json.dumps({'mode': 'train', 'iter': 1, 'new': [1], 'samples': [{'kind': 'keypoints'}]}).encode())
    assert (line.kinds, line.losses) == ({'pixels': Tally(), 'instances': Tally()}, {})
    assert (line.found('pixels'), line.found('instances')) == ([], [])


def test_a_last_line_without_an_end_is_reported_and_left_out(tmp_path: Path) -> None:
    text = json.dumps(LINE).encode()
    lines, unread = read(tmp_path, text + b'\n' + text[:40])
    assert len(lines) == 1
    assert unread.cut_off == [str(tmp_path / 'label_guard.jsonl')]
    assert unread.records == 0


def test_a_whole_last_line_without_a_newline_counts(tmp_path: Path) -> None:
    lines, unread = read(tmp_path, json.dumps(LINE).encode())
    assert (len(lines), unread.records, unread.cut_off) == (1, 0, [])


HUGE = b'9' * 400


@pytest.mark.parametrize(
    ('text', 'place'),
    [
        (b'\xff\xfe garbage', ''),
        (b'[1, 2]', ''),
        (b'{"a": 1}', "'mode'"),
        (b'{"mode": "train"}', "'iter'"),
        (b'{"mode": ["train"], "iter": 1}', 'mode: '),
        (b'{"mode": "train", "iter": "x"}', 'iter: "x"'),
        (b'{"mode": "train", "iter": true}', 'iter: true'),
        (b'{"mode": "train", "iter": 1.5}', 'iter: 1.5'),
        (b'{"mode": "train", "iter": %s}' % HUGE, 'iter: '),
        (b'{"mode": "train", "iter": 1, "skipped_pixels": -5}', 'skipped_pixels: -5'),
        (b'{"mode": "train", "iter": 1, "skipped_pixels": 1e999}', 'skipped_pixels: Infinity'),
        (b'{"mode": "train", "iter": 1, "samples": 3}', 'samples: 3'),
        (b'{"mode": "train", "iter": 1, "samples": [{"source": {}}]}', 'samples: source: '),
        (b'{"mode": "train", "iter": 1, "samples": [{"values": {"x": 1}}]}', 'values: "x"'),
        (b'{"mode": "train", "iter": 1, "samples": [{"values": {"%s": 1}}]}' % HUGE, 'values: '),
        (b'{"mode": "train", "iter": 1, "samples": [{"values": {"24": -1}}]}', 'values: 24: -1'),
        (b'{"mode": "train", "iter": 1, "losses": {"a": 1}}', 'losses: a: 1'),
        (b'{"mode": "train", "iter": 1, "filled": [{"rank": 99999999}]}', 'rank: 99999999'),
        (b'[' * 100_000, ''),
    ],
)
def test_a_damaged_line_is_named_and_hides_no_other(tmp_path: Path, text: bytes, place: str) -> None:
    whole = json.dumps(LINE).encode() + b'\n'
    lines, unread = read(tmp_path, whole + text + b'\n' + whole)
    assert (len(lines), unread.records) == (2, 1)
    (said,) = unread.first
    assert said.startswith(f'{tmp_path / "label_guard.jsonl"}:2')
    assert place in said


def test_of_many_damaged_lines_the_first_are_named(tmp_path: Path) -> None:
    _, unread = read(tmp_path, b'{}\n' * 5_000)
    assert (unread.records, len(unread.first), len(unread.words())) == (5_000, 10, 11)
    assert '4,990' in unread.words()[-1]


@pytest.mark.parametrize('end', [b'', b'\n'])
def test_what_is_wrong_is_not_called_cut_off(tmp_path: Path, end: bytes) -> None:
    _, unread = read(tmp_path, b'{"mode": 1}' + end)
    assert (unread.records, unread.cut_off) == (1, [])


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
    one, other = totals_of(*([line] for line in lines)), totals_of(*([line] for line in shuffled))
    assert one.keys() == other.keys()
    if one:
        assert one['train'].kinds == other['train'].kinds
        assert one['train'].files == other['train'].files
        assert one['train'].kinds['pixels'].skipped == sum(n for *_, n in found)
        assert one['train'].iterations == len({place for _, place, _ in found})
