"""URLs as text, without credentials: joined and split like paths, and followed only where the user allowed it.

A URL is split once, where the user names it. From then on it has no user, password or query, so no journal,
message or page can show them; :func:`secrets_of` returns them for a request. A file in an archive,
``zip://a.png::/data/x.zip``, becomes ``zip:///data/x.zip!/a.png``, which has a folder and a name like a path.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple
from urllib.parse import urlsplit, urlunsplit

#: Schemes whose user part is a user, not a container, and whose question mark starts a query.
_WEB = ('http://', 'https://')
_ARCHIVE = 'zip://'
_INSIDE = '!'
#: A scheme, or a chain of schemes. ``labels/http://host`` is a path that contains one.
_URL = re.compile(r'[A-Za-z][\w+.:-]*://')
_DOTS = re.compile(r'(?:^|[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:$|[/\\]|%2f|%5c)', re.IGNORECASE)
_USER = re.compile(r'(\w://)[^\s/@\'"<>]*:[^\s/@\'"<>]*@')
_QUERY = re.compile(r'(\w://[^\s?\'"<>]*)\?[^\s\'"<>)]*')
_SECRET_NAMES = re.compile('KEY|SECRET|TOKEN|PASSW|SAS|CONNECTION_STRING')
_SHORTEST_SECRET = 8


#: Origins named by the user, see :func:`origin_of`; and URL -> (user and password, query). Per process.
_origins: Set[str] = set()
_secrets: Dict[str, Tuple[str, str]] = {}


def is_url(path: str) -> bool:
    """Return True for a URL, which no file system of this machine holds.

    Example:
        >>> is_url('s3://bucket/a.png'), is_url('data/labels/http://host/a.png')
        (True, False)
    """
    return _URL.match(path) is not None


def enter(path: str) -> str:
    """Return mmguard's form of a path or URL given by the user, and allow requests to it from now on.

    Example:
        >>> enter('https://me:word@example.org/labels/?sig=a1b2'), enter('data/labels')
        ('https://example.org/labels', 'data/labels')
        >>> enter('zip://labels/a.png::s3://bucket/x.zip')
        'zip://s3://bucket/x.zip!/labels/a.png'
    """
    bare = strip_secrets(path)
    if is_url(path):
        _origins.add(origin_of(bare))
        if path.lower().startswith(_WEB):
            parts = urlsplit(path)
            user = parts.netloc.rpartition('@')[0]
            if user:
                _secrets[origin_of(bare)] = (user, '')
            if parts.query:
                _secrets[bare] = ('', parts.query)
        outer = split_archive(bare)[0][len(_ARCHIVE) : -len(_INSIDE)]
        if is_url(outer):
            enter(path.partition('::')[2])
    return bare


def strip_secrets(path: str) -> str:
    """Return the form of :func:`enter` for a path in a data set, without allowing requests to it."""
    if not is_url(path):
        return path
    if path.startswith(_ARCHIVE) and '::' in path:
        inside, _, outer = path[len(_ARCHIVE) :].partition('::')
        outer = strip_secrets(outer) if is_url(outer) else os.path.abspath(outer)
        return f'{_ARCHIVE}{outer}{_INSIDE}/{inside.strip("/")}'.rstrip('/')
    if not path.lower().startswith(_WEB):
        return path.rstrip('/')
    parts = urlsplit(path)
    return urlunsplit((parts.scheme, parts.netloc.rpartition('@')[2], parts.path.rstrip('/'), '', ''))


def enter_all(part: Any) -> None:
    """Allow every URL in a part of a config, since the user named it."""
    waiting: List[Any] = [part]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str) and is_url(one):
            enter(one)
        elif isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, (list, tuple)):
            waiting += one


def list_named() -> Tuple[Set[str], Dict[str, Tuple[str, str]]]:
    """Return the URLs that the user named, for another process."""
    return set(_origins), dict(_secrets)


def add_named(origins: Set[str], secrets: Mapping[str, Tuple[str, str]]) -> None:
    """Add the result of another process's :func:`list_named`."""
    _origins.update(origins)
    _secrets.update(secrets)


def origin_of(url: str) -> str:
    """Return the origin of a URL: scheme and host, bucket, or archive.

    Example:
        >>> origin_of('s3://bucket/labels/a.png'), origin_of('zip:///data/x.zip!/a.png')
        ('s3://bucket', 'zip:///data/x.zip!')
    """
    archive, _ = split_archive(url)
    scheme, _, rest = url.partition('://')
    return archive or f'{scheme.lower()}://{rest.partition("/")[0]}'


def has_dots(path: str) -> bool:
    """Return True if a part of a path is ``.`` or ``..``, or a server would read it so."""
    return _DOTS.search(path) is not None


