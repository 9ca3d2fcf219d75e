"""Files are whole, or the old ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mmguard.errors import CannotRun
from mmguard.files.whole import is_draft, temporary_folder, write_or_print, write_whole


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
    write_or_print(str(tmp_path / 'new' / 'reported.json'), '{"é": 1}')
    assert (tmp_path / 'new' / 'reported.json').read_bytes() == '{"é": 1}\n'.encode()
    write_or_print('-', '{}')
    assert capsys.readouterr().out == '{}\n'


@pytest.mark.parametrize('folder', ['.', '..', '/'])
def test_a_folder_is_no_place_for_a_file(folder: str) -> None:
    with pytest.raises(CannotRun, match='cannot be written: '):
        write_or_print(folder, 'text')


def test_what_a_killed_process_left_is_taken_over_and_what_another_one_writes_is_not(tmp_path: Path) -> None:
    target = tmp_path / 'page.html'
    killed = 'import os, sys, pathlib, mmguard.files.whole as f\n' + (
        'f.write_whole(pathlib.Path(sys.argv[1]), b"half", lambda draft: os.kill(os.getpid(), 9))'
    )
    assert subprocess.run([sys.executable, '-c', killed, str(target)], check=False).returncode == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    assert is_draft(left)
    write_whole(target, b'whole', lambda draft: write_whole(target, b'at the same time'))
    assert target.read_bytes() == b'whole'
    assert os.listdir(tmp_path) == ['page.html']


def test_one_that_does_not_pass_the_check_gets_no_name(tmp_path: Path) -> None:
    def refuse(draft: Path) -> None:
        assert draft.read_bytes() == b'new'
        raise ValueError

    with pytest.raises(ValueError):
        write_whole(tmp_path / 'page.html', b'new', refuse)
    assert os.listdir(tmp_path) == []


def test_temporary_folders_of_killed_processes_go_and_those_in_use_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('TMPDIR', str(tmp_path))
    monkeypatch.setattr('tempfile.tempdir', None)
    words = 'import os, mmguard.files.whole as f\nwith f.temporary_folder() as folder:\n  os.mkdir(f"{folder}/a")\n  '
    assert subprocess.run([sys.executable, '-c', words + 'os.kill(os.getpid(), 9)'], check=False).returncode == -9
    assert len(os.listdir(tmp_path)) == 1
    with temporary_folder() as one, temporary_folder() as other:
        assert sorted(os.listdir(tmp_path)) == sorted(map(os.path.basename, (one, other)))
    assert os.listdir(tmp_path) == []
