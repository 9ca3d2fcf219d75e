"""Servers on the loopback: S3 (moto's, a process of its own), and files over HTTP."""

from __future__ import annotations

import functools
import http.server
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

KEY, SECRET = 'AKIAEXAMPLEOFTESTS', 'a-secret-that-nobody-shows'
_MOTO = 'import sys; from moto.server import main; main(["-H", "127.0.0.1", "-p", "0"])'


@contextmanager
def s3_server() -> Iterator[int]:
    """Its port."""
    with subprocess.Popen([sys.executable, '-c', _MOTO], stderr=subprocess.PIPE, text=True) as process:
        found = next(filter(None, (re.search(r'http://127\.0\.0\.1:(\d+)', line) for line in process.stderr)))
        # What it goes on to write must not fill the pipe.
        threading.Thread(target=process.stderr.read, daemon=True).start()
        try:
            yield int(found.group(1))
        finally:
            process.terminate()


def environment(port: int) -> dict:
    """What leads S3 to a port."""
    return {
        'AWS_ACCESS_KEY_ID': KEY,
        'AWS_SECRET_ACCESS_KEY': SECRET,
        'AWS_DEFAULT_REGION': 'us-east-1',
        'AWS_ENDPOINT_URL': f'http://127.0.0.1:{port}',
        'AWS_EC2_METADATA_DISABLED': 'true',
    }


def upload(folder: Path, url: str, port: int) -> None:
    """Everything in a folder, to where a URL of S3 says."""
    import s3fs

    system = s3fs.S3FileSystem(endpoint_url=f'http://127.0.0.1:{port}', skip_instance_cache=True)
    bucket = url.split('//')[1].split('/')[0]
    if not system.exists(bucket):
        system.mkdir(bucket)
    files = [path for path in folder.rglob('*') if path.is_file()]
    system.pipe({f'{url}/{path.relative_to(folder).as_posix()}': path.read_bytes() for path in files})


class _Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def http_server(folder: Path) -> Iterator[int]:
    """Its port. Folders are listed, as http.server does."""
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
