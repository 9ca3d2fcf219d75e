"""`mmguard.read_log`: a frame, files and a plot of what was logged, with the clean iterations."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Dict, Sequence

import pytest

import mmguard
from mmguard.errors import CannotRun
from mmguard.labels.tally import Tally
from mmguard.log.run_log import RunLog
from mmguard.log.span import Span, by_kind
from mmguard.log.tally_log import TallyLog
from mmguard.log.totals import LossCount


def span(*skipped: int) -> Span:
    """One iteration with an image per number."""
    tallies = [Tally(100, n, 0, {11: n}, f'/data/{place}.png') for place, n in enumerate(skipped) if n]
    return Span(
        iterations=1,
        offending_iterations=int(any(skipped)),
        samples=len(skipped),
        pixels=Tally(100 * len(skipped), sum(skipped)),
        offending=by_kind(pixels=tallies),
        losses={'head.loss': LossCount(50, 5, 1)} if any(skipped) else {},
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
    root.mkdir()
    (root / 'there.png').write_bytes(b'')
    log = RunLog(str(tmp_path / 'run'))
    log.begin('train', {'data_roots': [str(root)]}, [str(root)])
    offending = [Tally(9, n, 0, {11: n}, str(root / name)) for name, n in (('gone.png', 2), ('there.png', 5))]
    log.see('train', {'iter': 1}, Span(1, 1, pixels=Tally(18, 7), offending=by_kind(pixels=offending)))
    log.end('train')
    read = mmguard.read_log(tmp_path)
    assert f'  {root}/there.png (11: 5)' in read._repr_html_()
    found = read.files()
    assert [(one['source'], one['path'], one['skipped'], one['values']) for one in found] == [
        ('there.png', str(root / 'there.png'), 5, {11: 5}),
        ('gone.png', 'gone.png', 2, {11: 2}),
    ]
    assert {(one['mode'], one['kind'], one['remapped']) for one in found} == {('train', 'pixels', 0)}


def test_a_notebook_shows_names_and_never_runs_them(tmp_path: Path) -> None:
    with TallyLog(str(tmp_path)) as log:
        log.write(1, [Tally(4, 1, 0, {7: 1}, '<script>alert(1)</script>.png')], kind='pixels')
    shown = mmguard.read_log(tmp_path)._repr_html_()
    assert '&lt;script&gt;' in shown
    assert '<script' not in shown
    assert '1 skipped_pixels' in repr(mmguard.read_log(tmp_path))


def test_a_run_that_goes_on_in_its_folder_has_both_rows(tmp_path: Path) -> None:
    pytest.importorskip('pandas')
    first, second = RunLog(str(tmp_path)), RunLog(str(tmp_path))
    train(first, {1: [1], 2: [2], 3: [0]})
    first.end('train')
    train(second, {3: [4], 4: [0]})
    second.end('train')
    frame = mmguard.read_log(tmp_path).to_frame()
    assert list(zip(frame['iter'], frame['skipped_pixels'])) == [(1, 1), (2, 2), (3, 4), (4, 0), (3, 0)]


def test_a_log_of_an_older_version_and_a_damaged_line(tmp_path: Path) -> None:
    """Without ``loops`` in the record, and without a record."""
    pytest.importorskip('pandas')
    small_run(tmp_path)
    record = json.loads((tmp_path / 'label_guard.json').read_text())
    for mode in record['runs'][0]['modes'].values():
        del mode['loops']
    (tmp_path / 'label_guard.json').write_text(json.dumps(record))
    os.remove(tmp_path / 'label_guard.rank1.json')
    os.remove(tmp_path / 'label_guard.rank1.jsonl')
    frame = mmguard.read_log(tmp_path).to_frame()
    assert frame[frame['mode'] == 'train']['skipped_pixels'].tolist() == [0, 3, 0, 7, 0]
    assert frame[frame['mode'] == 'val']['skipped_pixels'].tolist() == [9, 9]
    os.remove(tmp_path / 'label_guard.json')
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
