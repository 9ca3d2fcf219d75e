"""Files of a run, the lines of its logs, and the log as an object."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, Dict, List, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from put_file import put
from window_stats import make_stats

import mmguard
from mmguard.errors import CannotRun
from mmguard.files.plain_data import decode, parse_object
from mmguard.labels.tally import Tally
from mmguard.log.run_files import LogLine, NotALog, RunFiles, UnreadParts, find_run, read_logs, sum_lines
from mmguard.log.run_log import RunLog
from mmguard.log.statistics import Stats, group_tallies

LOG = '{"mode": "train", "iter": 1}\n'
RECORD = '{"format": 1, "runs": []}'
FLIGHT = '{"format": 2, "rank": 0, "capacity": 20}\n{"iter": 1, "samples": []}\n'


def make(folder: Path, **files: str) -> None:
    for name, text in files.items():
        put(folder / name.replace('__', '.'), text)


def names(paths: List[Path]) -> List[str]:
    return [path.name for path in paths]


def reported(run: RunFiles) -> Any:
    return names(run.logs), names(run.records), names(run.crashes)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """What two ranks left, and what is none of theirs."""
    folder = tmp_path / 'run'
    make(folder, label_guard__jsonl=LOG, label_guard__rank1__jsonl=LOG, label_guard__rank12__jsonl=LOG)
    make(folder, label_guard__rankx__jsonl=LOG, other__rank1__jsonl=LOG)
    make(folder, label_guard__json=RECORD, label_guard__rank1__json=RECORD)
    make(folder, label_guard_flight__jsonl=FLIGHT, label_guard_flight__rank1__jsonl=FLIGHT)
    return folder


LOGS = ['label_guard.jsonl', 'label_guard.rank1.jsonl', 'label_guard.rank12.jsonl']
RECORDS = ['label_guard.json', 'label_guard.rank1.json']
FLIGHTS = ['label_guard_flight.jsonl', 'label_guard_flight.rank1.jsonl']


@pytest.mark.parametrize('named', ['label_guard.jsonl', *RECORDS, *FLIGHTS])
def test_a_log_or_a_record_means_the_whole_run(run: Path, named: str) -> None:
    assert reported(find_run(run / named)) == (LOGS, RECORDS, FLIGHTS)


@pytest.mark.parametrize('text', [FLIGHT, FLIGHT.splitlines()[0]])
def test_a_flight_record_of_any_name_is_known_by_what_it_says(tmp_path: Path, text: str) -> None:
    make(tmp_path, sent_by_mail__json=text)
    assert names(find_run(tmp_path / 'sent_by_mail.json').crashes) == ['sent_by_mail.json']


def test_of_several_runs_the_newest_is_read(tmp_path: Path) -> None:
    for age, name in enumerate(('20260102_000000', '20260101_000000')):
        make(tmp_path / name, label_guard__rank1__jsonl=LOG)
        os.utime(tmp_path / name / 'label_guard.rank1.jsonl', (1000 - age, 1000 - age))
    assert find_run(tmp_path).folder.name == '20260102_000000'


@pytest.mark.parametrize('files', [dict(label_guard__json=RECORD), dict(label_guard_flight__jsonl=FLIGHT)])
def test_one_file_makes_a_run(tmp_path: Path, files: Any) -> None:
    make(tmp_path / 'a' / 'b', **files, label_guard__jsonl__old=LOG, label_guard__json__old=RECORD)
    assert sum(map(len, reported(find_run(tmp_path)))) == 1


def test_nothing_is_reported(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / 'x.jsonl'):
        with pytest.raises(NotALog, match=re.escape(str(path))):
            find_run(path)


@pytest.mark.parametrize('content', ['', '[1]', '[' * 100_000, '{"a": ', json.dumps(dict(mode='val', iter=1))])
def test_whatever_else_is_taken_for_a_log(tmp_path: Path, content: str) -> None:
    path = put(tmp_path / 'x.json', content)
    assert find_run(path).logs == [path]


LINE = {
    'mode': 'train', 'iter': 3, 'skipped_pixels': 9, 'remapped_pixels': 1, 'skipped_instances': 0,
    'remapped_instances': 0, 'total': 64,
    'samples': [{'source': 'a.png', 'skipped': 9, 'remapped': 1, 'values': {'11': 9, '-1': 1}}],
    'losses': {'head.loss': {'skipped': 2, 'remapped': 0}},
}  # fmt: skip
COUNTS = st.integers(0, 10**6)


def read(tmp_path: Path, content: bytes) -> Any:
    path = put(tmp_path / 'label_guard.jsonl', content)
    unread = UnreadParts()
    return list(read_logs([path], unread)), unread


def parse_line(text: bytes) -> LogLine:
    return decode(LogLine, parse_object(text))


def test_a_line_is_read_whole() -> None:
    line = parse_line(json.dumps(LINE).encode())
    assert (line.mode, line.place) == ('train', 3)
    stats = line.to_stats()
    assert stats.kinds['pixels'] == Tally(64, 9, 1)
    assert stats.offending['pixels'] == [Tally(0, 9, 1, {11: 9, -1: 1}, 'a.png')]
    assert stats.losses['head.loss'].skipped == 2


def test_another_version_may_say_more_and_less() -> None:
    line = parse_line(json.dumps({'mode': 'train', 'iter': 1, 'new': [1], 'samples': [{'kind': 'keypoints'}]}).encode())
    assert line.to_stats() == Stats()


def test_a_last_line_without_an_end_is_reported_and_left_out(tmp_path: Path) -> None:
    text = json.dumps(LINE).encode()
    lines, unread = read(tmp_path, text + b'\n' + text[:40])
    assert len(lines) == 1
    assert unread.cut_off == [str(tmp_path / 'label_guard.jsonl')]
    assert unread.records == 0


def test_a_whole_last_line_without_a_newline_counts(tmp_path: Path) -> None:
    lines, unread = read(tmp_path, json.dumps(LINE).encode())
    assert (len(lines), unread.records, unread.cut_off) == (1, 0, [])


@pytest.mark.parametrize(
    ('text', 'place'),
    [
        (b'\xff\xfe garbage', ''),
        (b'{"a": 1}', "'mode'"),
        (b'{"mode": ["train"], "iter": 1}', 'mode: '),
        (b'{"mode": "train", "iter": 1, "skipped_pixels": 1e999}', 'skipped_pixels: Infinity'),
        (b'{"mode": "train", "iter": 1, "samples": [{"source": {}}]}', 'samples: source: '),
        (b'{"mode": "train", "iter": 1, "samples": [{"values": {"x": 1}}]}', 'values: "x"'),
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
    assert (unread.records, len(unread.first), len(unread.list_messages())) == (5_000, 10, 11)
    assert '4,990' in unread.list_messages()[-1]


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
    one, other = sum_lines(*([line] for line in lines)), sum_lines(*([line] for line in shuffled))
    assert one.keys() == other.keys()
    if one:
        assert one['train'].sums.kinds == other['train'].sums.kinds
        assert one['train'].files.find_worst('pixels') == other['train'].files.find_worst('pixels')
        assert one['train'].sums.kinds['pixels'].skipped == sum(n for *_, n in found)
        assert one['train'].count_iterations() == len({place for _, place, _ in found})


def span(*skipped: int) -> Stats:
    """One iteration with an image per number."""
    tallies = [Tally(100, n, 0, {11: n}, f'/data/{place}.png') for place, n in enumerate(skipped) if n]
    return make_stats(
        iterations=1,
        offending_iterations=int(any(skipped)),
        samples=len(skipped),
        pixels=Tally(100 * len(skipped), sum(skipped)),
        offending=group_tallies(pixels=tallies),
        losses={'head.loss': Tally(50, 5, 1)} if any(skipped) else {},
    )


def train(log: RunLog, skipped: Dict[int, Sequence[int]]) -> None:
    log.begin('train', {'data_roots': ['/data']}, ['/data'])
    for iteration, counts in skipped.items():
        log.see('train', {'iter': iteration}, span(*counts))


def validate(log: RunLog, step: int, skipped: Sequence[int]) -> None:
    log.begin('val', {'data_roots': ['/data']}, ['/data'])
    for number, count in enumerate(skipped, 1):
        log.see('val', {'iter': number, 'step': step}, span(count))
    log.end('val')


def small_run(folder: Path) -> None:
    """Five iterations, with a validation after the second and one after the fifth, on two ranks."""
    for rank in (0, 1):
        log = RunLog(str(folder), rank, 2)
        train(log, {1: [0, 0], 2: [3 + rank, 0], 3: [0, 0], 4: [0, 7], 5: [0, 0]})
        validate(log, 2, [0, 9, 0])
        validate(log, 5, [0, 9, 0])
        log.end('train')


def test_a_frame_has_a_row_for_every_iteration(tmp_path: Path) -> None:
    pytest.importorskip('pandas')
    small_run(tmp_path / 'run')
    frame = mmguard.read_log(tmp_path).to_frame()
    train = frame[frame['mode'] == 'train']
    assert train['iter'].tolist() == train['step'].tolist() == [1, 2, 3, 4, 5]
    assert train['skipped_pixels'].tolist() == [0, 7, 0, 14, 0]
    assert train['loss_skipped'].tolist() == [0, 10, 0, 10, 0]
    assert train['loss_remapped'].tolist() == [0, 2, 0, 2, 0]
    val = frame[frame['mode'] == 'val']
    assert val['step'].tolist() == [2, 2, 2, 5, 5, 5]
    assert val['iter'].tolist() == [1, 2, 3, 1, 2, 3]
    assert val['skipped_pixels'].tolist() == [0, 18, 0, 0, 18, 0]
    assert len(frame) == 11
    assert not frame.drop(columns='mode').isna().any().any()


def test_files_are_ranked_and_can_be_opened(tmp_path: Path) -> None:
    root = tmp_path / 'data'
    put(root / 'there.png', b'')
    log = RunLog(str(tmp_path / 'run'))
    log.begin('train', {'data_roots': [str(root)]}, [str(root)])
    offending = [Tally(9, n, 0, {11: n}, str(root / name)) for name, n in (('gone.png', 2), ('there.png', 5))]
    log.see('train', {'iter': 1}, make_stats(1, 1, pixels=Tally(18, 7), offending=group_tallies(pixels=offending)))
    log.end('train')
    read = mmguard.read_log(tmp_path)
    found = read.files()
    assert [(one['source'], one['path'], one['skipped'], one['values']) for one in found] == [
        ('there.png', str(root / 'there.png'), 5, {11: 5}),
        ('gone.png', 'gone.png', 2, {11: 2}),
    ]
    assert {(one['mode'], one['kind'], one['remapped']) for one in found} == {('train', 'pixels', 0)}
    assert '7 skipped_pixels' in repr(read)
    assert '7 of 18 skipped' in str(read)
    assert str(read).index('there.png (11: 5)') < str(read).index('gone.png (11: 2)')


def test_a_run_that_goes_on_in_its_folder_has_both_rows(tmp_path: Path) -> None:
    pytest.importorskip('pandas')
    first, second = RunLog(str(tmp_path)), RunLog(str(tmp_path))
    train(first, {1: [1], 2: [2], 3: [0]})
    first.end('train')
    train(second, {3: [4], 4: [0]})
    second.end('train')
    frame = mmguard.read_log(tmp_path).to_frame()
    assert list(zip(frame['iter'], frame['skipped_pixels'])) == [(1, 1), (2, 2), (3, 4), (4, 0), (3, 0)]


def test_a_log_without_a_record_and_with_damaged_lines(tmp_path: Path) -> None:
    pytest.importorskip('pandas')
    small_run(tmp_path)
    for name in ('label_guard.json', 'label_guard.rank1.json', 'label_guard.rank1.jsonl'):
        os.remove(tmp_path / name)
    with open(tmp_path / 'label_guard.jsonl', 'a') as file:
        file.write('{"mode": 3}\n{"mode": "train", "iter": 9, "skip')
    log = mmguard.read_log(tmp_path / 'label_guard.jsonl')
    assert log.to_frame()['iter'].tolist() == [2, 3, 4, 2, 2]
    assert len(log.problems) == 2


def test_a_record_that_claims_any_number_of_iterations_is_refused(tmp_path: Path) -> None:
    pytest.importorskip('pandas')
    small_run(tmp_path)
    record = json.loads((tmp_path / 'label_guard.json').read_text())
    record['runs'][0]['modes']['train']['loops'] = {'5': 1 << 40}
    (tmp_path / 'label_guard.json').write_text(json.dumps(record))
    with pytest.raises(ValueError, match=f'{1 << 40:,}'):
        mmguard.read_log(tmp_path).to_frame()
    os.remove(tmp_path / 'label_guard.json')
    with open(tmp_path / 'label_guard.jsonl', 'a') as file:
        file.write(json.dumps({'mode': 'train', 'iter': (1 << 40) + 1, 'skipped_pixels': 1}) + '\n')
    with pytest.raises(ValueError, match=f'{1 << 40:,}'):
        mmguard.read_log(tmp_path).to_frame()


@pytest.mark.parametrize(('method', 'package'), [('to_frame', 'pandas'), ('plot', 'matplotlib')])
def test_what_is_missing_is_named(method: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_run(tmp_path)
    log = mmguard.read_log(tmp_path)
    for module in ('pandas', 'matplotlib', 'matplotlib.pyplot'):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=package):
        getattr(log, method)()


def test_a_folder_without_a_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=str(tmp_path)):
        mmguard.read_log(tmp_path)
