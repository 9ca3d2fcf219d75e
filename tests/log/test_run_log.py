"""What one writer leaves, as `mmguard report` reads it."""

from __future__ import annotations

import json
import resource
import signal
import warnings
from pathlib import Path
from typing import Any, List

import pytest
import torch
from warm import run as run_program
from window_stats import make_stats

from mmguard.cli import main
from mmguard.detection import guard_batch
from mmguard.distributed import RankLosses
from mmguard.labels.tally import Tally
from mmguard.log import run_log
from mmguard.log.run_log import JsonLines, RunLog
from mmguard.log.statistics import Stats, group_tallies
from mmguard.loops import TallyLog

FILLED = [RankLosses(1, ['loss_mask', 'loss_bbox'], ['img_0006.jpg'])]


def offence(values: Any, source: str = 'a.png', total: int = 100) -> Stats:
    tally = Tally(total, sum(values.values()), 0, values, source)
    return make_stats(1, 1, 1, 1, Tally(total, tally.skipped), offending=group_tallies(pixels=[tally]))


def report(folder: Path, code: int = 0) -> Any:
    """The fields of the report."""
    pytest.importorskip('rich')
    assert main(['report', str(folder), '--json', str(folder / 'report.out')]) == code
    return json.loads((folder / 'report.out').read_text())


def read(path: Any) -> List[Any]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_what_ranks_lacked_is_in_lines_sums_and_report(tmp_path: Path) -> None:
    log = RunLog(str(tmp_path), 0, 2)
    log.begin('train')
    for iteration in range(1, 13):
        log.see('train', {'iter': iteration}, make_stats(1, samples=1, empty_images=1))
        log.add_filled_losses('train', {'iter': iteration}, FILLED)
    log.end('train')
    lines = read(log.lines)
    ranks = [{'rank': 1, 'losses': ['loss_mask', 'loss_bbox'], 'samples': ['img_0006.jpg']}]
    assert lines[0] == {'mode': 'train', 'iter': 1, 'filled': ranks}
    assert len(lines) == 12
    totals = json.loads((tmp_path / 'label_guard.json').read_text())['runs'][0]['modes']['train']['totals']
    assert totals['filled'] == {'loss_mask': {'1': 12}, 'loss_bbox': {'1': 12}}
    said = report(tmp_path)['modes']['train']
    assert said['filled'] == totals['filled']
    assert said['empty_images'] == 12


def test_a_hook_that_only_fills_needs_no_loop(tmp_path: Path) -> None:
    RunLog(str(tmp_path)).add_filled_losses('train', {'iter': 5}, FILLED)
    assert report(tmp_path)['modes']['train']['filled'] == {'loss_mask': {'1': 1}, 'loss_bbox': {'1': 1}}


def test_values_that_are_not_said_again_are_counted_all_the_same(tmp_path: Path) -> None:
    log = RunLog(str(tmp_path))
    log.begin('train', {'guards': [{'kind': 'pixels', 'num_classes': 9, 'ignore_index': 255}]})
    for iteration, values in enumerate(({11: 3}, {11: 4}, {11: 1, 12: 2}, {11: 1, 12: 2}), start=1):
        log.see('train', {'iter': iteration}, offence(values), ['a.png'])
    log.end('train')
    assert ['values' in line['samples'][0] for line in read(log.lines)] == [True, False, True, False]
    (file,) = report(tmp_path, code=1)['files']
    assert (file['source'], file['skipped'], file['values']) == ('a.png', 13, {'11': 9, '12': 4})


def test_a_log_that_reached_its_limit_is_read_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, 'MAX_MB', 0.002)
    log = RunLog(str(tmp_path))
    log.begin('train')
    for iteration in range(1, 100):
        log.see('train', {'iter': iteration}, offence({iteration: 1}))
    log.end('train')
    (problem,) = log.take_problems()
    assert log.lines in problem
    assert log.take_problems() == []
    pixels = report(tmp_path, code=1)['modes']['train']['pixels']
    assert (pixels['skipped'], pixels['total']) == (99, 9_900)


