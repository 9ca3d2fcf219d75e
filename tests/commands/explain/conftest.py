"""Log of a label out of range."""

from __future__ import annotations

from pathlib import Path

import pytest
from explained_data import CALL
from explained_logs import format_traceback


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / 'train.log'
    path.write_text(format_traceback('IndexError: Target 3 is out of bounds.', CALL))
    return str(path)
