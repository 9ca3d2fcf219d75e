"""Results of tested properties, as plain data."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import Any, Mapping, NamedTuple

#: Outcomes of a property, the worst first. ``'note'``: a remark, or the reason why there was nothing to test.
OUTCOMES = ('broken', 'not run', 'ran', 'note')
_NO_FILE = re.compile(r"No such file or directory: '(.+?)'|(?:file|File) (\S+) (?:does not exist|is not found)")


class Unavailable(Exception):
    """Error with the reason why a property that applies cannot be tested."""


class DoesNotApply(Unavailable):
    """Error with the reason why there is nothing to test in this program."""


class NoSamples(Unavailable):
    """Error about a data set without samples."""


def reports_no_samples(error: BaseException) -> bool:
    """Return True if an error reports an empty data set: ``NoSamples``, or the error of MMEngine's ``BaseDataset``."""
    return isinstance(error, NoSamples) or 'need at least one array to concatenate' in str(error)


def describe_missing(error: BaseException) -> str:
    """Describe the file, package, host or part that is missing according to an error; '' for other errors."""
    if isinstance(error, FileNotFoundError):
        found = _NO_FILE.search(str(error))
        path = str(error.filename or (found and (found[1] or found[2])) or error)
        return f'data not found: {path}' + ('' if os.path.isabs(path) else ' (wrong directory?)')
    if isinstance(error, ImportError):
        return f'a package is missing: {error}'
    return str(error) if isinstance(error, (ConnectionError, PermissionError, Unavailable)) else ''


class Result(NamedTuple):
    """Outcome of a property for one part of a program.

    Attributes:
        outcome (str): One of ``OUTCOMES``.
        subject (str): Name of the part, such as a head, a loss, a step of the pipeline or a metric.
        evidence (str): One sentence that says what was run, what was observed, or why nothing was run.
        data (dict): The evidence as plain data.
    """

    outcome: str
    subject: str = ''
    evidence: str = ''
    data: Mapping[str, Any] = {}

    def rank(self) -> int:
        """Return the rank of the outcome, 0 for the worst."""
        return OUTCOMES.index(self.outcome)

    def __str__(self) -> str:
        return f'{self.subject}: {self.evidence}' if self.subject and self.evidence else self.subject or self.evidence


broken, not_run, ran, note = (partial(Result, outcome) for outcome in OUTCOMES)


def mark_untested(subject: str, reason: str) -> Result:
    """Return a note with the reason why a part is not tested."""
    return note(subject, f'not tested: {reason}', dict(tested=False))
