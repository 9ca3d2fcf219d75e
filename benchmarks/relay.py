"""Counts the bytes between a client and a server: Linux counts them for a machine, not for a process."""

from __future__ import annotations

import asyncio
import threading
from typing import Any


class Relay:
    """Hands on what comes, in a thread.

    Args:
        server (str): ``'tcp://HOST:PORT'``.

    Attributes:
        address (str): Where clients connect instead.
        sent, received (int): Bytes from clients, and to them.
    """

    def __init__(self, server: str) -> None:
        host, _, port = server.partition('//')[2].rpartition(':')
        self._server = host, int(port)
        self.sent = self.received = 0
        self.address = ''
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()

    def __enter__(self) -> Relay:
        threading.Thread(target=self._run, daemon=True).start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self) -> None:
        listening = self._loop.run_until_complete(asyncio.start_server(self._connect, '127.0.0.1', 0))
        self.address = f'tcp://127.0.0.1:{listening.sockets[0].getsockname()[1]}'
        self._started.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, before = await asyncio.open_connection(*self._server)
        await asyncio.gather(self._pass_on(reader, before, 'sent'), self._pass_on(behind, writer, 'received'))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: str) -> None:
        try:
            while True:
                data = await reader.read(1 << 16)
                if not data:
                    break
                setattr(self, count, getattr(self, count) + len(data))
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()
