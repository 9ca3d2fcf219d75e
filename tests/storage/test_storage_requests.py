"""Requests: where they may go, how long they take, how many run at a time, and what a process takes along."""

from __future__ import annotations

import errno
import os
import pickle
import threading
import time
from typing import Any, List

import pytest
from mmguard.storage import urls
from mmguard.storage.files import FILES
from mmguard.storage.requests import AT_ONCE, SECONDS, SLOWEST, Transfer, ahead, ask

from mmguard.errors import CannotRun


class Answer(Exception):
    """Of a server of HTTP."""

    def __init__(self, status: int) -> None:
        super().__init__(f'{status}, https://user:word@host/a?signature=1')
        self.status = status


@pytest.mark.parametrize(
    ('error', 'number'),
    [
        (FileNotFoundError(errno.ENOENT, 'x'), errno.ENOENT),
        (FileNotFoundError('x'), errno.ENOENT),
        (PermissionError('x'), errno.EACCES),
        (OSError('Forbidden: https://host/a'), errno.EACCES),  # of gcsfs
        (Answer(404), errno.ENOENT),
        (Answer(403), errno.EACCES),
        (Answer(429), errno.EIO),
        (ConnectionResetError(errno.ECONNRESET, 'x'), errno.EIO),
        (TimeoutError(), errno.EIO),
        (ValueError('x'), errno.EIO),
    ],
)
def test_what_a_library_raises_is_an_error_of_a_disk_without_secrets(error: Exception, number: int) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(OSError) as raised:
        ask(fail, 'https://user:word@host/a?signature=1')
    assert raised.value.errno == number
    assert not [secret for secret in ('user', 'word', 'signature=1') if secret in str(raised.value)]


def test_a_request_ends_in_time_and_a_body_that_comes_has_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECONDS, '0.3')
    over = threading.Event()
    begun = time.monotonic()
    with pytest.raises(OSError) as raised:
        ask(over.wait, 's3://bucket/a')
    assert raised.value.errno == errno.EIO
    assert time.monotonic() - begun < 2
    transfer = Transfer()

    def slow() -> str:
        for _ in range(5):
            time.sleep(0.2)
            transfer.size += SLOWEST
        return 'done'

    assert ask(slow, 's3://bucket/a', transfer) == 'done'
    over.set()
    for text in ('soon', '0', '-1', 'inf', 'nan'):
        monkeypatch.setenv(SECONDS, text)
        with pytest.raises(CannotRun, match=SECONDS):
            ask(slow, 's3://bucket/a')


def test_requests_run_side_by_side_in_a_bounded_number_and_come_in_order() -> None:
    running: List[int] = []
    most: List[int] = []
    lock = threading.Lock()

    def ask(number: int) -> int:
        with lock:
            running.append(number)
            most.append(len(running))
        time.sleep(0.001)
        with lock:
            running.remove(number)
        return number

    started: List[int] = []
    calls = (started.append(number) or (lambda number=number: ask(number)) for number in range(200))
    results = ahead(calls)  # type: ignore[arg-type]
    assert [next(results) for _ in range(5)] == list(range(5))
    assert len(started) <= 5 + 2 * AT_ONCE  # a data set is not held in memory
    assert list(results) == list(range(5, 200))
    assert 1 < max(most) <= AT_ONCE


def test_what_reads_takes_along_what_the_user_named_and_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget() -> None:
        monkeypatch.setattr(urls, '_secrets', {})
        monkeypatch.setattr(urls, '_origins', set())

    forget()
    url = urls.enter('https://user:a-long-word@host/labels?signature=0123456789')
    taken = pickle.dumps(FILES)
    forget()  # as in another process
    assert urls.secrets_of(f'{url}/a.png') == ('', '')
    assert not urls.is_followed(f'{url}/a.png')
    pickle.loads(taken)
    assert urls.secrets_of(f'{url}/a.png') == ('user:a-long-word', 'signature=0123456789')
    assert urls.secrets_of('https://other/labels/a.png') == ('', '')
    assert urls.secrets_of('https://host/other') == ('user:a-long-word', '')
    assert urls.is_followed(f'{url}/a.png')
    assert 'a-long-word' not in repr(FILES)


@pytest.mark.parametrize(
    ('path', 'is_followed'),
    [
        ('https://host/labels/a.png', True),
        ('https://host/a.png', True),
        ('https://host:444/a.png', False),
        ('http://host/a.png', False),
        ('https://host.evil/a.png', False),
        ('https://host@evil/a.png', False),
        ('https://host\\\\@evil/a.png', False),
        ('https://host?.evil/a.png', False),
        ('https://host/labels/../a.png', False),
        ('https://host/labels/%2E./a.png', False),
        ('https://host/labels/..%2fa.png', False),
        ('https://host/labels/..', False),
        ('https://host/labels/...png', True),
        ('s3://bucket/a.png', True),
        ('s3://bucket2/a.png', False),
        ('s3a://bucket/a.png', False),
        ('zip:///data/x.zip!/a.png', True),
        ('zip:///data/x.zip!/b!/a.png', True),
        ('zip:///data/y.zip!/a.png', False),
        ('zip:///data/x.zip!/../a.png', False),
        ('file:///etc/passwd', False),
    ],
)
def test_requests_go_where_the_user_said_only(path: str, is_followed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urls, '_origins', set())
    for named in ('https://me:word@host/labels/?query', 's3://bucket/labels', 'zip://labels::/data/x.zip'):
        urls.enter(named)
    assert urls.is_followed(path) is is_followed
    monkeypatch.setattr(urls, '_origins', set())
    urls.enter_all({'data_root': 's3://bucket/x', 'data': [{'img': ('https://host', 3)}]})
    assert [urls.is_followed(one) for one in ('s3://bucket/y', 'https://host/y', 'zip:///data/x.zip!/y')] == [1, 1, 0]


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip('fsspec')
    import sys

    for package, url in (('gcsfs', 'gs://bucket/a'), ('adlfs', 'az://bucket/a')):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(CannotRun, match=f'pip install {package}'):
            FILES.exists(urls.enter(url))


@pytest.mark.parametrize('scheme', ['nothing', 'file', 'local', 'simplecache::file', 'tar', 'memory', 'github', 'data'])
def test_other_protocols_are_refused(scheme: str) -> None:
    with pytest.raises(CannotRun, match=scheme):
        FILES.exists(urls.enter(f'{scheme}:///etc/passwd'))


def test_files_of_a_disk_are_not_detoured(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'a').write_bytes(b'12')
    monkeypatch.setattr('mmguard.storage.files.systems', None)
    status = os.stat(tmp_path / 'a')
    assert FILES.stamp_of(str(tmp_path / 'a')) == (2, status.st_mtime_ns)
    assert [entry.name for entry in FILES.entries(str(tmp_path))] == ['a']
    assert FILES.look_at(str(tmp_path / 'b')) is None
    assert not FILES.exists(str(tmp_path / 'labels' / 'http://host/a.png'))
