"""A server of HTTP that behaves as badly as the first folder of a path says."""

from __future__ import annotations

import gzip
import http.server
import threading
import time
from contextlib import contextmanager
from typing import Any, Iterator, List

#: Until a test is over.
_LONG = 20.0


class HostileServer(http.server.ThreadingHTTPServer):
    """Folders have one page, with links to bad.png and good.png. What good.png holds, all others hold, too.

    Args:
        png (bytes): A label map.
        elsewhere (str): Where redirects and links lead.

    Attributes:
        asked (list[str]): Method and path of every request.
        over (Event): Ends what waits.
    """

    daemon_threads = True

    def __init__(self, png: bytes, elsewhere: str = '') -> None:
        super().__init__(('127.0.0.1', 0), _Handler)
        self.png, self.elsewhere = png, elsewhere
        self.asked: List[str] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self.server_address[1]}'


@contextmanager
def hostile_server(png: bytes = b'', elsewhere: str = '') -> Iterator[HostileServer]:
    server = HostileServer(png, elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    server: HostileServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.asked.append(f'{self.command} {self.path}')
        _, kind, *rest = self.path.split('/')
        name = rest[-1] if rest else ''
        try:
            if kind.startswith('every_') or name == 'bad.png':
                getattr(self, f'_{kind}')()
            elif not name:
                links = ['bad.png', 'good.png', f'{self.server.elsewhere}/ok/other.png', '../../up.png', '..%2fup.png']
                self._send(''.join(f'<a href="{link}">x</a>' for link in links).encode(), 'text/html')
            else:
                self._send(self.server.png)
        except (ConnectionError, TimeoutError):
            pass

    def _send(self, body: bytes, kind: str = 'image/png', length: Any = None, **headers: str) -> None:
        self._begin(kind, len(body) if length is None else length, **headers)
        if self.command != 'HEAD':
            self.wfile.write(body)

    def _begin(self, kind: str = 'image/png', length: Any = '', **headers: str) -> None:
        self.send_response(200)
        named = {'Content-Type': kind, 'Content-Length': str(length), **headers}
        for key, value in named.items():
            if value:
                self.send_header(key.replace('_', '-'), value)
        if not length:
            self.send_header('Connection', 'close')
            self.close_connection = True
        self.end_headers()

    def _drip(self, data: bytes) -> None:
        """A byte every fifth of a second."""
        for byte in data:
            if self.server.over.wait(0.2):
                return
            self.wfile.write(bytes([byte]))
            self.wfile.flush()

    def _ok(self) -> None:
        self._send(self.server.png)

    def _hangs(self) -> None:
        self.server.over.wait(_LONG)

    _every_hangs = _hangs

    def _trickles(self) -> None:
        self._begin(length=len(self.server.png))
        if self.command != 'HEAD':
            self._drip(self.server.png)

    def _trickles_its_head(self) -> None:
        self._drip(b'HTTP/1.1 200 OK\r\nX: ' + 500 * b'x')

    def _is_endless(self) -> None:
        self._begin()
        end = time.monotonic() + _LONG
        while self.command != 'HEAD' and time.monotonic() < end:
            self.wfile.write(bytes(1 << 20))

    def _every_page_is_endless(self) -> None:
        self._begin('text/html')
        number = 0
        while self.command != 'HEAD' and not self.server.over.is_set():
            self.wfile.write(b''.join(b'<a href="%d.png">x</a>' % (number + one) for one in range(5000)))
            number += 5000

    def _says_more(self) -> None:
        self._send(self.server.png[:50], length=len(self.server.png))
        self.close_connection = True

    def _says_terabytes(self) -> None:
        self._send(self.server.png, length=10**13)
        self.close_connection = True

    def _says_nonsense(self) -> None:
        self._send(self.server.png[:50], length=-5)
        self.close_connection = True

    def _expands(self) -> None:
        self._send(gzip.compress(bytes(1 << 26), 1), Content_Encoding='gzip')

    def _fails(self) -> None:
        self.send_error(500)

    def _redirect(self, place: str) -> None:
        self.send_response(302)
        self.send_header('Location', place)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def _redirects(self) -> None:
        self._redirect(f'{self.server.elsewhere}/ok/stolen.png')

    def _redirects_to_a_file(self) -> None:
        self._redirect('file:///etc/passwd')

    def _redirects_to_itself(self) -> None:
        self._redirect(self.path)
