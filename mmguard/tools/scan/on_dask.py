"""The mapper of several machines: dask.distributed."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List

from mmguard.errors import CannotRun
from mmguard.tools.scan.engine import ChunkResult, scan_chunk
from mmguard.tools.scan.processes import crashed
from mmguard.tools.scan.record import MapItem
from mmguard.tools.scan.settings import MapSettings

_AHEAD = 4


class DaskCluster:
    """Runs chunks on the workers of a cluster, which see the files under the same paths: of a shared disk, or URLs.

    A worker that dies costs the chunks it had in work, which run again elsewhere. A file that kills one worker after
    the other is reported as such.

    Args:
        address (str): Of the scheduler, ``'tcp://10.0.0.1:8786'``.

    Raises:
        CannotRun: dask.distributed is not installed.
        OSError: No scheduler answers.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise CannotRun("--dask needs dask.distributed: pip install 'mmguard[dask]'") from error
        self._client = Client(address, set_as_default=False, timeout='20s')

    def __call__(self, chunks: Iterable[List[MapItem]], settings: MapSettings) -> Iterator[ChunkResult]:
        from distributed import as_completed

        source = iter(chunks)
        waiting: Dict[Any, List[MapItem]] = {}
        done = as_completed(loop=self._client.loop)
        for chunk in source:
            self._submit(chunk, settings, waiting, done)
            if len(waiting) >= self._most():
                break
        # ``done`` takes further futures while it is gone through.
        for future in done:
            chunk = waiting.pop(future.key)
            if future.status == 'finished':
                result = future.result()
                future.release()
                following = next(source, None)
                if following is not None:
                    self._submit(following, settings, waiting, done)
                yield result
                continue
            error = future.exception()
            if type(error).__name__ != 'KilledWorker':
                raise error
            if len(chunk) == 1:
                yield crashed(chunk[0], settings)
            for item in chunk if len(chunk) > 1 else ():
                self._submit([item], settings, waiting, done)

    def _most(self) -> int:
        return _AHEAD * max(1, sum(self._client.nthreads().values()))

    def _submit(
        self, chunk: List[MapItem], settings: MapSettings, waiting: Dict[Any, List[MapItem]], done: Any
    ) -> None:
        # Not pure: the same file may have changed since an earlier scan on this cluster.
        future = self._client.submit(scan_chunk, chunk, settings, pure=False)
        waiting[future.key] = chunk
        done.add(future)

    def close(self) -> None:
        self._client.close()
