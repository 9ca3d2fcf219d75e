"""What a worker loads first (``dask worker --preload``): its records are generated, no file is read.

As a script (``python generated_records.py ADDRESS WORKERS``) it is such workers, all in one process.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from typing import Any

from mmguard.formats.maps import source
from mmguard.formats.maps.record import MapItem, MapRecord
from mmguard.formats.maps.settings import MapSettings

_PIXELS = 512 * 512


def generated(item: MapItem, settings: MapSettings, invalid: Any, content: Any = None) -> MapRecord:
    """About as large as that of a real label map: 19 classes, the void, in every hundredth one an invalid value."""
    digits = hashlib.blake2b(os.path.basename(item.path).encode(), digest_size=20).digest()
    raw = {value: 1000 + 17 * digit for value, digit in enumerate(digits[:19])}
    if digits[19] < 3:
        raw[33] = 40
    raw[255] = _PIXELS - sum(raw.values())
    status = os.stat(item.path)  # the scan that resumes asks for it
    stamp = (status.st_size, status.st_mtime_ns)
    between = {33: 3} if 33 in raw else {}
    return MapRecord(item.path, stamp=stamp, form='gray8', shape=(512, 512), raw=raw, between=between)


def dask_setup(worker: Any = None) -> None:
    """Called by dask, with the worker."""
    source.read_map = generated  # type: ignore[assignment]


async def _work(address: str, workers: int) -> None:
    from distributed import Worker

    started = [await Worker(address, nthreads=2, dashboard=False, memory_limit=0) for _ in range(workers)]
    print('Registered to: all', file=sys.stderr, flush=True)
    await asyncio.gather(*(worker.finished() for worker in started))


if __name__ == '__main__':
    dask_setup()
    asyncio.run(_work(sys.argv[1], int(sys.argv[2])))