def is_followed(url: str) -> bool:
    """Return True if a request to a URL is allowed.

    Only this function decides it: no name in a data set leads to a host that the user did not name, or above the folder
    that it is relative to.

    Example:
        >>> enter('s3://bucket/labels') and is_followed('s3://bucket/images/a.png'), is_followed('s3://other/a.png')
        (True, False)
        >>> is_followed(join('s3://bucket/labels', '../../a.png'))
        False
    """
    origin = origin_of(url)
    inside = url[len(origin) :]
    return origin in _origins and url.startswith(origin) and inside[:1] in ('', '/') and not has_dots(inside)


def check_followed(url: str) -> None:
    """Raise :class:`FileNotFoundError` if a request to a URL is not allowed."""
    if not is_followed(url):
        raise FileNotFoundError(
            errno.ENOENT, 'is on a host that you did not name: no request was made', mask_secrets(url)
        )


def secrets_of(url: str) -> Tuple[str, str]:
    """Return the user with password, and the query, for requests to a URL.

    Example:
        >>> secrets_of(enter('https://me:word@example.com/labels/?sig=a1b2') + '/a.png')
        ('me:word', 'sig=a1b2')
    """
    user = query = ''
    for place, (its_user, its_query) in _secrets.items():
        if url == place or url.startswith(place + '/'):
            user, query = its_user or user, its_query or query
    return user, query


def split_archive(url: str) -> Tuple[str, str]:
    """Split the URL of a file in an archive into the archive and the rest; two empty strings for other URLs.

    Example:
        >>> split_archive('zip:///data/x.zip!/labels/a.png'), split_archive('s3://bucket/a.png')
        (('zip:///data/x.zip!', 'labels/a.png'), ('', ''))
    """
    if not url.startswith(_ARCHIVE) or _INSIDE not in url:
        return '', ''
    head, _, inside = url.partition(_INSIDE)
    return head + _INSIDE, inside.lstrip('/')


def common_folder(paths: Sequence[str]) -> str:
    """Return the deepest folder that contains all files.

    Example:
        >>> common_folder(['s3://b/labels/train/1.png', 's3://b/labels/val/2.png'])
        's3://b/labels'
    """
    if any(map(is_url, paths)):
        folder = paths[0].rpartition('/')[0]
        while folder and not all(path.startswith(folder + '/') for path in paths):
            folder = folder.rpartition('/')[0]
        return folder
    return os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths])


def absolute(path: str) -> str:
    """Return an absolute path like ``os.path.abspath``; a URL unchanged."""
    return path if is_url(path) else os.path.abspath(path)


def join(folder: str, path: str) -> str:
    """Join like ``os.path.join``, also for URLs: nothing is absolute to a URL, and ``..`` above it is not allowed.

    Example:
        >>> join('s3://bucket/coco', './images'), join('coco', 's3://bucket/images')
        ('s3://bucket/coco/images', 's3://bucket/images')
        >>> join('s3://bucket/coco', '../images')
        's3://bucket/coco/../images'
    """
    if is_url(path):
        return path
    if not is_url(folder):
        return os.path.join(folder, path)
    inside = posixpath.normpath(path.strip('/') or '.')
    return folder if inside == '.' else f'{folder}/{inside}'


def below(path: str, root: str) -> str:
    """Return a path relative to a folder like ``os.path.relpath``, also for URLs."""
    return path[len(root.rstrip('/')) :].strip('/') if is_url(path) else os.path.relpath(path, root)


def mirror_folder(folder: str, root: str, other: str) -> str:
    """Return the folder below ``other`` that corresponds to ``folder`` below ``root``.

    Example:
        >>> mirror_folder('s3://b/labels/train', 's3://b/labels', 's3://b/images')
        's3://b/images/train'
    """
    inside = below(folder, root)
    if is_url(other):
        inside = '' if inside == os.curdir else inside.replace(os.sep, '/')
        return f'{other}/{inside}'.rstrip('/')
    return os.path.normpath(os.path.join(other, inside))


def mask_secrets(text: str) -> str:
    """Mask users and queries of URLs, and values of secret variables, in a library's message.

    Example:
        >>> mask_secrets("403, url='https://me:word@example.org/a.png?sig=a1b2'")
        "403, url='https://***@example.org/a.png?***'"
    """
    text = _QUERY.sub(r'\1?***', _USER.sub(r'\1***@', text))
    held = [part for secret in _secrets.values() for part in secret]
    held += [value for name, value in os.environ.items() if _SECRET_NAMES.search(name.upper())]
    for value in held:
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, '***')
    return text