def test_each_line_is_on_disk_at_once_after_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / 'new' / 'log.jsonl'
    lines = JsonLines(str(path))
    for number in range(4):
        assert lines.write({'number': number})
        assert read(path) == [{'number': n} for n in range(number + 1)]
        if number == 1:
            lines.close()
        if number == 2:
            lines = JsonLines(str(path))


def test_a_disk_that_fills_up_within_a_line_leaves_the_lines_before(tmp_path: Path) -> None:
    path = tmp_path / 'log.jsonl'
    lines = JsonLines(str(path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40, before[1]))
        written = [lines.write({'number': number}) for number in range(4)]  # 14 bytes each
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert written == [True, True, False, False]
    # Once there is room again, the next line ends the torn one and goes on.
    assert lines.error is not None
    assert lines.write({'number': 9})
    assert lines.error is None
    assert [line for line in path.read_text().splitlines() if line.endswith('}')] == [
        '{"number": 0}',
        '{"number": 1}',
        '{"number": 9}',
    ]


def test_it_stops_growing_at_its_limit_and_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, 'MAX_MB', 1000 / 2**20)
    path = tmp_path / 'log.jsonl'
    lines = JsonLines(str(path))
    written = [lines.write({'number': number}) for number in range(200)]
    assert path.stat().st_size < 1000 + 100
    *counted, note = read(path)
    assert [line['number'] for line in counted] == list(range(sum(written)))
    assert 0 < sum(written) < 75
    assert note.keys() == {'note'}
    assert lines.is_full
    lines.close()
    # What stands there already counts, too.
    other = JsonLines(str(path))
    assert not other.write({'number': 1})


def batch(*labels: list, first: int = 0) -> Any:
    images = [torch.zeros(3, 8, 8)] * len(labels)
    return images, [
        {'labels': torch.tensor(one, dtype=torch.int64), 'image_id': torch.tensor([first + place])}
        for place, one in enumerate(labels)
    ]


def test_report_tells_what_the_loop_met(tmp_path: Path) -> None:
    log = TallyLog(str(tmp_path / 'run'))
    for iteration, labels in enumerate(([[1, 2], [3]], [[1, 264], [264, 264], [], [264, 3]], [[264], [5]]), start=1):
        _, _, tallies = guard_batch(*batch(*labels), 264, return_tally=True)
        log.write(iteration, tallies)
    lines = read(log.path)
    assert [line['iter'] for line in lines] == [2, 3]
    assert lines[0] == {
        'mode': 'train',
        'iter': 2,
        'skipped_pixels': 0,
        'remapped_pixels': 0,
        'skipped_instances': 4,
        'remapped_instances': 0,
        'total': 0,
        'samples': [
            dict(source='image_id 0', skipped=1, remapped=0, values={'264': 1}, reasons={'label': 1}, kind='instances'),
            dict(source='image_id 1', skipped=2, remapped=0, values={'264': 2}, reasons={'label': 2}, kind='instances'),
            dict(source='image_id 3', skipped=1, remapped=0, values={'264': 1}, reasons={'label': 1}, kind='instances'),
        ],
        'losses': {},
        'total_instances': 6,
        'reasons': {'label': 4},
        'empty_images': 2,
    }
    worst = report(tmp_path / 'run', code=1)['files'][0]
    assert (worst['kind'], worst['skipped'], worst['values']) == ('instances', 2, {'264': 2})


@pytest.mark.parametrize('kind', ['instances', 'pixels'])
def test_report_knows_that_the_loop_is_one_of_pytorch(tmp_path: Path, kind: str) -> None:
    with TallyLog(str(tmp_path), num_classes=264) as log:
        for iteration in range(1, 4):
            log.write(iteration, [Tally(9, 3, values={264: 3}, source='a.png', reasons={'label': 3})], kind)
    assert json.loads((tmp_path / 'label_guard.json').read_text())['runs'][0]['framework'] == 'pytorch'
    (finding,) = report(tmp_path, code=1)['findings']
    assert (finding['of'], finding['code'], finding['values']) == (f'train, {kind}', 'MG102', {'264': 9})
    assert finding['edits'] == []


