"""``mmguard report`` as it is called, on the log of a real training."""

from __future__ import annotations

import json
import os.path as osp
import shutil
from pathlib import Path
from typing import Any, Dict, List

import pytest
from small_runs import add_loop, expected_samples, tiny_config, train

from mmguard.cli import main

pytestmark = pytest.mark.slow  # trains a small model


@pytest.fixture(scope='module')
def run_dir(cityscapes: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log folder of a training that saw every image twice, and validated twice."""
    config = tiny_config(cityscapes, str(tmp_path_factory.mktemp('run')), iters=8)
    add_loop(config, 'val')
    config.train_cfg.val_interval = 4
    return train(config).log_dir


def test_the_numbers_are_those_of_the_label_files(cityscapes: str, run_dir: str, capsys: Any) -> None:
    assert main(['report', osp.dirname(run_dir), '--json', '-']) == 1
    report = json.loads(capsys.readouterr().out)
    for mode in ('train', 'val'):
        expected = [sample for sample in expected_samples(cityscapes, f'gtFine/{mode}') if sample['skipped']]
        files = [file for file in report['files'] if file['mode'] == mode]
        found = {file['source']: (file['skipped'], file['values']) for file in files}
        # Each was seen twice.
        assert found == {
            sample['source']: (2 * sample['skipped'], {value: 2 * count for value, count in sample['values'].items()})
            for sample in expected
        }
        assert report['modes'][mode]['pixels']['skipped'] == 2 * sum(sample['skipped'] for sample in expected)
        # Only the record next to the log has the number of classes.
        codes = [finding['code'] for finding in report['findings'] if finding['of'] == f'{mode}, pixels']
        assert codes[0] == 'MG101'


def test_the_terminal_shows_files_and_cause(run_dir: str, capsys: Any, snapshot: Any) -> None:
    assert main(['report', osp.join(run_dir, 'label_guard.jsonl')]) == 1
    snapshot('report', 'a training with invalid labels', capsys.readouterr().out)


LOG, RECORD = 'label_guard.jsonl', 'label_guard.json'


def write_unclosed(run_dir: str, target: Path) -> None:
    """Write a record that ends at iteration 7."""
    record = json.loads(Path(run_dir, RECORD).read_text())
    train = record['runs'][0]['modes']['train']
    train.update(ended=False, iter=7)
    train['totals'].update(iterations=7)
    target.write_text(json.dumps(record))


@pytest.mark.parametrize(
    ('copies', 'shown', 'hidden'),
    [
        ({LOG: LOG}, [' 1,106 of '], 'MG1'),
        ({LOG: LOG, RECORD: RECORD}, [' 1,106 of 65,536 ', '1.69 %', '5 of 8 ', '8 of 8 ', 'MG101'], ''),
        (
            {LOG: LOG, RECORD: RECORD, 'label_guard.rank1.jsonl': LOG, 'label_guard.rank1.json': RECORD},
            [' 2,212 of 131,072 ', '1.69 %', '16 of 16 ', ' 2 ranks'],
            '',
        ),
        ({LOG: LOG, RECORD: ''}, ['iteration 7', ' of 7 '], ''),
    ],
)
def test_what_is_left_of_a_run_is_added_up(
    run_dir: str, tmp_path: Path, capsys: Any, copies: Dict[str, str], shown: List[str], hidden: str
) -> None:
    for name, source in copies.items():
        if source:
            shutil.copy(osp.join(run_dir, source), tmp_path / name)
        else:
            write_unclosed(run_dir, tmp_path / name)
    assert main(['report', str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert [part for part in shown if part not in out] == []
    assert not hidden or hidden not in out


def test_a_clean_run_is_reported_with_what_was_seen(run_dir: str, tmp_path: Path, capsys: Any, snapshot: Any) -> None:
    record = json.loads(Path(run_dir, 'label_guard.json').read_text())
    modes = record['runs'][0]['modes']
    del modes['val']
    modes['train']['totals'].update(offending_iterations=0, offending_files=0, losses={})
    modes['train']['totals']['pixels'].update(skipped=0, values={})
    (tmp_path / 'label_guard.json').write_text(json.dumps(record))
    assert main(['report', str(tmp_path)]) == 0
    snapshot('report', 'a clean training', capsys.readouterr().out)


def test_a_run_without_a_log_is_not_called_clean(run_dir: str, tmp_path: Path) -> None:
    """As with out_file=None: the config beside says that a hook was there, and nothing of what it saw."""
    shutil.copytree(osp.join(run_dir, 'vis_data'), tmp_path / 'run' / 'vis_data')
    assert main(['report', str(tmp_path)]) == 2
