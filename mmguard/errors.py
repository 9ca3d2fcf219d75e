"""Failures of commands and rules; for invalid labels see :class:`mmguard.labels.tally.LabelGuardError`."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import Dict, Iterator, List


class CannotRun(Exception):
    """Exception of a command that cannot run; its text names the file and the value, and says what to do."""


_collected: List[Dict[str, str]] = []


@contextmanager
def collect_failures() -> Iterator[Dict[str, str]]:
    """Collect the rules that fail inside the context as {code: reason}; the command continues without these rules."""
    failures: Dict[str, str] = {}
    _collected.append(failures)
    try:
        yield failures
    finally:
        _collected.pop()


def report_failure(code: str, reason: str) -> None:
    """Add a rule's failure to the innermost :func:`collect_failures`, or warn if no such context is active."""
    if _collected:
        _collected[-1].setdefault(code, reason)
    else:
        warnings.warn(f'mmguard: {reason}', RuntimeWarning, stacklevel=2)
