"""In place of the package that mmengine's MemcachedBackend imports: files of a disk, through a buffer as it has one."""

from __future__ import annotations

import time
from pathlib import Path

ConvertBuffer = bytes


class pyvector(bytearray):
    """Holds one value: whoever asks next writes over it."""


class MemcachedClient:
    @classmethod
    def GetInstance(cls, server_list_cfg: str, client_cfg: str) -> MemcachedClient:
        return cls()

    def Get(self, path: str, buffer: pyvector) -> None:
        buffer[:] = Path(path).read_bytes()
        time.sleep(0.001)  # on its way
