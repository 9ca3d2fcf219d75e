"""Files of a server of HTTP: read in bounded pieces, and of no other host than the one that was named."""

from __future__ import annotations

import base64
import errno
import re
from html import unescape
from http.client import HTTPMessage
from typing import IO, Any, List, Mapping, Tuple
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from mmguard.tools.storage.requests import Refused, Transfer, time_limit
from mmguard.tools.storage.urls import masked, origin_of, secrets_of

#: Bytes of a page that lists a folder: a million names or so.
LARGEST_PAGE = 64 << 20
_PIECE = 1 << 16
_LINK = re.compile(r'<a\s[^>]{0,1000}?href\s*=\s*["\']([^"\'<>]{1,1000})["\']', re.IGNORECASE)
_UNSAFE = re.compile(r'[%/\\\x00-\x1f\x7f]')


class _SameHost(HTTPRedirectHandler):
    """Follows what leads elsewhere on the same host."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Any:
        if origin_of(newurl) != origin_of(req.full_url):
            raise Refused(errno.EIO, 'redirects to another host, which is not followed', masked(newurl))
        followed = super().redirect_request(req, fp, code, msg, headers, newurl)
        if followed is not None:
            followed.method = req.get_method()  # a question for the head stays one
        return followed


_OPENER = build_opener(_SameHost)


def read_head(url: str) -> Mapping[str, Any]:
    """Return the headers of a file."""
    with _open(url, 'HEAD') as answer:
        headers: Mapping[str, Any] = answer.headers
    return headers


def list_links(url: str, transfer: Transfer) -> List[Tuple[str, bool]]:
    """Return what the page of a folder links to directly below it: names, and whether they are folders."""
    folder = f'{url}/'
    page = read(folder, 0, LARGEST_PAGE + 1, transfer)
    if len(page) > LARGEST_PAGE:
        raise Refused(errno.EIO, f'its page is larger than {LARGEST_PAGE >> 20} MiB', masked(url))
    found = []
    for link in _LINK.findall(page.decode(errors='replace')):
        whole = urljoin(folder, unescape(link))
        if not whole.startswith(folder) or '?' in whole or '#' in whole:
            continue  # what sorts the page, the folder above, another host
        name = whole[len(folder) :]
        plain = unquote(name.rstrip('/'))
        if name.rstrip('/'):
            found.append((name.rstrip('/') if _UNSAFE.search(plain) else plain, name.endswith('/')))
    return [(name, is_folder) for name, is_folder in found if '/' not in name]


def read(url: str, start: int, end: int, transfer: Transfer) -> bytes:
    """Return the bytes of a file from start to end, fewer where it is shorter."""
    headers = {'Range': f'bytes={start}-{end - 1}'} if start or end <= _PIECE else {}
    with _open(url, 'GET', headers) as answer:
        skipped = 0 if answer.status == 206 else start  # a server may send all, whatever is asked
        pieces, left = [], end - start + skipped
        while left > 0:
            piece = answer.read1(min(_PIECE, left))
            if not piece:
                break
            transfer.size += len(piece)
            left -= len(piece)
            pieces.append(piece)
        if left > 0 and answer.length:  # read1 takes the end of a connection for that of a body
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
