"""Exit code of each command for each severity and threshold, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from label_files import write_copies
from this_stack import base_line
from warm import run

from mmguard.findings.finding import SEVERITIES

pytest.importorskip('mmseg')

CLI = 'import sys\nfrom mmguard.cli import main\nsys.exit(main(sys.argv[1:]))\n'
FCN = base_line('mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py')
HEADS = 'model = dict(decode_head=dict(num_classes={0}), auxiliary_head=dict(num_classes={0}))'
ADE = "dict(type='ADE20KDataset', metainfo=dict(classes=('sky', 'wall')))"
NONE = 'none'

#: Severity of the worst finding -> values of eight label maps, for three classes; what is left out.
MAPS = {
    'error': ((0, 1, 2, 3, 9), []),
    'warning': ((0,), []),
    'info': ((0, 1, 2), []),
    NONE: ((0, 1, 2), ['--ignore', 'MG100']),
}
#: The same -> lines of a config with 19 classes, and options.
CHECKED = {
    'error': (HEADS.format(12), []),
    'warning': ('val_evaluator = dict(ignore_index=19)', []),
    'info': (f'train_dataloader = dict(dataset={ADE})', ['--select', 'MG232']),
    NONE: ('', []),
}
#: `dry-run` has no warnings.
TRIED = {'error': "load_from = 'gone.pth'", 'info': "load_from = 'https://example.com/some.pth'", NONE: ''}


def expected(severity: str, fail_on: str) -> int:
    return int(severity in SEVERITIES[: SEVERITIES.index(fail_on) + 1])


def worst_of(found) -> str:
    return min((one['severity'] for one in found), key=SEVERITIES.index, default=NONE)


def run_json(folder: Path, *words: str):
    """Return the exit code of a command, and what it wrote as JSON."""
    report = folder / 'found.json'
    ended = run(CLI, *words, '--json', str(report), folder=str(folder))
    return ended.returncode, json.loads(report.read_text())


@pytest.mark.parametrize('fail_on', SEVERITIES)
@pytest.mark.parametrize('severity', MAPS)
def test_scan(tmp_path, severity, fail_on):
    values, options = MAPS[severity]
    write_copies(tmp_path / 'maps', np.repeat(np.array(values, np.uint8), 24)[None].repeat(24, 0))
    words = ['scan', 'maps', '--num-classes', '3', '--processes', '1', *options, '--fail-on', fail_on]
    code, found = run_json(tmp_path, *words)
    assert worst_of(found['datasets'][0]['findings']) == severity
    assert code == expected(severity, fail_on)


@pytest.mark.parametrize('fail_on', SEVERITIES)
@pytest.mark.parametrize('severity', CHECKED)
def test_check(tmp_path, severity, fail_on):
    lines, options = CHECKED[severity]
    (tmp_path / 'mine.py').write_text(f'{FCN}\n{lines}\n')
    code, found = run_json(tmp_path, 'check', 'mine.py', '--no-verify', *options, '--fail-on', fail_on)
    assert worst_of(found['findings']) == severity
    assert code == expected(severity, fail_on)


@pytest.mark.slow
@pytest.mark.parametrize('fail_on', SEVERITIES)
@pytest.mark.parametrize('severity', TRIED)
def test_dry_run(tmp_path, clean_cityscapes, severity, fail_on):
    data = f'train_dataloader = val_dataloader = dict(dataset=dict(data_root={clean_cityscapes!r}))'
    (tmp_path / 'mine.py').write_text(f'{FCN}\n{data}\n{TRIED[severity]}\n')
    code, found = run_json(tmp_path, 'dry-run', 'mine.py', '--only', 'build', '--fail-on', fail_on)
    outcomes = {'error': 'broken', 'info': 'note', NONE: 'ran'}
    assert outcomes[severity] in [one['outcome'] for one in found['properties'][0]['results']]
    assert code == expected(severity, fail_on)
