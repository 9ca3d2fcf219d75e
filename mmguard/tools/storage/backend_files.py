"""Files as a config's file backend of mmengine reads them: petrel (ceph), http, lmdb, memcached, or one's own."""

from __future__ import annotations

import errno
import io
import os
import threading
from contextlib import nullcontext
from functools import partial
from typing import Any, BinaryIO, ContextManager, Dict, List, Mapping, NamedTuple, Optional, Tuple
from urllib.request import Request, urlopen

from mmguard.errors import CannotRun
from mmguard.text.failures import words_of
from mmguard.tools.storage.files import FILES, WEB, Files
from mmguard.tools.storage.systems import Entry, Object, Stamp, size_of, stamp_of
from mmguard.tools.storage.tried import tried
from mmguard.tools.storage.urls import is_url, with_secrets

_LOCAL = ('local', 'disk')
#: Of mmengine, which several threads may ask at a time. Its MemcachedBackend has one buffer for all.
_SIDE_BY_SIDE = ('LocalBackend', 'PetrelBackend', 'HTTPBackend', 'LmdbBackend')
_SECONDS = 60


def files_of(arguments: Optional[Mapping[str, Any]], example: str) -> Files:
    """What reads the files of a part of a config.

    Args:
        arguments (dict, optional): Its ``backend_args`` (or ``file_client_args``, as they were called before).
        example (str): The path of one file: without arguments its prefix says which backend reads it.
    """
    backend = (arguments or {}).get('backend')
    if backend in _LOCAL or (not arguments and not is_url(example)):
        return FILES
    return BackendFiles({} if arguments is None else dict(arguments))


class _Backend(NamedTuple):
    """A backend of mmengine, and what keeps threads apart that ask it."""

    asked: Any
    turn: ContextManager


class BackendFiles(Files):
    """Reads every file through a backend of mmengine.

    Args:
        arguments (dict): ``backend_args``; empty: the prefix of a path says it.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = dict(arguments)

    def is_far(self, path: str) -> bool:
        return bool(self._arguments) or is_url(path)

    def look_at(self, path: str) -> Optional[Object]:
        """Backends know neither size nor version; servers of HTTP are asked."""
        if not self.is_far(path):
            return super().look_at(path)
        if not path.startswith(WEB):
            return Object(False, -1, None)
        return tried(partial(_head, with_secrets(path)), path)

    def check(self, path: str) -> None:
        if self.is_far(path):
            self._backend(path)

    def can_list(self, folder: str) -> bool:
        return not self.is_far(folder) or hasattr(self._backend(folder).asked, 'list_dir_or_file')

    def open(self, path: str) -> BinaryIO:
        if not self.is_far(path):
            return super().open(path)
        return io.BytesIO(tried(partial(self._whole, path, None, None), path))

    def _list(self, folder: str) -> List[Entry]:
        (backend, turn), place = self._backend(folder), with_secrets(folder)
        with turn:
            files = [Entry(name, False) for name in backend.list_dir_or_file(place, list_dir=False)]
            return sorted(files + [Entry(name, True) for name in backend.list_dir_or_file(place, list_file=False)])

    def _whole(self, path: str, stamp: Optional[Stamp], most: Optional[int]) -> bytes:
        backend, turn = self._backend(path)
        with turn:
            content = backend.get(with_secrets(path))
            if content is None:  # lmdb's word, and petrel's, for a key that it does not have
                raise FileNotFoundError(errno.ENOENT, 'the file backend has no such file')
            data = bytes(content)
        if stamp is not None and 0 <= stamp[0] != len(data):
            raise OSError(errno.EIO, f'{len(data):,} of {stamp[0]:,} bytes came')
        return data

    def _key(self, folder: str) -> str:
        return f'{self._said()} {folder}'

    def _said(self) -> str:
        return repr(sorted(self._arguments.items(), key=str))

    def _backend(self, path: str) -> _Backend:
        prefix = path.partition('://')[0] if is_url(path) and not self._arguments else ''
        key = (self._said(), prefix, os.getpid())
        if key not in _backends:
            from mmengine.fileio import get_file_backend

            try:
                # Shared with the loader of the config: lmdb opens a data base once per process.
                backend = get_file_backend(path, backend_args=self._arguments or None, enable_singleton=True)
            except ImportError as error:
                raise CannotRun(f'the file backend of the config needs a package: {error}') from error
            except Exception as error:  # arguments of a config may be anything
                raise CannotRun(f'the file backend of the config cannot be used: {words_of(error)}') from error
            known = type(backend).__module__.startswith('mmengine.') and type(backend).__name__ in _SIDE_BY_SIDE
            _backends.setdefault(key, _Backend(backend, nullcontext() if known else threading.Lock()))
        return _backends[key]


#: Of this process: connections and open data bases do not survive a fork.
_backends: Dict[Tuple[str, str, int], _Backend] = {}


def _head(url: str) -> Object:
    with urlopen(Request(url, method='HEAD'), timeout=_SECONDS) as answer:
        headers = answer.headers
    return Object(False, size_of(headers), stamp_of(headers))
