"""End of a training that died: all ranks together, on the terminal and as JSON."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, Dict

import pytest
from put_file import put
from small_runs import LOAD, PACK, Run, tiny_config

from mmguard.cli import main
from mmguard.commands.report import read_ends
from mmguard.log.flight_record import FlightRecord
from mmguard.log.run_log import name_for_rank

TRACEBACK = (
    'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
    '  File "/site/losses/ce.py", line 45, in cross_entropy\n    loss = F.cross_entropy(\nIndexError: Target 77\n'
)


def flight(folder: Path, rank: int = 0, reason: str = 'killed') -> Path:
    """Write the record that a rank leaves: two batches."""
    path = folder / name_for_rank('label_guard_flight.jsonl', rank)
    record = FlightRecord(str(path), 20, rank)
    record.write(iter=36, samples=[dict(path='/d/a.png')])
    record.write(iter=37, samples=[dict(path='/d/b.png')])
    error = dict(type='IndexError', message='Target 77 is out of bounds.\nsecond line', traceback=TRACEBACK)
    if reason != 'killed':
        record.write(reason=reason, **(dict(exception=error) if reason == 'exception' else {}))
    record.close()
    return path


def run_record(folder: Path, world_size: int) -> None:
    run = dict(mmguard='1', config=None, rank=0, world_size=world_size, modes={})
    (folder / 'label_guard.json').write_text(json.dumps(dict(format=1, runs=[run])))


def as_json(capsys: Any, *args: str) -> Dict[str, Any]:
    capsys.readouterr()
    main(['report', *args, '--json', '-'])
    return json.loads(capsys.readouterr().out)


def test_the_rank_that_raised_comes_first_and_silent_ones_are_named(tmp_path: Path, capsys: Any) -> None:
    flight(tmp_path)
    raised = flight(tmp_path, rank=1, reason='exception')
    run_record(tmp_path, world_size=4)
    config = str(put(tmp_path / 'vis_data' / 'config.py', ''))
    assert main(['report', str(tmp_path)]) == 1
    said = [shlex.split(line) for line in capsys.readouterr().out.splitlines() if line.startswith('mmguard ')]
    assert said == [['mmguard', 'explain', str(tmp_path)], ['mmguard', 'replay', config, str(raised)]]
    report = as_json(capsys, str(tmp_path))
    assert [(rank['rank'], rank['iteration']) for rank in report['ranks']] == [(1, 37), (0, 37)]
    (finding,) = report['findings']
    assert (finding['code'], finding['of'], 'Ranks 2, 3' in finding['evidence']) == ('MG303', 'ranks', True)


@pytest.mark.parametrize(
    'error',
    [
        'AbsentRankError: rank 1 ended by SIGKILL',
        'RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:4: Connection reset by peer',
        'DistBackendError: NCCL error: remote process exited or there was a network error',
    ],
)
@pytest.mark.parametrize(('reason', 'first'), [('killed', [1, 0, 2]), ('exception', [1, 2, 0])])
def test_a_rank_that_only_missed_another_comes_behind_it(tmp_path: Path, error: str, reason: str, first: Any) -> None:
    kind, _, message = error.partition(': ')
    record = FlightRecord(str(tmp_path / 'a.jsonl'), 20, rank=0)
    record.write(reason='exception', exception=dict(type=kind, message=message, traceback=''))
    record.close()
    flight(tmp_path, rank=1, reason=reason)
    if reason == 'killed':
        flight(tmp_path, rank=2, reason='killed, or still going on')
    else:
        flight(tmp_path, rank=2)
    ranks, _, _ = read_ends(sorted(tmp_path.iterdir()), 0)
    assert [rank.rank for rank in ranks] == first


def test_the_terminal_says_what_there_is_to_know(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, snapshot: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    flight(tmp_path, reason='exception')
    run_record(tmp_path, world_size=2)
    assert main(['report', '.']) == 1
    out = capsys.readouterr().out
    assert 'mmguard replay CONFIG label_guard_flight.jsonl' in out
    snapshot('report', 'a rank that raised and one without a record', out)


def test_losses_that_were_filled_are_a_finding_of_a_run_that_ended_well(
    tmp_path: Path, capsys: Any, snapshot: Any
) -> None:
    filled = [dict(rank=1, losses=['loss_mask'], samples=['a.jpg'])]
    lines = [dict(mode='train', iter=place, filled=filled) for place in (3, 5)]
    (tmp_path / 'label_guard.jsonl').write_text(''.join(f'{json.dumps(line)}\n' for line in lines))
    assert main(['report', str(tmp_path)]) == 0
    snapshot('report', 'losses that were filled', capsys.readouterr().out)
    (finding,) = as_json(capsys, str(tmp_path))['findings']
    assert (finding['code'], finding['files']) == ('MG306', ['a.jpg'])


def test_without_a_record_next_to_it_no_rank_is_missed(tmp_path: Path, capsys: Any) -> None:
    path = flight(tmp_path, rank=3, reason='killed, or still going on')
    assert as_json(capsys, str(path))['findings'] == []


@pytest.mark.parametrize(
    ('text', 'places'),
    [
        ('{"format": 2, "rank": 1, "capacity": 9}\n3\n', ['jsonl:2']),
        ('{"format": 99, "capacity": 9}\n', ['99']),
        ('{"format": 2, "rank": 1, "capacity": 9}\n{"samples": 3}\n', ['jsonl:2', 'samples: 3']),
        ('{"format": 2, "rank": 1, "capacity": 9}\n{"samples": [{}]}\n{"iter": -2}\n', ['jsonl:3', 'iter']),
        ('{"capacity": ', []),
        ('{"format": 2, "capacity": %s' % ('[' * 100_000), []),
    ],
)
def test_a_damaged_record_is_named_and_hides_no_other(tmp_path: Path, capsys: Any, text: str, places: Any) -> None:
    flight(tmp_path)
    (tmp_path / 'label_guard_flight.rank1.jsonl').write_text(text)
    report = as_json(capsys, str(tmp_path))
    assert 0 in [rank['rank'] for rank in report['ranks']]
    (problem,) = report['problems']
    assert all(place in problem for place in ('label_guard_flight.rank1.jsonl', *places))


def test_a_world_of_any_size_lists_no_ranks(tmp_path: Path, capsys: Any) -> None:
    flight(tmp_path)
    run_record(tmp_path, world_size=10**9)
    report = as_json(capsys, str(tmp_path))
    assert [finding['code'] for finding in report['findings']] == []


@pytest.mark.slow
def test_from_a_real_crash_to_the_sample(tmp_path: Path, cityscapes: str, capsys: Any) -> None:
    """A stock loss dies of a label; the report names the command, and the command names the file."""
    config = tiny_config(cityscapes, str(tmp_path), pipeline=[*LOAD, PACK])
    config.model.decode_head.loss_decode = dict(type='CrossEntropyLoss')
    config.custom_hooks = [dict(type='LabelGuardHook'), dict(type='FlightRecorderHook')]
    config.train_dataloader.dataset.indices = [1, 4, 0, 7]  # clean, clean; 24 and 33, clean
    with pytest.raises(IndexError):
        Run(config).train()
    capsys.readouterr()
    assert main(['report', str(tmp_path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert sum('iteration 2, ' in line and 'IndexError: Target 24 is out of bounds.' in line for line in said) == 1
    (command,) = (shlex.split(line) for line in said if line.startswith('mmguard replay '))
    assert main([*command[1:], '--json', '-']) == 1
    (failing,) = json.loads(capsys.readouterr().out)['failing']
    assert failing.endswith('aachen_000000_000019_gtFine_labelTrainIds.png')
