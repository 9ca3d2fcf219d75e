"""Tests of mmguard/files/regular.py: how files are opened; test_whole.py has how they are written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mmguard.files.regular import open_regular


@pytest.mark.skipif(os.name == 'nt', reason='no fcntl')
def test_it_is_opened_for_reading_only(tmp_path: Path) -> None:
    import fcntl

    path, link = tmp_path / 'labels.txt', tmp_path / 'link.txt'
    path.write_bytes(b'0 0.5 0.5 0.1 0.1')
    link.symlink_to(path)
    with open_regular(link) as file:
        assert fcntl.fcntl(file, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR) == 0
        assert file.read() == path.read_bytes()
