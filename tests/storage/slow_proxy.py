"""A proxy that makes a server behind it slow and unreliable: every answer late, some 503.

As a script (``python slow_proxy.py PORT_BEHIND SECONDS``) it prints its own port, and remembers what it was asked for.
"""

from __future__ import annotations

import asyncio
import random
import sys
import threading
from typing import Dict, List, Optional, Set, Tuple

_END = b'\r\n\r\n'
_BUSY = b'HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n'
_FIXED = random.Random(5)


class SlowProxy:
    """Runs in a thread of this process.

    Args:
        behind (int): Port of the server behind it.
        latency (float): Seconds before every answer.

    Attributes:
        busy (float): Part of the requests that is answered by 503.
        broken (set[str]): What is always answered by 503, by the ends of paths.
        asked (list[str]): Method and path of every request.
        answered (list[str]): Of those whose answer was sent.
        spoiled (int): How many were not answered.
        remembers (bool): Answers are kept, and given again without asking the server.
    """

    def __init__(self, behind: int, latency: float = 0.0) -> None:
        self.behind, self.latency = behind, latency
        self.busy = 0.0
        self.spoiled = 0
        self.broken: Set[str] = set()
        self.asked: List[str] = []
        self.answered: List[str] = []
        self.remembers = False
        self.port = 0
        self._answers: Dict[bytes, bytes] = {}
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        started.wait(10)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join(10)

    def _end(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_later(0.05, self._loop.stop)

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, '127.0.0.1', 0))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head, body = await _message(reader)
                method, path = head.split(b' ', 2)[:2]
                self.asked.append(f'{method.decode()} {path.decode()}')
                await asyncio.sleep(self.latency)
                if path.decode().endswith(tuple(self.broken)) or _FIXED.random() < self.busy:
                    self.spoiled += 1
                    writer.write(_BUSY)
                else:
                    writer.write(await self._answer(method, path, head, body))
                await writer.drain()
                self.answered.append(f'{method.decode()} {path.decode()}')
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            writer.close()

    async def _answer(self, method: bytes, path: bytes, head: bytes, body: bytes) -> bytes:
        key = method + path + (_header(head, b'range') or b'')
        if key in self._answers:
            return self._answers[key]
        reader, writer = await asyncio.open_connection('127.0.0.1', self.behind)
        writer.write(_without(head, b'connection') + b'Connection: close' + _END + body)
        await writer.drain()
        answer_head, _, rest = (await reader.read(-1)).partition(_END)
        writer.close()
        answer = _without(answer_head + _END, b'connection') + b'Connection: keep-alive' + _END + rest
        if self.remembers and method in (b'GET', b'HEAD'):
            self._answers[key] = answer
        return answer


async def _message(reader: asyncio.StreamReader) -> Tuple[bytes, bytes]:
    head = await reader.readuntil(_END)
    length = _header(head, b'content-length')
    return head, await reader.readexactly(int(length)) if length else b''


def _header(head: bytes, name: bytes) -> Optional[bytes]:
    for line in head.split(b'\r\n')[1:]:
        key, _, value = line.partition(b':')
        if key.lower() == name:
            return value.strip()
    return None


def _without(head: bytes, name: bytes) -> bytes:
    """Its lines but one, each with its end."""
    lines = [line for line in head.split(b'\r\n') if line and not line.lower().startswith(name + b':')]
    return b'\r\n'.join(lines) + b'\r\n'


if __name__ == '__main__':
    proxy = SlowProxy(int(sys.argv[1]), float(sys.argv[2]))
    proxy.remembers = True
    print(proxy.port, flush=True)
    sys.stdin.read()
