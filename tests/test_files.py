"""Files are whole, or the old ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mmguard.files import write_or_print, write_whole


def test_a_file_is_written_in_a_folder_that_it_makes_and_others_may_read_it(tmp_path: Path) -> None:
    target = tmp_path / 'new' / 'page.html'
    write_whole(target, b'old')
    write_whole(target, b'new')
    assert target.read_bytes() == b'new'
    mask = os.umask(0)
    os.umask(mask)
    assert oct(target.stat().st_mode & 0o777) == oct(0o666 & ~mask)


@pytest.mark.parametrize('error', [OSError('disk full'), KeyboardInterrupt()])
def test_one_that_cannot_be_written_leaves_the_old_one_and_nothing_beside(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / 'page.html'
    write_whole(target, b'old')

    def no_replace(*_: Any) -> None:
        raise error

    monkeypatch.setattr('os.replace', no_replace)
    with pytest.raises(type(error)):
        write_whole(target, b'new')
    assert target.read_bytes() == b'old'
    assert os.listdir(tmp_path) == ['page.html']


def test_a_dash_is_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_or_print(str(tmp_path / 'new' / 'told.json'), '{"é": 1}')
    assert (tmp_path / 'new' / 'told.json').read_bytes() == '{"é": 1}\n'.encode()
    write_or_print('-', '{}')
    assert capsys.readouterr().out == '{}\n'
