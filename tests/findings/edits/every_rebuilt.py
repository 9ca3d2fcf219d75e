"""The reports of ``$CASES`` as they were rebuilt: the first edit of each config is written, scanned again and trained.

`make test-edits`, not the daily suite.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import pytest
import torch
from every_opinion import CASES, is_config, make_report
from every_training import followed_on, trained_on_files
from following import judged, scan
from once_a_run import once_a_run
from targets import Target, write_edit
from trained import trained_on
from truth import judge_report, read_truth

from mmguard.config.read import read_config
from mmguard.findings.wording import unpack
from mmguard.tools.scan.options import SPLITS
from mmguard.tools.scan.plans.plan import CannotScan

REPORTS = {f'{path.parents[1].name}/{path.parent.name}': path for path in sorted(CASES.glob('set*/*/gen.py'))}


#: Why nothing of a report is followed, the first that fits.
WITHOUT_EDIT = 'a fault without an edit that a machine can write'
CLEAN = 'no fault of labels or config is found'
NO_DATA = 'its data cannot be opened'
NO_CONFIG = 'it has no config of mmseg or mmdet'
OLD = 'its config is of mmdet 2.x or mmseg 0.x, which are not here to train it'
NOT_MADE = 'it cannot be made here'
SKIPPED = (WITHOUT_EDIT, CLEAN, NO_DATA, NO_CONFIG, OLD, NOT_MADE)


class Outcome(NamedTuple):
    """What became of one config.

    Attributes:
        said (str): Codes and text of what was followed, or why nothing was.
        skipped (str): One of ``SKIPPED``; empty: an edit was followed.
        is_first (bool): Whether it is one of the first finding.
        faults (tuple[str]): Why the case is not closed.
        stopped (str): What one iteration of training with it raised, or made that is no loss.
        harm (tuple[str]): What truth.json forbids, of all that the scan says.
    """

    said: str = ''
    skipped: str = ''
    is_first: bool = False
    faults: Tuple[str, ...] = ()
    stopped: str = ''
    harm: Tuple[str, ...] = ()


@once_a_run
def outcomes_of(name: str) -> Dict[str, Outcome]:
    """Config -> what became of it."""
    with TemporaryDirectory() as folder, _inside(Path(folder)):
        failed = make_report(REPORTS[name], Path(folder))
        if failed:
            return {'': Outcome(failed, NOT_MADE)}
        configs = [path for path in sorted(Path(folder).glob('*.py')) if is_config(path)]
    if not configs:
        return {'': Outcome('', NO_CONFIG)}
    found = {}
    for config in configs:
        # Each has files of its own: an edit may rewrite them.
        with TemporaryDirectory() as folder, _inside(Path(folder)):
            make_report(REPORTS[name], Path(folder))
            found[config.name] = outcome_of(Target(Path(folder, config.name), dict(splits=SPLITS)), read_truth()[name])
    return found


def outcome_of(target: Target, truth: Dict[str, Any]) -> Outcome:
    if read_config(str(target.path)).is_old:
        return Outcome('', OLD)
    root = target.path.parent
    try:
        found = scan(target)
    except CannotScan as error:  # a config without its data: `check` alone says something of it
        return Outcome(str(error), NO_DATA)
    faulty = [finding for finding in found.findings if finding.severity != 'info']
    said = dict(findings=[unpack(finding) for finding in found.findings])
    harm = judge_report(truth, [dict(args=['scan'], exit=1, json=said)]).harm
    if not faulty:
        return Outcome('', CLEAN, harm=harm)
    first = next((one for one in faulty if any(edit.config or edit.files for edit in one.edits)), None)
    if first is None:
        return Outcome(f'{faulty[0].code}: {faulty[0].advice}', WITHOUT_EDIT, harm=harm)
    edit = next(edit for edit in first.edits if edit.config or edit.files)
    before = trained_on(target.path, target.options)
    after = write_edit(target, edit, root)
    followed = judged('', edit, root, first, after, found.codes, before)
    stopped = ''
    try:
        losses, labels = trained_on_files(followed_on(after) if followed.is_open else after, root)
        if not labels or not all(torch.isfinite(torch.tensor(value)) for value in losses.values()):
            stopped = f'{labels} labels, {losses}'
    except Exception as error:  # whatever a training raises
        stopped = f'{type(error).__name__}: {error}'
    words = f'{first.code} of {", ".join(one.code for one in faulty)}: {edit.text}; remains {followed.remains}'
    return Outcome(words, '', first is faulty[0], (*followed.faults, *followed.harm), stopped, harm)


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Works in a folder, which the report's own modules are imported from: once, as they register what they hold."""
    before = Path.cwd()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))


def skipped(name: str) -> Tuple[str, str]:
    """Why nothing of a report is followed, and the words to it; empty where something is."""
    found = outcomes_of(name).values()
    if any(not one.skipped for one in found):
        return '', ''
    return min(((one.skipped, one.said) for one in found), key=lambda pair: SKIPPED.index(pair[0]))


@pytest.fixture(scope='module')
def tally(pytestconfig: pytest.Config) -> Iterator[List[str]]:
    """Names of the reports that were tried; a summary is printed at the end."""
    names: List[str] = []
    yield names
    found = [one for name in names for one in outcomes_of(name).values()]
    followed = [one for one in found if not one.skipped]
    why = Counter(skipped(name)[0] or 'an edit is followed' for name in names)
    pytestconfig.pluginmanager.get_plugin('terminalreporter').write_line(
        f'\nrebuilt reports: {len(names)}; {len(followed)} configs have an edit '
        f'({sum(one.is_first for one in followed)} of their first finding), '
        f'{sum(not one.faults for one in followed)} of them close the case, '
        f'{sum(not one.stopped for one in followed)} train, {sum(bool(one.harm) for one in found)} do harm. Reports: '
        + ', '.join(f'{number} {reason}' for reason, number in why.most_common())
    )


@pytest.mark.timeout(1800)
@pytest.mark.parametrize('name', REPORTS)
def test_the_first_edit_closes_a_rebuilt_report(name: str, tally: List[str]) -> None:
    tally.append(name)
    if skipped(name)[0]:
        pytest.skip(': '.join(filter(None, skipped(name))))
    followed = {config: one for config, one in outcomes_of(name).items() if not one.skipped}
    assert {config: (one.said, one.faults) for config, one in followed.items() if one.faults} == {}
    assert {config: (one.said, one.stopped) for config, one in followed.items() if one.stopped} == {}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize('name', REPORTS)
def test_a_scan_says_nothing_that_truth_forbids(name: str) -> None:
    assert {config: one.harm for config, one in outcomes_of(name).items() if one.harm} == {}
