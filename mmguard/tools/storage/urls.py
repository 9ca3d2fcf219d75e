"""URLs as text: shown and stored without credentials, joined and cut as paths are.

A URL is taken apart once, where the user names it. From then on it has no user, password or query, which no journal,
message or page can show therefore; :func:`with_secrets` puts them back where a request is made. A file in an archive,
``zip://a.png::/data/x.zip`` of fsspec, is ``zip:///data/x.zip!/a.png``: so it has a folder and a name as a path has.
"""

from __future__ import annotations

import os
import posixpath
import re
from typing import Dict, Mapping, Sequence, Tuple
from urllib.parse import urlsplit, urlunsplit

#: Their user is one, not the name of a container, and what follows a question mark no part of a name.
_WEB = ('http', 'https', 'ftp', 'sftp', 'ssh', 'webdav', 'webhdfs')
_ARCHIVES = ('zip', 'tar', 'libarchive')
_INSIDE = '!'
_USER = re.compile(r'(\w://)[^\s/@\'"<>]*:[^\s/@\'"<>]*@')
_QUERY = re.compile(r'(\w://[^\s?\'"<>]*)\?[^\s\'"<>)]*')
_SECRET_NAMES = re.compile('KEY|SECRET|TOKEN|PASSW|SAS|CONNECTION_STRING')
_SHORTEST_SECRET = 8

#: URL without -> (user and password, query), of this process.
_secrets: Dict[str, Tuple[str, str]] = {}


def is_url(path: str) -> bool:
    """Whether a path is a URL, which no file system of this machine holds."""
    return '://' in path


def entered(path: str) -> str:
    """A path or URL of the user, as mmguard holds it: its credentials are kept for requests alone.

    Example:
        >>> entered('https://me:word@example.org/labels/?sig=a1b2'), entered('data/labels')
        ('https://example.org/labels', 'data/labels')
        >>> entered('zip://labels/a.png::s3://bucket/x.zip')
        'zip://s3://bucket/x.zip!/labels/a.png'
    """
    scheme, mark, rest = path.partition('://')
    if not mark:
        return path
    if scheme in _ARCHIVES and '::' in rest:
        inside, _, outer = rest.partition('::')
        outer = entered(outer) if is_url(outer) else os.path.abspath(outer)
        return f'{scheme}://{outer}{_INSIDE}/{inside.strip("/")}'.rstrip('/')
    if scheme.lower() not in _WEB:
        return path.rstrip('/')
    parts = urlsplit(path)
    user, _, host = parts.netloc.rpartition('@')
    bare = urlunsplit((parts.scheme, host, parts.path.rstrip('/'), '', ''))
    if user:
        _secrets[f'{parts.scheme}://{host}'] = (user, '')
    if parts.query:
        _secrets[bare] = ('', parts.query)
    return bare


def with_secrets(url: str) -> str:
    """The URL that a request needs, of one that :func:`entered` returned, or of one below it.

    Example:
        >>> with_secrets(entered('https://example.com/labels/?sig=a1b2') + '/a.png')
        'https://example.com/labels/a.png?sig=a1b2'
    """
    for place in sorted(_secrets, key=len, reverse=True):
        if url == place or url.startswith(place + '/'):
            user, query = _secrets[place]
            if user:
                url = url.replace('://', f'://{user}@', 1)
            if query:
                url = f'{url}?{query}'
    return url


def held_secrets() -> Dict[str, Tuple[str, str]]:
    """What was taken out of URLs, for another process that is to read them."""
    return dict(_secrets)


def hold_secrets(secrets: Mapping[str, Tuple[str, str]]) -> None:
    """The other side of :func:`held_secrets`."""
    _secrets.update(secrets)


def in_archive(url: str) -> Tuple[str, str]:
    """The archive that a URL names a file of, and the rest; two empty texts where it names none.

    Example:
        >>> in_archive('zip:///data/x.zip!/labels/a.png'), in_archive('s3://bucket/a.png')
        (('zip:///data/x.zip!', 'labels/a.png'), ('', ''))
    """
    scheme = url.partition('://')[0]
    if scheme not in _ARCHIVES or _INSIDE not in url:
        return '', ''
    head, _, inside = url.rpartition(f'{_INSIDE}/') if f'{_INSIDE}/' in url else (url[:-1], '', '')
    return head + _INSIDE, inside


def common_folder(paths: Sequence[str]) -> str:
    """The deepest folder that holds all files.

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
    """As ``os.path.abspath``, of URLs too."""
    return path if is_url(path) else os.path.abspath(path)


def normal(path: str) -> str:
    """As ``os.path.normpath``, of URLs too.

    Example:
        >>> normal('s3://bucket/coco/../images')
        's3://bucket/images'
    """
    scheme, mark, rest = path.partition('://')
    return f'{scheme}://{posixpath.normpath(rest)}' if mark else os.path.normpath(path)


def joined(folder: str, path: str) -> str:
    """As ``os.path.join``, of URLs too.

    Example:
        >>> joined('s3://bucket/coco', 'images'), joined('coco', 's3://bucket/images')
        ('s3://bucket/coco/images', 's3://bucket/images')
    """
    if is_url(path):
        return path
    return f'{folder}/{path}' if is_url(folder) and not os.path.isabs(path) else os.path.join(folder, path)


def below(path: str, root: str) -> str:
    """As ``os.path.relpath``, of URLs too: a path in a folder, from there."""
    return path[len(root.rstrip('/')) :].strip('/') if is_url(path) else os.path.relpath(path, root)


def in_the_place(folder: str, root: str, other: str) -> str:
    """The folder that lies below ``other`` as ``folder`` lies below ``root``.

    Example:
        >>> in_the_place('s3://b/labels/train', 's3://b/labels', 's3://b/images')
        's3://b/images/train'
    """
    inside = below(folder, root)
    if is_url(other):
        inside = '' if inside == os.curdir else inside.replace(os.sep, '/')
        return f'{other}/{inside}'.rstrip('/')
    return os.path.normpath(os.path.join(other, inside))


def masked(text: str) -> str:
    """A message of a library, without users and queries of URLs, and without the values of secret variables.

    Example:
        >>> masked("403, url='https://me:word@example.org/a.png?sig=a1b2'")
        "403, url='https://***@example.org/a.png?***'"
    """
    text = _QUERY.sub(r'\1?***', _USER.sub(r'\1***@', text))
    held = [part for secret in _secrets.values() for part in secret]
    held += [value for name, value in os.environ.items() if _SECRET_NAMES.search(name.upper())]
    for value in held:
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, '***')
    return text
