"""Access to URLs: object storage through fsspec, HTTP servers, archives. Each function makes one request."""

from __future__ import annotations

import base64
import errno
import os
import re
from functools import lru_cache, partial
from html import unescape
from http.client import HTTPMessage
from typing import IO, Any, BinaryIO, Dict, List, Mapping, Tuple
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from mmguard.errors import CannotRun
from mmguard.storage.archives import LARGEST_DIRECTORY, Archive
from mmguard.storage.entries import Entry, Object, size_of, stamp_of
from mmguard.storage.requests import Refused, Transfer, ask, time_limit
from mmguard.storage.urls import check_followed, is_url, mask_secrets, origin_of, secrets_of, split_archive

#: Connections of a process to one host: more than there are threads.
CONNECTIONS = 32
WEB = ('http://', 'https://')
_AMAZON = ('s3', 's3a')

#: Protocol -> pip name of the package that reads it.
_PACKAGES = {
    **dict.fromkeys(_AMAZON, 's3fs'),
    **dict.fromkeys(('gs', 'gcs'), 'gcsfs'),
    **dict.fromkeys(('az', 'abfs', 'abfss'), 'adlfs'),
}


def look_at(url: str) -> Object:
    """Return the file or folder at a URL."""
    check_followed(url)
    archive, inside = split_archive(url)
    if archive:
        found = _open_archive(archive, os.getpid()).look_at(inside)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
        return found
    if url.startswith(WEB):
        head = ask(partial(read_head, url), url)
        # HTTP only has files: a page that lists files is the closest to a folder.
        is_folder = str(head.get('Content-Type', '')).startswith('text/html')
        return Object(is_folder, size_of(head), None if is_folder else stamp_of(head))
    info = ask(partial(_find_system(url).info, url), url)
    is_folder = info.get('type') == 'directory'
    return Object(is_folder, size_of(info), None if is_folder else stamp_of(info))


def list_folder(url: str) -> List[Entry]:
    """Return the entries of a folder by name, without names that lead elsewhere."""
    check_followed(url)
    archive, inside = split_archive(url)
    if archive:
        return _open_archive(archive, os.getpid()).entries(inside)
    if url.startswith(WEB):
        transfer = Transfer()
        links = ask(partial(list_links, url, transfer), url, transfer)
        listed = [Entry(name, is_folder) for name, is_folder in links]
    else:
        listed = _list(url, ask(partial(_find_system(url).ls, url, detail=True), url, Transfer(LARGEST_PAGE)))
    entries = {entry.name: entry for entry in listed if entry.name not in ('', '.', '..')}
    return [entries[name] for name in sorted(entries)]


def _list(url: str, infos: List[Dict[str, Any]]) -> List[Entry]:
    entries = []
    depth = url.partition('://')[2].count('/')
    for info in infos:
        path = str(info['name']).strip('/')
        if path.count('/') == depth + 1:  # object storage lists a folder inside itself
            is_folder = info.get('type') == 'directory'
            entries.append(Entry(path.rpartition('/')[2], is_folder, None if is_folder else stamp_of(info)))
    return entries


def read_bytes(url: str, start: int, end: int) -> bytes:
    """Return the bytes of a file from start to end; fewer if it is shorter."""
    check_followed(url)
    archive, inside = split_archive(url)
    if archive:
        return _open_archive(archive, os.getpid()).read(inside, start, end)
    if url.startswith(WEB):
        transfer = Transfer()
        return ask(partial(read_web, url, start, end, transfer), url, transfer)
    read = partial(_find_system(url).cat_file, url, start=start, end=end)
    content: bytes = ask(read, url, Transfer(end - start))
    return content[: end - start]


def unpack(url: str, into: BinaryIO) -> None:
    """Write a file of an archive to an open file."""
    check_followed(url)
    archive, inside = split_archive(url)
    _open_archive(archive, os.getpid()).unpack(inside, into)


def forget_archives() -> None:
    """Forget the open archives, which may have changed."""
    _open_archive.cache_clear()


@lru_cache(maxsize=8)
def _open_archive(archive: str, process: int) -> Archive:
    """Return an archive opened by this process: forked processes would share the file position."""
    place = archive.partition('://')[2][:-1]
    if place.startswith(WEB):
        raise CannotRun(f'{place}: an archive is read from a disk or an object storage: copy it here')
    if not is_url(place):
        if not os.path.isfile(place):  # opening a pipe would wait forever
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place)
        return Archive(open(place, 'rb'), place)
    system = _find_system(place)
    return ask(lambda: Archive(system.open(place, 'rb'), place), place, Transfer(LARGEST_DIRECTORY))


def _find_system(url: str) -> Any:
    scheme, _, rest = url.partition('://')
    return _open_system(scheme, f'{scheme}://{rest.partition("/")[0]}', os.getpid())


