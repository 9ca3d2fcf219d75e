"""The file systems of fsspec that URLs name."""

from __future__ import annotations

import hashlib
import logging
import os
from functools import lru_cache, partial
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from mmguard.errors import CannotRun
from mmguard.tools.storage.urls import in_archive, masked, with_secrets

Stamp = Tuple[int, int]
#: Connections of a process to one place: more than there are threads.
CONNECTIONS = 32
_AMAZON = ('s3', 's3a')
_GOOGLE = ('gs', 'gcs')
_AZURE = ('az', 'abfs', 'abfss', 'adl')

#: What reads a protocol, by the name that pip knows it by.
_PACKAGES = {
    **dict.fromkeys(_AMAZON, 's3fs'),
    **dict.fromkeys(_GOOGLE, 'gcsfs'),
    **dict.fromkeys(_AZURE, 'adlfs'),
    **dict.fromkeys(('http', 'https'), 'aiohttp'),
    **dict.fromkeys(('sftp', 'ssh'), 'paramiko'),
    'oss': 'ossfs',
    'webdav': 'webdav4',
}
#: What a listing says of a file's content: the first of them that it has.
_VERSIONS = (
    'ETag', 'etag', 'md5Hash', 'crc32c', 'CRC', 'blob_id', 'Content-MD5', 'Digest', 'generation', 'mtime',
    'LastModified', 'last_modified', 'Last-Modified', 'updated', 'modified', 'created', 'date_time',
)  # fmt: skip


class Entry(NamedTuple):
    """What a folder holds.

    Attributes:
        name (str): Of a file or folder.
        is_folder (bool): Which of both.
        stamp (tuple, optional): Of a file, where the listing says it.
    """

    name: str
    is_folder: bool
    stamp: Optional[Stamp] = None


class Object(NamedTuple):
    """A file or folder behind a URL.

    Attributes:
        is_folder (bool): Which of both.
        size (int): In bytes; -1: the server does not say it.
        stamp (tuple, optional): Size and version.
    """

    is_folder: bool
    size: int
    stamp: Optional[Stamp]


def look_at(url: str) -> Object:
    """Asks for one object; raises what fsspec raises."""
    system, path = _system_of(url)
    info = system.info(path)
    # To HTTP everything is a file: a page that lists files is what comes nearest to a folder.
    is_folder = info.get('type') == 'directory' or (_is_web(url) and info.get('mimetype') == 'text/html')
    return Object(is_folder, size_of(info), None if is_folder else stamp_of(info))


def list_folder(url: str) -> List[Entry]:
    """What lies in a folder, by name; raises what fsspec raises."""
    system, path = _system_of(url, slash=_is_web(url))
    listed = system.ls(path, detail=True)
    getattr(system, 'dircache', {}).clear()  # ten million objects do not stay in memory
    itself = path.strip('/')
    entries: Dict[str, Entry] = {}
    for info in listed:
        whole = str(info['name']).strip('/')
        name = whole.rsplit('/', 1)[-1]
        # Object storages list a folder in itself, pages of HTTP the links that sort them.
        if whole == itself or not name or (_is_web(url) and ('?' in name or '#' in name)):
            continue
        is_folder = info.get('type') == 'directory'
        entries[name] = Entry(name, is_folder, None if is_folder else stamp_of(info))
    return [entries[name] for name in sorted(entries)]


def read_bytes(url: str, start: Optional[int] = None, end: Optional[int] = None) -> bytes:
    """The content of an object, or a part of it; raises what fsspec raises."""
    system, path = _system_of(url)
    content: bytes = system.cat_file(path, start=start, end=end)
    return content


def forget_archives() -> None:
    """Archives are opened anew: they may have changed."""
    _system.cache_clear()


def _system_of(url: str, slash: bool = False) -> Tuple[Any, str]:
    """The file system of a URL, and what it calls it."""
    archive, inside = in_archive(url)
    if archive:
        return _system(archive, os.getpid()), inside
    scheme, _, rest = url.partition('://')
    system = _system(f'{scheme}://{rest.split("/", 1)[0]}', os.getpid())
    path = with_secrets(url + '/' * slash)
    return system, system._strip_protocol(path) if not _is_web(url) else path


@lru_cache(maxsize=64)
def _system(base: str, process: int) -> Any:
    """One for each host or bucket, and process: connections do not survive a fork."""
    try:
        import fsspec
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise CannotRun('URLs are read by fsspec: pip install fsspec') from error
    scheme = base.partition('://')[0]
    archive, _ = in_archive(f'{base}/')
    try:
        if archive:
            outer = with_secrets(base[len(scheme) + 3 : -1])
            return url_to_fs(f'{scheme}://::{outer}', skip_instance_cache=True)[0]
        if scheme in _GOOGLE:
            # Else gcsfs asks over gRPC what kind of bucket it is, for each file; and gRPC does not survive a fork.
            os.environ.setdefault('GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT', 'false')
        said: Mapping[str, Any] = fsspec.config.conf.get(scheme, {})
        system = url_to_fs(with_secrets(base), **_options(scheme, said))[0]
        _ask_once(system, scheme)
        return system
    except ImportError as error:
        package = _PACKAGES.get(scheme.rsplit(':', 1)[-1])
        missing = f'are read by {package}: pip install {package}' if package else f'cannot be read: {error}'
        raise CannotRun(f'{scheme}:// URLs {missing}') from error
    except ValueError as error:
        known = scheme in fsspec.available_protocols()
        what = 'cannot be read' if known else 'is no protocol that fsspec knows'
        raise CannotRun(f'{scheme}:// {what} ({masked(str(error))})') from error


def _ask_once(system: Any, scheme: str) -> None:
    """Who asks again is this package alone: libraries that do, too, would wait for minutes, and log each failure."""
    if scheme in _AMAZON:
        system.retries = 1
    elif scheme in _GOOGLE:
        logging.getLogger('gcsfs').setLevel(logging.CRITICAL)
        request = getattr(type(system)._request, '__wrapped__', None)
        if request is not None:
            system._request = partial(request, system)
    elif scheme in _AZURE:
        logging.getLogger('azure').setLevel(logging.CRITICAL)
        policy = getattr(getattr(system.service_client, '_config', None), 'retry_policy', None)
        if policy is not None:
            policy.total_retries = 0


def _options(scheme: str, said: Mapping[str, Any]) -> Dict[str, Any]:
    """As :func:`_ask_once`, and there are connections enough; what the user configured comes first."""
    if scheme not in _AMAZON:
        return {}
    mine = {'max_pool_connections': CONNECTIONS, 'retries': {'mode': 'standard', 'total_max_attempts': 1}}
    return {'config_kwargs': {**mine, **said.get('config_kwargs', {})}}


def _is_web(url: str) -> bool:
    return url.startswith(('http://', 'https://'))


def size_of(info: Mapping[str, Any]) -> int:
    """In bytes; -1 where it is not said."""
    size = info.get('size', info.get('Content-Length'))
    return int(size) if isinstance(size, int) or str(size).isdecimal() else -1


def stamp_of(info: Mapping[str, Any]) -> Optional[Stamp]:
    """Size and version, as a listing or a header says them."""
    version = next((str(info[key]) for key in _VERSIONS if info.get(key)), '')
    if not version:
        return None
    return size_of(info), int.from_bytes(hashlib.blake2b(version.encode(), digest_size=6).digest(), 'big')
