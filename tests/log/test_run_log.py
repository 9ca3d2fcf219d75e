"""What one writer leaves, as `mmguard report` reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, List

import pytest

from mmguard.cli import main
from mmguard.distributed import RankLosses
from mmguard.labels.tally import Tally
from mmguard.log.run_log import RunLog
from mmguard.log.span import Span, by_kind

FILLED = [RankLosses(1, ['loss_mask', 'loss_bbox'], ['img_0006.jpg'])]


def offence(values: Any, source: str = 'a.png', total: int = 100) -> Span:
    tally = Tally(total, sum(values.values()), 0, values, source)
    return Span(1, 1, 1, 1, Tally(total, tally.skipped), offending=by_kind(pixels=[tally]))


def report(folder: Path, code: int = 0) -> Any:
    """The fields of the report."""
    pytest.importorskip('rich')
    assert main(['report', str(folder), '--json', str(folder / 'report.out')]) == code
    return json.loads((folder / 'report.out').read_text())


def lines_of(log: RunLog) -> List[Any]:
    return [json.loads(line) for line in Path(log.path or '').read_text().splitlines()]


def test_the_framework_is_that_of_the_hooks_where_nothing_is_said(tmp_path: Path) -> None:
    for said, expected in (({}, 'openmmlab'), ({'framework': 'nnunet'}, 'nnunet')):
        RunLog(str(tmp_path / expected), **said).begin('train')
        record = json.loads((tmp_path / expected / 'label_guard.json').read_text())
        assert record['runs'][0]['framework'] == expected


def test_what_ranks_lacked_is_in_lines_sums_and_report(tmp_path: Path) -> None:
    log = RunLog(str(tmp_path), 0, 2)
    log.begin('train')
    for iteration in range(1, 13):
        log.see('train', {'iter': iteration}, Span(1, samples=1, empty_images=1))
        log.fill('train', {'iter': iteration}, FILLED)
    log.end('train')
    lines = lines_of(log)
    ranks = [{'rank': 1, 'losses': ['loss_mask', 'loss_bbox'], 'samples': ['img_0006.jpg']}]
    assert lines[0] == {'mode': 'train', 'iter': 1, 'filled': ranks}
    assert len(lines) == 12
    totals = json.loads((tmp_path / 'label_guard.json').read_text())['runs'][0]['modes']['train']['totals']
    assert totals['filled'] == {'loss_mask': {'1': 12}, 'loss_bbox': {'1': 12}}
    said = report(tmp_path)['modes']['train']
    assert said['filled'] == totals['filled']
    assert said['empty_images'] == 12


def test_a_hook_that_only_fills_needs_no_loop(tmp_path: Path) -> None:
    RunLog(str(tmp_path)).fill('train', {'iter': 5}, FILLED)
    assert report(tmp_path)['modes']['train']['filled'] == {'loss_mask': {'1': 1}, 'loss_bbox': {'1': 1}}


def test_values_that_are_not_said_again_are_counted_all_the_same(tmp_path: Path) -> None:
    log = RunLog(str(tmp_path))
    log.begin('train', {'guards': [{'kind': 'pixels', 'num_classes': 9, 'ignore_index': 255}]})
    for iteration, values in enumerate(({11: 3}, {11: 4}, {11: 1, 12: 2}, {11: 1, 12: 2}), start=1):
        log.see('train', {'iter': iteration}, offence(values), ['a.png'])
    log.end('train')
    assert ['values' in line['samples'][0] for line in lines_of(log)] == [True, False, True, False]
    assert report(tmp_path, code=1)['modes']['train']['pixels']['files'] == [
        {'source': 'a.png', 'skipped': 13, 'remapped': 0, 'values': {'11': 9, '12': 4}}
    ]


def test_a_log_that_reached_its_limit_is_read_to_the_end(tmp_path: Path) -> None:
    log = RunLog(str(tmp_path), max_mb=0.002)
    log.begin('train')
    for iteration in range(1, 100):
        log.see('train', {'iter': iteration}, offence({iteration: 1}))
    log.end('train')
    (problem,) = log.take_problems()
    assert str(log.path) in problem
    assert log.take_problems() == []
    pixels = report(tmp_path, code=1)['modes']['train']['pixels']
    assert (pixels['skipped'], pixels['total']) == (99, 9_900)


def test_names_that_are_no_utf_8_and_hold_control_characters(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    log = RunLog(str(tmp_path))
    log.begin('train')
    log.see('train', {'iter': 1}, offence({11: 1}, 'stra\udcdfe\n\x1b[31m.png'))
    log.end('train')
    report(tmp_path, code=1)
    assert 'stra\\xdfe\\n\\x1b[31m.png' in capsys.readouterr().out
