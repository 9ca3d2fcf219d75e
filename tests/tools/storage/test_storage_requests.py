"""What is asked for again and what is not, how many requests run at a time, and what a process takes along."""

from __future__ import annotations

import errno
import os
import pickle
import threading
import time
from typing import Any, List

import pytest
from slow_proxy import SlowProxy

from mmguard.errors import CannotRun
from mmguard.tools.storage import systems, tried, urls
from mmguard.tools.storage.ahead import AT_ONCE, ahead
from mmguard.tools.storage.files import FILES


class Answer(Exception):
    """Of a server of HTTP."""

    def __init__(self, status: int) -> None:
        super().__init__(f'{status}, https://user:word@host/a?signature=1')
        self.status = status


def _no_cause(status: int) -> FileNotFoundError:
    """What fsspec makes of whatever a server answers."""
    error = FileNotFoundError('https://host/a')
    error.__cause__ = Answer(status)
    return error


@pytest.mark.parametrize(
    ('error', 'number', 'times'),
    [
        (FileNotFoundError(errno.ENOENT, 'x'), errno.ENOENT, 1),
        (_no_cause(404), errno.ENOENT, 1),
        (_no_cause(503), errno.EIO, tried.TRIES),
        (PermissionError('x'), errno.EACCES, 1),
        (OSError('Forbidden: https://host/a'), errno.EACCES, 1),  # of gcsfs
        (Answer(403), errno.EACCES, 1),
        (Answer(429), errno.EIO, tried.TRIES),
        (ConnectionResetError(errno.ECONNRESET, 'x'), errno.EIO, tried.TRIES),
        (TimeoutError(), errno.EIO, tried.TRIES),
        (ValueError('x'), errno.EIO, tried.TRIES),
    ],
)
def test_only_what_may_pass_is_asked_for_again(
    error: Exception, number: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: List[float] = []
    asked: List[int] = []
    monkeypatch.setattr(time, 'sleep', waits.append)

    def ask() -> None:
        asked.append(1)
        raise error

    with pytest.raises(OSError) as raised:
        tried.tried(ask, 's3://bucket/a')
    assert raised.value.errno == number
    assert (len(asked), len(waits)) == (times, times - 1)
    assert all(later > earlier / 2 for earlier, later in zip(waits, waits[1:]))
    assert not [secret for secret in ('user', 'word', 'signature') if secret in str(raised.value)]


def test_a_storage_that_is_down_is_not_waited_for_file_by_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, 'sleep', lambda seconds: None)
    monkeypatch.setattr(tried, '_given_up', 49)
    asked: List[int] = []

    def ask() -> int:
        asked.append(1)
        if len(asked) <= tried.TRIES + 1:
            raise TimeoutError
        return 7

    for times in (tried.TRIES, tried.TRIES + 1):
        with pytest.raises(OSError, match='failed'):
            tried.tried(ask, 'a')
        assert len(asked) == times
    assert tried.tried(ask, 'a') == 7
    assert tried._given_up == 0  # it is up again


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


def test_what_reads_takes_secrets_along_and_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urls, '_secrets', {})
    url = urls.entered('https://user:a-long-word@host/labels?signature=0123456789')
    taken = pickle.dumps(FILES)
    monkeypatch.setattr(urls, '_secrets', {})  # as in another process
    assert urls.with_secrets(f'{url}/a.png') == 'https://host/labels/a.png'
    pickle.loads(taken)
    assert urls.with_secrets(f'{url}/a.png') == 'https://user:a-long-word@host/labels/a.png?signature=0123456789'
    assert repr(FILES) == repr(FILES).replace('a-long-word', '')


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip('fsspec')
    import sys

    for package, url in (('gcsfs', 'gs://bucket/a'), ('adlfs', 'az://bucket/a')):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(CannotRun, match=f'pip install {package}'):
            FILES.exists(url)
    with pytest.raises(CannotRun, match='no protocol'):
        FILES.exists('nothing://bucket/a')


@pytest.mark.parametrize(('package', 'url'), [('s3fs', 's3'), ('gcsfs', 'gs'), ('adlfs', 'az')])
def test_libraries_do_not_ask_again_by_themselves(package: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(package)
    import fsspec

    proxy = SlowProxy(0)
    proxy.busy = 1.0
    host = f'http://127.0.0.1:{proxy.port}'
    account = f'DefaultEndpointsProtocol=http;AccountName=me;AccountKey=bm8ga2V5;BlobEndpoint={host}/me;'
    said = {
        'AWS_ENDPOINT_URL': host, 'AWS_ACCESS_KEY_ID': 'a', 'AWS_SECRET_ACCESS_KEY': 'b', 'AWS_DEFAULT_REGION': 'here',
        'STORAGE_EMULATOR_HOST': host, 'AZURE_STORAGE_CONNECTION_STRING': account,
    }  # fmt: skip
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    known = fsspec.get_filesystem_class(url)
    known.clear_instance_cache()  # of another server
    with pytest.raises(Exception, match=r'503|Slow Down|Service Unavailable'):
        systems.read_bytes(f'{url}://asked-once/a.png')
    known.clear_instance_cache()
    proxy.close()
    assert len(proxy.asked) == 1, proxy.asked


def test_files_of_a_disk_are_not_detoured(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'a').write_bytes(b'12')
    monkeypatch.setattr('mmguard.tools.storage.files.tried', None)
    status = os.stat(tmp_path / 'a')
    assert FILES.stamp_of(str(tmp_path / 'a')) == (2, status.st_mtime_ns)
    assert [entry.name for entry in FILES.entries(str(tmp_path))] == ['a']
    assert FILES.look_at(str(tmp_path / 'b')) is None
