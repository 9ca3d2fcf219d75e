"""What is collected where: a package that is not installed takes its own tests and doctests along, and no others.

A file that imports a package of another stack is skipped; one that needs a package only later names it in a call of
``pytest.importorskip``. What no stack runs fails. ``--select stack`` leaves out what is the same in every stack.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any, Generator, List, Optional

import pytest
from needs import find_stacks, is_left_out

# No conftest has doctests, and pytest takes two of one name for the same module.
# The kernel needs triton and torch 2.4, and has no doctests.
collect_ignore_glob = ['tests/*conftest.py', 'mmguard/functional/label_kernel.py']


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        '--select',
        choices=('all', 'stack', 'framework'),
        default='all',
        help='stack: what differs between the stacks; framework: of these, what needs more than torch',
    )
    parser.addoption('--update-snapshots', action='store_true', help='rewrite tests/snapshots; read the difference')


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> Optional[bool]:
    is_test = collection_path.suffix == '.py' and collection_path.name != 'conftest.py'
    return True if is_test and is_left_out(collection_path, config.getoption('--select')) else None


def pytest_collection_modifyitems(config: pytest.Config, items: List[pytest.Item]) -> None:
    if config.getoption('--select') != 'all':
        out = [item for item in items if item.get_closest_marker('same_everywhere')]
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    report = yield
    judge(report, collector.path)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    if report.skipped:
        judge(report, item.path, same_everywhere=item.get_closest_marker('same_everywhere') is not None)
    return report


def judge(report: Any, path: Path, same_everywhere: bool = False) -> None:
    """Skip a file that imports a package of another stack; fail what is skipped for a package and runs in no stack."""
    imported = r"^E +ModuleNotFoundError: (?:No module named|import of) '?(\w+)"
    missing = re.search(rf"{imported}|could not import '(\w+)", report.longreprtext, re.MULTILINE)
    name = missing and (missing[1] or missing[2])
    if name and importlib.util.find_spec(name) is None:
        if not find_stacks(path, name, same_everywhere=same_everywhere):
            report.outcome, report.longrepr = 'failed', f'{path}: no stack of .ci/run has {name} and runs this'
        elif report.failed:
            report.outcome, report.longrepr = 'skipped', (str(path), 0, f'Skipped: could not import {name!r}')
