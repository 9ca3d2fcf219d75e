"""A log of one's own loop is one that `mmguard report` reads."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from mmguard import Tally
from mmguard.cli import main
from mmguard.functional import guard_batch
from mmguard.tally_log import TallyLog


def batch(*labels: list, first: int = 0) -> Any:
    images = [torch.zeros(3, 8, 8)] * len(labels)
    return images, [
        {'labels': torch.tensor(one, dtype=torch.int64), 'image_id': torch.tensor([first + place])}
        for place, one in enumerate(labels)
    ]


def test_report_tells_what_the_loop_met(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    log = TallyLog(str(tmp_path / 'run'))
    for iteration, labels in enumerate(([[1, 2], [3]], [[1, 264], [264, 264], [], [264, 3]], [[264], [5]]), start=1):
        _, _, tallies = guard_batch(*batch(*labels), 264, return_tally=True)
        log.write(iteration, tallies)
    lines = [json.loads(line) for line in Path(log.path).read_text().splitlines()]
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
    assert main(['report', log.path]) in (0, 1)
    said = capsys.readouterr().out
    assert 'image_id 1' in said
    assert '264' in said


def test_pixels_ranks_and_modes(tmp_path: Path) -> None:
    log = TallyLog(str(tmp_path), rank=2)
    log.write(7, [Tally(16, 3, 1, {11: 4}, 'a.png'), Tally(16)], kind='pixels', mode='val')
    (line,) = map(json.loads, (tmp_path / 'label_guard.rank2.jsonl').read_text().splitlines())
    assert (line['mode'], line['iter'], line['total']) == ('val', 7, 32)
    assert (line['skipped_pixels'], line['remapped_pixels']) == (3, 1)
    assert 'total_instances' not in line


def test_what_cannot_be_written_is_told_once_and_hurts_nobody(tmp_path: Path) -> None:
    (tmp_path / 'run').write_text('a file where the folder should be')
    log = TallyLog(str(tmp_path / 'run'))
    with pytest.warns(UserWarning, match='run/label_guard.jsonl cannot be written'):
        log.write(1, [Tally(4, 1)])
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        log.write(2, [Tally(4, 1)])


def test_wrong_arguments_are_told(tmp_path: Path) -> None:
    log = TallyLog(str(tmp_path))
    with pytest.raises(ValueError, match="kind must be one of 'pixels', 'instances', got 'boxes'"):
        log.write(1, [], kind='boxes')
    with pytest.raises(TypeError, match='iteration must be an int'):
        log.write('1', [])  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
