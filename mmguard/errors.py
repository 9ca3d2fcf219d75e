"""Failures of commands, and of rules in them; for invalid labels see :class:`mmguard.labels.tally.LabelGuardError`."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import Dict, Iterator, List


class CannotRun(Exception):
    """Reason why a command cannot run, as text for the user: file, value, advice."""


_collected: List[Dict[str, str]] = []


@contextmanager
def collect_failures() -> Iterator[Dict[str, str]]:
    """Collect rules that fail inside the context, without stopping the command: code -> reason."""
    failures: Dict[str, str] = {}
    _collected.append(failures)
    try:
        yield failures
    finally:
        _collected.pop()


def report_failure(code: str, reason: str) -> None:
    """Add a failure to the innermost collection; outside of a command, as in a training, warn."""
    if _collected:
        _collected[-1].setdefault(code, reason)
    else:
        warnings.warn(f'mmguard: {reason}', RuntimeWarning, stacklevel=2)
