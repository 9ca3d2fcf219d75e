"""Log of a label out of range."""

from __future__ import annotations

from pathlib import Path

import pytest
from explained_data import CALL
from explained_logs import format_traceback
from put_file import put


@pytest.fixture
def log(tmp_path: Path) -> str:
    return str(put(tmp_path / 'train.log', format_traceback('IndexError: Target 3 is out of bounds.', CALL)))