def test_what_cannot_be_written_is_reported_once_and_hurts_nobody(tmp_path: Path) -> None:
    (tmp_path / 'run').write_text('a file where the folder should be')
    log = TallyLog(str(tmp_path / 'run'))
    with pytest.warns(UserWarning, match=r'run/label_guard\.jsonl'):
        log.write(1, [Tally(4, 1)])
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        log.write(2, [Tally(4, 1)])


def test_wrong_arguments_are_reported(tmp_path: Path) -> None:
    log = TallyLog(str(tmp_path))
    with pytest.raises(ValueError, match="'boxes'"):
        log.write(1, [], kind='boxes')
    with pytest.raises(TypeError, match='iteration'):
        log.write('1', [])  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_sums_over_all_iterations(tmp_path: Path) -> None:
    with TallyLog(str(tmp_path), num_classes=19, ignore_index=255) as log:
        log.write(1, [Tally(100, source='a.png')], kind='pixels')
        log.write(2, [Tally(100, 7, 0, {31: 7}, 'b.png')], kind='pixels')
        log.write(1, [Tally(50, source='c.png')], kind='pixels', mode='val')
    (run,) = json.loads((tmp_path / 'label_guard.json').read_text())['runs']
    train, val = run['modes']['train'], run['modes']['val']
    assert (train['ended'], train['iter'], val['ended']) == (True, 2, True)
    assert train['guards'] == [{'kind': 'pixels', 'num_classes': 19, 'ignore_index': 255}]
    totals = train['totals']
    assert (totals['iterations'], totals['offending_iterations'], totals['files']) == (2, 1, 2)
    pixels = report(tmp_path, code=1)['modes']['train']['pixels']
    assert (pixels['skipped'], pixels['total']) == (7, 200)


LOOP = """
import os, sys
from mmguard import Tally
from mmguard.loops import TallyLog
log = TallyLog(sys.argv[1])
log.write(1, [Tally(4)])
log.write(2, [Tally(4)])
{end}
"""


@pytest.mark.parametrize(
    ('end', 'iterations', 'ended'),
    [('', 2, True), ('raise SystemExit(3)', 2, True), ('raise KeyError', 2, True), ('os._exit(0)', 0, False)],
    ids=['to its end', 'exit', 'exception', 'killed'],
)
def test_nobody_has_to_close_it(tmp_path: Path, end: str, iterations: int, ended: bool) -> None:
    """What was written is counted however the program ends; one that is killed says so."""
    run_program(LOOP.format(end=end), str(tmp_path))
    (run,) = json.loads((tmp_path / 'label_guard.json').read_text())['runs']
    assert run['modes']['train']['ended'] is ended
    # Killed, it has what stood there at the start of the loop: the file is written once a minute.
    assert run['modes']['train']['totals']['iterations'] == iterations


def test_a_folder_that_was_taken_away_is_not_made_again(tmp_path: Path) -> None:
    end = 'import shutil; shutil.rmtree(sys.argv[1])'
    assert run_program(LOOP.format(end=end), str(tmp_path / 'run')).returncode == 0
    assert not (tmp_path / 'run').exists()


def test_after_closing_it_goes_on(tmp_path: Path) -> None:
    log = TallyLog(str(tmp_path))
    for iteration in (1, 2):
        log.write(iteration, [Tally(10, iteration, 0, {7: iteration}, 'a.png')], kind='pixels')
        log.close()
    (run,) = json.loads((tmp_path / 'label_guard.json').read_text())['runs']
    assert run['modes']['train']['totals']['iterations'] == 2
    assert len(Path(log.path).read_text().splitlines()) == 2
    log.write(3, [Tally(10)], kind='pixels')
    log._log.write()
    (run,) = json.loads((tmp_path / 'label_guard.json').read_text())['runs']
    assert run['modes']['train']['ended'] is False
