"""The lines of docs/log.md that read a log, on one with a part of training and one of validation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import pytest
from doc_pages import blocks_of
from window_stats import make_stats

from mmguard.labels.tally import Tally
from mmguard.log.run_log import RunLog
from mmguard.log.statistics import Stats, group_tallies


def iteration(skipped: int, by_loss: int = 0) -> Stats:
    tally = Tally(100, skipped, 0, {11: skipped}, 'a.png')
    losses = {'head.loss': Tally(50, by_loss)} if by_loss else {}
    return make_stats(
        1, pixels=Tally(100, skipped), offending=group_tallies(pixels=[tally] if skipped else []), losses=losses
    )


def write_run(folder: Path) -> None:
    log = RunLog(str(folder))
    log.begin('train')
    for number, counts in enumerate(((0,), (3, 1), (0,), (7,), (0,)), 1):
        log.see('train', {'iter': number}, iteration(*counts), ['a.png', 'b.png'])
        if number in (2, 5):
            log.begin('val')
            for place, count in enumerate((0, number, 1), 1):
                log.see('val', {'iter': place, 'step': number}, iteration(count), ['a.png'])
            log.end('val')
    log.end('train')


def plotted(axis: Any) -> Dict[str, List[Any]]:
    return {line.get_label(): [tuple(point) for point in line.get_xydata().tolist()] for line in axis.lines}


def test_the_plotted_data_are_those_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip('pandas')
    pytest.importorskip('matplotlib').use('Agg')
    write_run(tmp_path / 'work_dirs/my_config/20260101_120000')
    monkeypatch.chdir(tmp_path)
    names: Dict[str, Any] = {}
    (block,) = (block for block in blocks_of('docs/log.md') if block.language == 'python' and 'read_log' in block.code)
    exec(compile(block.code, block.name, 'exec'), names)
    train, val = names['axes']
    assert [axis.get_title() for axis in (train, val)] == ['train', 'val']
    assert plotted(train) == {
        'skipped_pixels': [(1, 0), (2, 3), (3, 0), (4, 7), (5, 0)],
        'loss_skipped': [(1, 0), (2, 1), (3, 0), (4, 0), (5, 0)],
    }
    assert plotted(val) == {'skipped_pixels': [(2, 3), (5, 6)]}
    assert names['sums'].to_dict() == {'train': 10, 'val': 9}
    assert [(one['mode'], one['path'], one['skipped']) for one in names['files']] == [
        ('train', 'a.png', 10),
        ('val', 'a.png', 9),
    ]
