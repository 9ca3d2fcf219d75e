"""Results of properties, as data."""

from __future__ import annotations

from functools import partial
from typing import Any, Mapping, NamedTuple

#: Outcomes of a property, the worst first.
OUTCOMES = ('broken', 'setting', 'holds', 'not tested')


class Unavailable(Exception):
    """Reason why a property cannot be tested."""


class NoSamples(Unavailable):
    """A data set without samples."""


def reports_no_samples(error: BaseException) -> bool:
    """Return True if an error reports an empty data set: ours, or that of MMEngine's ``BaseDataset``."""
    return isinstance(error, NoSamples) or 'need at least one array to concatenate' in str(error)


class Result(NamedTuple):
    """Outcome of a property for one part of a program.

    Attributes:
        outcome (str): One of ``OUTCOMES``.
        subject (str): The part: a head, a loss, a step of the pipeline, a metric.
        evidence (str): One sentence: the observation, or the reason why none was possible.
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


broken, setting, holds, not_tested = (partial(Result, outcome) for outcome in OUTCOMES)
