"""Findings: each describes one mistake, with its evidence and corrections."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Tuple

from mmguard.findings.edits import Edit
from mmguard.language import Message, as_message, join

#: ``'error'``: training crashes, or learns something wrong. ``'warning'``: the setting is probably unintended.
#: ``'info'``: it matters only for invalid labels, or is the verdict that labels are fine. The worst first.
SEVERITIES = ERROR, WARNING, INFO = ('error', 'warning', 'info')
#: Certainty that a finding affects training: ``'proven'`` (shown by the config or labels), ``'likely'`` (their best
#: explanation) or ``'possible'`` (not excluded by them). The most certain first.
CERTAINTIES = PROVEN, LIKELY, POSSIBLE = ('proven', 'likely', 'possible')


@dataclass(frozen=True)
class Finding:
    """One mistake found by a rule: title, evidence, advice, and the edits that correct it.

    Args:
        code (str): Stable code of the rule, such as ``MG101``.
        title (str): Description of the mistake, one line.
        evidence (str): Values and counts, or a config path and its value.
        advice (str): Advice if no edit is offered, or if all questions of the edits are answered "no".
        certainty (str): One of ``CERTAINTIES``.
        severity (str): One of ``SEVERITIES``.
        files (tuple[str]): First files with the mistake.
        values (dict[int, int]): Value that shows the mistake -> count.
        places (tuple[str]): Config paths of the mistake, such as ``model.decode_head.num_classes``.
        follows (tuple[str]): Codes of findings that may be consequences of this finding, see :meth:`explains`.
        before (str): Code of an equally certain finding that is shown after this one; if empty, ``code`` decides.
        is_verdict (bool): True if the finding says that the labels are fine.
        value: The value at ``places``, or the default of the class.
        candidates (tuple[Edit]): Corrections proposed by the rule.
        edits (tuple[Edit]): Corrections that were tried: each removes the finding and causes no new error.
    """

    code: str
    title: str
    evidence: str
    advice: str
    certainty: str
    severity: str = ERROR
    files: Tuple[str, ...] = ()
    values: Dict[int, int] = field(default_factory=dict, compare=False)
    places: Tuple[str, ...] = ()
    follows: Tuple[str, ...] = field(default=(), compare=False)
    before: str = field(default='', compare=False)
    is_verdict: bool = field(default=False, compare=False)
    value: Any = field(default=None, compare=False)
    candidates: Tuple[Edit, ...] = field(default=(), compare=False)
    edits: Tuple[Edit, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f'{self.code} {self.title} Seen: {self.evidence}. {self.next_step}'

    def explains(self, other: Finding) -> bool:
        """Return True if another finding is only a consequence of this finding, and needs no separate correction.

        A finding of certainty ``POSSIBLE`` does not explain other findings. A finding with values explains only
        findings whose values are all among its own.
        """
        same = not self.values or set(other.values) <= set(self.values)
        return other.code in self.follows and self.certainty != POSSIBLE and same

    @property
    def next_step(self) -> str:
        """First edit on one line, or the advice if no edit is offered."""
        if not self.edits:
            return self.advice
        edit = self.edits[0]
        if_not = Message('If not: {if_not}', if_not=as_message(edit.if_not)) if edit.if_not else ''
        texts = (edit.question, edit.title, '; '.join(edit.steps), if_not)
        return join(' ', map(as_message, filter(None, texts)))
