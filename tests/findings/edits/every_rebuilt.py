"""The reports of ``$CASES`` as they were rebuilt: the first edit of each config is written, scanned again and trained.

`make test-edits`, not the daily suite. What a scan may not say of them is judged by tools/answers.py.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest
import torch
from every_opinion import CASES, is_config, make_report
from every_training import followed_on, trained_on_files
from following import judged, scan
from targets import Target, write_edit
from trained import trained_on

from mmguard.config.read import read_config
from mmguard.formats.options import SPLITS
from mmguard.scanning.plans import CannotScan

REPORTS = {f'{path.parents[1].name}/{path.parent.name}': path for path in sorted(CASES.glob('set*/*/gen.py'))}


@contextmanager
def enter_folder(folder: Path) -> Iterator[None]:
    """Work in a folder, and import the modules of its report from there."""
    before = Path.cwd()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))


def follow_first_edit(target: Target) -> Tuple[str, List[str]]:
    """Return why no edit of a config is followed (empty: one is), and why the case is not closed by it."""
    if read_config(str(target.path)).is_old:
        return 'its config is of mmdet 2.x or mmseg 0.x, which are not here to train it', []
    try:
        found = scan(target)
    except CannotScan as error:  # a config without its data: `check` alone says something of it
        return f'its data cannot be opened: {error}', []
    faulty = [finding for finding in found.findings if finding.severity != 'info']
    edits = [(finding, edit) for finding in faulty for edit in finding.edits if edit.config or edit.files]
    if not edits:
        return 'a fault without an edit that a machine can write' if faulty else 'no fault is found', []
    root, (first, edit) = target.path.parent, edits[0]
    before = trained_on(target.path, target.options)
    after = write_edit(target, edit, root)
    followed = judged('', edit, root, first, after, found.codes, before)
    faults = [*followed.faults, *followed.harm]
    try:
        losses, labels = trained_on_files(followed_on(after) if followed.is_open else after, root)
        if not labels or not all(torch.isfinite(torch.tensor(value)) for value in losses.values()):
            faults.append(f'{labels} labels, {losses}')
    except Exception as error:  # whatever a training raises
        faults.append(f'{type(error).__name__}: {error}')
    return '', [f'{first.code}, {edit.title}: {fault}' for fault in faults]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize('name', REPORTS)
def test_the_first_edit_closes_a_rebuilt_report(name: str, tmp_path: Path) -> None:
    failed = make_report(REPORTS[name], tmp_path)
    if failed:
        pytest.skip(f'it cannot be made here: {failed}')
    with enter_folder(tmp_path):
        configs = [path.name for path in sorted(tmp_path.glob('*.py')) if is_config(path)]
    skipped, faults = ['it has no config of mmseg or mmdet'], {}
    for config in configs:
        folder = tmp_path / f'of_{config}'  # files of its own: an edit may rewrite them
        folder.mkdir()
        with enter_folder(folder):
            make_report(REPORTS[name], folder)
            reason, faults[config] = follow_first_edit(Target(folder / config, dict(splits=SPLITS)))
        skipped.append(reason)
    assert {config: found for config, found in faults.items() if found} == {}
    if all(skipped):
        pytest.skip(skipped[-1])
