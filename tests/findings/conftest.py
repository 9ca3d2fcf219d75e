"""The situations serve the tests of all folders here."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

#: Programs that write reports.
collect_ignore = ['reports/rebuilt']
sys.path[:0] = [str(Path(__file__).parent / name) for name in ('situations', 'reports')]


@pytest.fixture(scope='session', autouse=True)
def answers_of_all_processes(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A folder beside those of the test processes, where there are several."""
    if 'PYTEST_XDIST_WORKER' in os.environ:
        from once_a_run import Shared

        Shared.folder = tmp_path_factory.getbasetemp().parent / 'answers'
        Shared.folder.mkdir(exist_ok=True)
