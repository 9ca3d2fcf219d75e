"""The progress bar: how far, how fast, how long."""

from __future__ import annotations

import sys
import time
from typing import Any

from mmguard.tools.scan.names import printable
from mmguard.tools.scan.nnunet.source import CaseSource
from mmguard.tools.scan.sources.base import MapSource

_SECONDS = 0.2


class ScanProgress:
    """A bar on the terminal; nothing if standard error is not one.

    It draws itself when files are done, not in a thread: processes are forked while it is shown.
    """

    def __init__(self) -> None:
        self._bar = _bar() if sys.stderr.isatty() else None
        self._task: Any = None
        self._drawn = 0.0
        self._begun = 0.0
        self._done = 0

    def __enter__(self) -> ScanProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def start(self, source: Any) -> None:
        """Begins with a source."""
        if self._bar is None:
            return
        total = source.count() if isinstance(source, (MapSource, CaseSource)) else None
        self._task = self._bar.add_task(printable(source.name), total=total, rate='')
        self._begun, self._done = time.monotonic(), 0
        self._bar.refresh()

    def advance(self, files: int) -> None:
        if self._bar is None or self._task is None:
            return
        self._done += files
        now = time.monotonic()
        rate = f'{self._done / max(now - self._begun, 1e-6):,.0f} files/s'
        self._bar.update(self._task, advance=files, rate=rate)
        if now - self._drawn > _SECONDS:
            self._drawn = now
            self._bar.refresh()


def _bar() -> Any:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from mmguard.text.console import Console

    return Progress(
        TextColumn('{task.description}', markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn('{task.fields[rate]}', markup=False),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
    )
