"""A run that died with FlightRecorderHook: `report` ends with what its exception means, `explain` reads its folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mmguard.cli import main

TRACEBACK = """Traceback (most recent call last):
  File "/home/me/train.py", line 12, in main
    loss = F.cross_entropy(x, y)
IndexError: Target 255 is out of bounds.
"""


def flight(folder: Path, rank: int, error: str) -> None:
    record = dict(
        format=1,
        rank=rank,
        reason='exception',
        time='2026-01-01T12:00:00',
        iter=3,
        epoch=1,
        exception=dict(type=error, message='Target 255 is out of bounds.', traceback=TRACEBACK),
        batches=[],
    )
    name = 'label_guard_flight.jsonl' if rank == 0 else f'label_guard_flight.rank{rank}.jsonl'
    (folder / name).write_text(json.dumps(record))


@pytest.mark.parametrize('command', ['report', 'explain'])
def test_the_end_is_explained(command: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    flight(tmp_path, 1, 'IndexError')
    assert main([command, str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert 'MG413  The cross entropy met a target that is out of bounds.' in out
    assert 'rank 1' in out
    assert 'possible causes:' in out
    assert main([command, str(tmp_path), '--verbose']) == 1
    assert '\nCauses:\n' in capsys.readouterr().out


def test_the_page_and_the_json_of_a_report_explain_the_end(tmp_path: Path) -> None:
    pytest.importorskip('jinja2')
    flight(tmp_path, 0, 'IndexError')
    page, record = tmp_path / 'out.html', tmp_path / 'out.json'
    assert main(['report', str(tmp_path), '--html', str(page), '--json', str(record)]) == 1
    explanation = json.loads(record.read_text())['explanation']
    assert explanation['error']['code'] == 'MG413'
    text = page.read_text()
    assert 'MG413: The cross entropy met a target that is out of bounds.' in text
    assert len(explanation['causes']) == text.count('<li>') > 0
