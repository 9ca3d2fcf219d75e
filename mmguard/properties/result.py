"""Results of properties, as data."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Mapping, NamedTuple, Sequence

#: What a property can say of a program, the worst first.
OUTCOMES = BROKEN, SETTING, HOLDS, NOT_TESTED = ('broken', 'setting', 'holds', 'not tested')


class Unavailable(Exception):
    """Reason why a property cannot be tested."""


class Result(NamedTuple):
    """Outcome of a property for one part of a program.

    Attributes:
        outcome (str): One of ``OUTCOMES``.
        subject (str): The part: a head, a loss, a step of the pipeline, a metric.
        evidence (str): One sentence: what was seen, or why nothing could be.
        data (dict): The same for programs.
    """

    outcome: str
    subject: str = ''
    evidence: str = ''
    data: Mapping[str, Any] = MappingProxyType({})

    def __str__(self) -> str:
        return f'{self.subject}: {self.evidence}' if self.subject and self.evidence else self.subject or self.evidence


def worst(results: Sequence[Result]) -> str:
    """Return the outcome of a property from those of the parts."""
    return next((outcome for outcome in OUTCOMES if any(one.outcome == outcome for one in results)), NOT_TESTED)


def broken(subject: str, evidence: str, **data: Any) -> Result:
    """Return the result of a part that does not keep a property."""
    return Result(BROKEN, subject, evidence, data)


def setting(subject: str, evidence: str, **data: Any) -> Result:
    """Return the result of a choice with a consequence."""
    return Result(SETTING, subject, evidence, data)


def holds(subject: str, evidence: str = '', **data: Any) -> Result:
    """Return the result of a part that keeps a property."""
    return Result(HOLDS, subject, evidence, data)


def not_tested(subject: str, reason: str) -> Result:
    """Return the result of a part that cannot be asked."""
    return Result(NOT_TESTED, subject, reason)
