"""Files are opened for reading only, and written whole or not at all."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, List

import pytest

from mmguard.files.regular import hold_folder, is_draft, list_project, open_regular, temporary_folder, write_whole


@pytest.mark.skipif(os.name == 'nt', reason='no fcntl')
def test_it_is_opened_for_reading_only(tmp_path: Path) -> None:
    import fcntl

    path, link = tmp_path / 'labels.txt', tmp_path / 'link.txt'
    path.write_bytes(b'0 0.5 0.5 0.1 0.1')
    link.symlink_to(path)
    with open_regular(link) as file:
        assert fcntl.fcntl(file, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR) == 0
        assert file.read() == path.read_bytes()


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

    def no_replace(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr('os.replace', no_replace)
    with pytest.raises(type(error)):
        write_whole(target, b'new')
    assert target.read_bytes() == b'old'
    assert os.listdir(tmp_path) == ['page.html']


def test_an_error_of_a_full_disk_names_the_file(tmp_path: Path) -> None:
    resource = pytest.importorskip('resource')
    code = 'import sys, pathlib; from mmguard.files.regular import write_whole; '
    code += 'write_whole(pathlib.Path(sys.argv[1]), bytes(4000))'
    (tmp_path / 'a.png').write_bytes(b'old')
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (300, 300))
    command = [sys.executable, '-c', code, str(tmp_path / 'a.png')]
    ended = subprocess.run(command, preexec_fn=limit, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.stderr.splitlines()[-1].startswith('OSError: ')
    assert repr(str(tmp_path / 'a.png')) in ended.stderr.splitlines()[-1]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {'a.png': b'old'}


@pytest.mark.parametrize('kind', ['link', 'dangling link', 'folder', 'pipe', 'socket'])
def test_what_is_not_a_regular_file_is_never_replaced(kind: str, tmp_path: Path) -> None:
    path = tmp_path / 'page.html'
    (tmp_path / 'original').write_bytes(b'original')
    if kind.endswith('link'):
        path.symlink_to('nothing' if 'dangling' in kind else 'original')
    elif kind == 'folder':
        path.mkdir()
    elif kind == 'pipe':
        os.mkfifo(path)
    else:
        socket.socket(socket.AF_UNIX).bind(str(path))
    before = os.lstat(path)
    with pytest.raises(OSError, match=path.name):
        write_whole(path, b'new')
    assert os.path.samestat(before, os.lstat(path))
    assert (tmp_path / 'original').read_bytes() == b'original'
    assert sorted(os.listdir(tmp_path)) == ['original', 'page.html']


@pytest.mark.parametrize('kind', ['hard link', 'link', 'pipe'])
@pytest.mark.timeout(20)
def test_what_lies_where_a_draft_would_be_is_left_alone(kind: str, tmp_path: Path) -> None:
    draft, original = tmp_path / '.page.html.part', tmp_path / 'original'
    original.write_bytes(b'original')
    if kind == 'hard link':
        os.link(original, draft)
    elif kind == 'link':
        draft.symlink_to('original')
    else:
        os.mkfifo(draft)
    write_whole(tmp_path / 'page.html', b'new')
    assert (original.read_bytes(), (tmp_path / 'page.html').read_bytes()) == (b'original', b'new')


def _held(folder: Path) -> bool:
    try:
        with hold_folder(folder):
            return False
    except BlockingIOError:
        return True


@pytest.mark.parametrize('locks', [True, False])
def test_a_folder_is_held_by_one_process_at_a_time(
    locks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not locks:  # a file system without them
        monkeypatch.setattr('mmguard.files.regular._try_lock', lambda descriptor: None)
    with hold_folder(tmp_path):
        assert _held(tmp_path)
    assert os.listdir(tmp_path) == []
    words = (
        'import os, pathlib, sys, mmguard.files.regular as f\nif sys.argv[2]: f._try_lock = lambda descriptor: None\n'
    )
    words += 'with f.hold_folder(pathlib.Path(sys.argv[1])): os.kill(os.getpid(), 9)'
    killed = subprocess.run([sys.executable, '-c', words, str(tmp_path), '' if locks else 'no'], check=False)
    assert (killed.returncode, len(os.listdir(tmp_path))) == (-signal.SIGKILL, 1)
    assert is_draft(os.listdir(tmp_path)[0])
    assert not _held(tmp_path)
    assert os.listdir(tmp_path) == []


def test_what_a_killed_process_left_is_taken_over_and_what_another_one_writes_is_not(tmp_path: Path) -> None:
    target = tmp_path / 'page.html'
    killed = (
        'import os, sys, pathlib, mmguard.files.regular as f\n'
        'os.replace = lambda *_: os.kill(os.getpid(), 9)\nf.write_whole(pathlib.Path(sys.argv[1]), b"half")'
    )
    assert subprocess.run([sys.executable, '-c', killed, str(target)], check=False).returncode == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    assert is_draft(left)
    with pytest.MonkeyPatch.context() as patch:

        def write_meanwhile(*paths: Path) -> None:
            patch.undo()
            write_whole(target, b'at the same time')
            os.replace(*paths)

        patch.setattr('os.replace', write_meanwhile)
        write_whole(target, b'whole')
    assert target.read_bytes() == b'whole'
    assert os.listdir(tmp_path) == ['page.html']


def test_temporary_folders_of_killed_processes_go_and_those_in_use_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('TMPDIR', str(tmp_path))
    monkeypatch.setattr('tempfile.tempdir', None)
    words = 'import os, mmguard.files.regular as f\nwith f.temporary_folder() as folder:\n  os.mkdir(f"{folder}/a")\n  '
    assert subprocess.run([sys.executable, '-c', words + 'os.kill(os.getpid(), 9)'], check=False).returncode == -9
    assert len(os.listdir(tmp_path)) == 1
    with temporary_folder() as one, temporary_folder() as other:
        assert sorted(os.listdir(tmp_path)) == sorted(map(os.path.basename, (one, other)))
    assert os.listdir(tmp_path) == []


@pytest.mark.timeout(30)
@pytest.mark.parametrize('kind', ['fifo', 'link', 'file'])
def test_what_is_named_like_a_temporary_folder_is_left_alone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('TMPDIR', str(tmp_path))
    monkeypatch.setattr('tempfile.tempdir', None)
    (tmp_path / 'victim').mkdir()
    (tmp_path / 'victim' / 'a').touch()
    left = tmp_path / 'mmguard-files-x'
    {'fifo': lambda: os.mkfifo(left), 'link': lambda: left.symlink_to('victim'), 'file': left.touch}[kind]()
    with temporary_folder() as folder:
        assert os.path.isdir(folder)
    assert os.path.lexists(left)
    assert (tmp_path / 'victim' / 'a').exists()


@pytest.mark.skipif(os.name == 'nt', reason='Windows has no such permissions')
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / 'a').touch()
    (tmp_path / 'a').chmod(0o640)
    write_whole(tmp_path / 'a', b'new')
    assert (tmp_path / 'a').stat().st_mode & 0o777 == 0o640
    write_whole(tmp_path / 'a', b'new', mode=0o100600)
    assert (tmp_path / 'a').stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ('files', 'found'),
    [
        ([], ['a/b/c']),
        (['a/.git'], ['a/b/c', 'a/b', 'a']),
        (['a/.git', 'a/b/setup.py'], ['a/b/c', 'a/b', 'a']),
        (['a/b/setup.py', 'a/setup.py'], ['a/b/c', 'a/b']),
    ],
)
def test_a_project_ends_at_the_root_of_its_repository(files: List[str], found: List[str], tmp_path: Path) -> None:
    (tmp_path / 'a/b/c').mkdir(parents=True)
    for name in files:
        (tmp_path / name).touch()
    assert list_project(str(tmp_path / 'a/b/c')) == [str(tmp_path / name) for name in found]
