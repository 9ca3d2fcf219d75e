"""Files as a config's file backend of mmengine reads them: petrel (ceph), http, lmdb, memcached, or one's own."""

from __future__ import annotations

import errno
import io
import os
import threading
from contextlib import nullcontext, suppress
from typing import Any, BinaryIO, ContextManager, Dict, List, Mapping, NamedTuple, Optional, Tuple

from mmguard.errors import CannotRun
from mmguard.text.failures import words_of
from mmguard.tools.storage.entries import Entry, Object, Stamp
from mmguard.tools.storage.files import FILES, Files
from mmguard.tools.storage.requests import Transfer, ask
from mmguard.tools.storage.systems import WEB
from mmguard.tools.storage.urls import check_followed, is_url

#: Of mmengine, which are read without it.
_OURS = ('local', 'disk', 'http')
#: Of mmengine, which several threads may ask at a time. Its MemcachedBackend has one buffer for all, and its
#: LmdbBackend opens the data base when it is asked first: two threads would open it twice, which lmdb refuses.
_SIDE_BY_SIDE = ('PetrelBackend',)
#: A backend does not say how large a file is: it has the time for one of this size.
_SIZE = 16 << 20


def files_of(arguments: Optional[Mapping[str, Any]], example: str) -> Files:
    """What reads the files of a part of a config.

    Args:
        arguments (dict, optional): Its ``backend_args`` (or ``file_client_args``, as they were called before).
        example (str): The path of one file: without arguments its prefix says which backend reads it.
    """
    backend = (arguments or {}).get('backend')
    if backend in _OURS or (not arguments and (not is_url(example) or example.startswith(WEB))):
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
        """Return a file of unknown size: backends know neither size nor version."""
        return Object(False, -1, None) if self.is_far(path) else super().look_at(path)

    def check(self, path: str) -> None:
        with suppress(FileNotFoundError):  # an address in a list of files
            if self.is_far(path):
                self._backend(path)

    def can_list(self, folder: str) -> bool:
        return not self.is_far(folder) or hasattr(self._backend(folder).asked, 'list_dir_or_file')

    def open(self, path: str) -> BinaryIO:
        if not self.is_far(path):
            return super().open(path)
        return io.BytesIO(self._whole(path, None, None))

    def _list(self, folder: str) -> List[Entry]:
        backend, turn = self._backend(folder)

        def listed() -> List[Entry]:
            with turn:
                files = [Entry(name, False) for name in backend.list_dir_or_file(folder, list_dir=False)]
                return sorted(files + [Entry(name, True) for name in backend.list_dir_or_file(folder, list_file=False)])

        return ask(listed, folder, Transfer(_SIZE))

    def _whole(self, path: str, stamp: Optional[Stamp], most: Optional[int]) -> bytes:
        backend, turn = self._backend(path)

        def got() -> bytes:
            with turn:
                content = backend.get(path)
                if content is None:  # lmdb's word, and petrel's, for a key that it does not have
                    raise FileNotFoundError(errno.ENOENT, 'the file backend has no such file')
                return bytes(content)

        return ask(got, path, Transfer(_SIZE))

    def _key(self, folder: str) -> str:
        return f'{self._said()} {folder}'

    def _said(self) -> str:
        return repr(sorted(self._arguments.items(), key=str))

    def _backend(self, path: str) -> _Backend:
        if is_url(path):
            check_followed(path)
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
