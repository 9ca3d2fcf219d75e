"""A log of one's own loop is one that `mmguard report` reads."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, Tuple

import pytest
import torch
from warm import run as run_program

from mmguard import Tally
from mmguard.cli import main
from mmguard.detection import guard_batch
from mmguard.log.tally_log import TallyLog


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
    code, instances = report(tmp_path / 'run')
    assert code == 1
    worst = instances['modes']['train']['instances']['files'][0]
    assert (worst['skipped'], worst['values'].keys()) == (2, {'264'})


@pytest.mark.parametrize('kind', ['instances', 'pixels'])
def test_report_knows_that_the_loop_is_one_of_pytorch(tmp_path: Path, kind: str) -> None:
    with TallyLog(str(tmp_path), num_classes=264) as log:
        for iteration in range(1, 4):
            log.write(iteration, [Tally(9, 3, values={264: 3}, source='a.png', reasons={'label': 3})], kind)
    assert json.loads((tmp_path / 'label_guard.json').read_text())['runs'][0]['framework'] == 'pytorch'
    code, said = report(tmp_path)
    assert code == 1
    (finding,) = said['modes']['train'][kind]['findings']
    assert (finding['code'], finding['values'], finding['edits']) == ('MG102', {'264': 9}, [])


def test_pixels_ranks_and_modes(tmp_path: Path) -> None:
    log = TallyLog(str(tmp_path), rank=2)
    log.write(7, [Tally(16, 3, 1, {11: 4}, 'a.png'), Tally(16)], kind='pixels', mode='val')
    (line,) = map(json.loads, (tmp_path / 'label_guard.rank2.jsonl').read_text().splitlines())
    assert (line['mode'], line['iter'], line['total']) == ('val', 7, 32)
    assert (line['skipped_pixels'], line['remapped_pixels']) == (3, 1)
    assert 'total_instances' not in line


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


def report(folder: Path) -> Tuple[int, Any]:
    """The exit code and the fields of the report."""
    pytest.importorskip('rich')
    code = main(['report', str(folder), '--json', str(folder / 'report.out')])
    return code, json.loads((folder / 'report.out').read_text())


def test_a_clean_run_is_reported_to_be_clean(tmp_path: Path) -> None:
    with TallyLog(str(tmp_path), num_classes=264) as log:
        for iteration in (1, 2, 3):
            _, _, tallies = guard_batch(*batch([1, 2], [3], first=2 * iteration), 264, return_tally=True)
            log.write(iteration, tallies)
    assert not Path(log.path).exists()
    code, said = report(tmp_path)
    assert code == 0
    assert said['modes']['train']['instances']['total'] == 9
    assert said['modes']['train']['ended']


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
    code, said = report(tmp_path)
    pixels = said['modes']['train']['pixels']
    assert (code, pixels['skipped'], pixels['total']) == (1, 7, 200)


LOOP = """
import os, sys
from mmguard import Tally
from mmguard.log.tally_log import TallyLog
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
