"""Rows of the tables in SECURITY.md, the registry of their checks, and a small web server and data sets for them."""

from __future__ import annotations

import functools
import http.server
import json
import re
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np
from coco_cases import ann, coco
from pictures import encode
from put_file import put

from mmguard.cli import main

PAGE = (Path(__file__).parent.parent / 'SECURITY.md').read_text(encoding='utf-8')
#: First cell of a row -> the second.
ROWS: Dict[str, str] = dict(re.findall(r'^\| (?!what |---)(.+?) \| (.+) \|$', PAGE, re.MULTILINE))
CHECKS: Dict[str, Callable[..., None]] = {}
COCO = coco([ann(1, 1, 1, (0, 0, 4, 4))], 1, ['x'], size=(8, 8), first_image=1)
HEAD = {'type': 'FCNHead', 'num_classes': 3}
MODEL = {'type': 'EncoderDecoder', 'decode_head': HEAD}


def line(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register the check of a row."""

    def register(check: Callable[..., None]) -> Callable[..., None]:
        CHECKS[name] = check
        return check

    return register


class Calling:
    """Pickled as the call of a function that writes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self) -> Tuple[Any, ...]:
        return (open, (self.mark, 'w'))


class Server(http.server.ThreadingHTTPServer):
    """A server that remembers the path of each request in ``asked``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(('127.0.0.1', 0), Handler)
        self.asked: List[str] = []

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self.server_port}'


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        if self.command == 'GET':
            self.wfile.write(png())

    do_HEAD = do_GET


@contextmanager
def serve() -> Iterator[Server]:
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@functools.lru_cache(maxsize=None)
def png() -> bytes:
    return encode(np.arange(64, dtype=np.uint8).reshape(8, 8) % 3)


def write(folder: Path, **contents: Any) -> Path:
    """Write files; ``__`` in a name is ``/``, and the last ``_`` the dot."""
    for name, content in contents.items():
        path = folder / '.'.join(name.replace('__', '/').rsplit('_', 1))
        put(path, content if isinstance(content, (str, bytes)) else json.dumps(content))
    return folder


def write_yolo(folder: Path, data: str = '', label: str = '0 .5 .5 .1 .1\n') -> Path:
    text = f'{data}train: images\nval: images\nnames: [a]\n'
    return write(folder, images__a_png=png(), labels__a_txt=label, data_yaml=text)


def scan(target: Any, *words: Any) -> int:
    return main(['scan', str(target), '--processes', '1', *map(str, words)])


def scan_facts(target: Any, folder: Path, *words: Any) -> Dict[str, Any]:
    assert scan(target, '--json', folder / 'facts.json', *words) in (0, 1)
    (one,) = json.loads((folder / 'facts.json').read_text())['datasets']
    facts: Dict[str, Any] = one['facts']
    return facts


def count_unreadable(facts: Dict[str, Any]) -> int:
    return sum(map(len, facts['maps'].get('unreadable', {}).values()))