@lru_cache(maxsize=64)
def _open_system(scheme: str, base: str, process: int) -> Any:
    """Return a bucket opened by this process: connections do not survive a fork."""
    package = _PACKAGES.get(scheme)
    if package is None:
        known = ', '.join(f'{one}://' for one in ('http', 'https', 'zip', *_PACKAGES))
        raise CannotRun(f'{scheme}:// cannot be read, only {known}: copy the data here, or mount the storage')
    try:
        import fsspec
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise CannotRun('URLs are read by fsspec: pip install fsspec') from error
    options: Dict[str, Any] = {'use_listings_cache': False}  # do not keep ten million objects in memory
    if scheme in _AMAZON:
        limits = {'connect_timeout': time_limit(), 'read_timeout': time_limit(), 'max_pool_connections': CONNECTIONS}
        options['config_kwargs'] = {**limits, **fsspec.config.conf.get(scheme, {}).get('config_kwargs', {})}
    elif package == 'gcsfs':
        # Otherwise gcsfs requests the kind of bucket over gRPC for each file, and gRPC does not survive a fork.
        os.environ.setdefault('GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT', 'false')
    try:
        return url_to_fs(base, **options)[0]
    except ImportError as error:
        raise CannotRun(f'{scheme}:// URLs are read by {package}: pip install {package}') from error
    except ValueError as error:
        raise CannotRun(f'{scheme}:// cannot be read ({mask_secrets(str(error))})') from error


#: Maximum bytes of a page that lists a folder: about a million names.
LARGEST_PAGE = 64 << 20
_PIECE = 1 << 16
_LINK = re.compile(r'<a\s[^>]{0,1000}?href\s*=\s*["\']([^"\'<>]{1,1000})["\']', re.IGNORECASE)
_UNSAFE = re.compile(r'[%/\\\x00-\x1f\x7f]')


class _SameHost(HTTPRedirectHandler):
    """Redirect handler that stays on the same host."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Any:
        if origin_of(newurl) != origin_of(req.full_url):
            raise Refused(errno.EIO, 'redirects to another host, which is not followed', mask_secrets(newurl))
        followed = super().redirect_request(req, fp, code, msg, headers, newurl)
        if followed is not None:
            followed.method = req.get_method()  # a HEAD request stays one
        return followed


_OPENER = build_opener(_SameHost)


def read_head(url: str) -> Mapping[str, Any]:
    """Return the headers of a file."""
    with _open(url, 'HEAD') as answer:
        headers: Mapping[str, Any] = answer.headers
    return headers


def list_links(url: str, transfer: Transfer) -> List[Tuple[str, bool]]:
    """Return the links on a folder's page to entries directly below it, and whether they are folders."""
    folder = f'{url}/'
    page = read_web(folder, 0, LARGEST_PAGE + 1, transfer)
    if len(page) > LARGEST_PAGE:
        raise Refused(errno.EIO, f'its page is larger than {LARGEST_PAGE >> 20} MiB', mask_secrets(url))
    found = []
    for link in _LINK.findall(page.decode(errors='replace')):
        whole = urljoin(folder, unescape(link))
        if not whole.startswith(folder) or '?' in whole or '#' in whole:
            continue  # links that sort the page, to the parent folder, or to another host
        name = whole[len(folder) :]
        plain = unquote(name.rstrip('/'))
        if name.rstrip('/'):
            found.append((name.rstrip('/') if _UNSAFE.search(plain) else plain, name.endswith('/')))
    return [(name, is_folder) for name, is_folder in found if '/' not in name]


def read_web(url: str, start: int, end: int, transfer: Transfer) -> bytes:
    """Return the bytes of a file from start to end; fewer if it is shorter."""
    headers = {'Range': f'bytes={start}-{end - 1}'} if start or end <= _PIECE else {}
    with _open(url, 'GET', headers) as answer:
        skipped = 0 if answer.status == 206 else start  # a server may ignore the range and send everything
        pieces, left = [], end - start + skipped
        while left > 0:
            piece = answer.read1(min(_PIECE, left))
            if not piece:
                break
            transfer.size += len(piece)
            left -= len(piece)
            pieces.append(piece)
        if left > 0 and answer.length:  # read1 mistakes the end of a connection for that of a body
            raise OSError(f'the body ended {answer.length:,} bytes early')
    return b''.join(pieces)[skipped:]


def _open(url: str, method: str, headers: Mapping[str, str] = {}) -> Any:
    user, query = secrets_of(url)
    parts = urlsplit(url)
    path = quote(url[len(f'{parts.scheme}://{parts.netloc}') :], safe="/%:=&~+!$,;'@()*[]")
    request = Request(f'{parts.scheme}://{parts.netloc}{path}{"?" * bool(query)}{query}', method=method)
    for name, value in {'User-Agent': 'mmguard', 'Accept-Encoding': 'identity', **headers}.items():
        request.add_header(name, value)
    if user:
        request.add_header('Authorization', f'Basic {base64.b64encode(unquote(user).encode()).decode()}')
    return _OPENER.open(request, timeout=time_limit())
