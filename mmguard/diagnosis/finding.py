"""What a finding is, and how the most likely one comes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, List, Optional, Sequence, Tuple, Type

from mmguard.diagnosis.facts import LabelFacts


@dataclass(frozen=True)
class Finding:
    """One likely cause.

    Args:
        code (str): Stable code, ``MG101``.
        cause (str): What is probably wrong, one line.
        evidence (str): The values and counts it rests on.
        advice (str): What to write instead.
        likelihood (float): In (0, 1], to rank findings.
    """

    code: str
    cause: str
    evidence: str
    advice: str
    likelihood: float

    def __str__(self) -> str:
        return f'{self.code} {self.cause} Seen: {self.evidence}. {self.advice}'


class Cause:
    """One kind of mistake. A subclass states it in words and weighs the facts."""

    #: The kinds of labels that can show it.
    kinds: ClassVar[Tuple[str, ...]] = ('pixels',)
    code: ClassVar[str]
    summary: ClassVar[str]
    advice: ClassVar[str]

    def likelihood(self, facts: LabelFacts) -> float:
        """How well the facts fit, 0 (not at all) to 1."""
        raise TypeError(f'{type(self).__name__} does not weigh the facts')

    def find(self, facts: LabelFacts) -> Optional[Finding]:
        shown = facts.kind in self.kinds and (facts.values or facts.reasons)
        likelihood = self.likelihood(facts) if shown else 0.0
        if likelihood <= 0:
            return None
        words = {
            'num_classes': facts.num_classes,
            'last': facts.num_classes - 1,
            'ignore_index': facts.ignore_index,
            'values': ', '.join(map(str, sorted(facts.values)[:8])),
            'classes': len(facts.class_names),
            'extra': ', '.join(facts.class_names[facts.num_classes :][:8]),
        }
        return Finding(self.code, self.summary.format(**words), facts.evidence, self.advice.format(**words), likelihood)


def diagnose(facts: LabelFacts, causes: Sequence[Type[Cause]]) -> List[Finding]:
    """All findings that the facts support, the most likely first."""
    found = [cause().find(facts) for cause in causes]
    return sorted((f for f in found if f is not None), key=lambda f: (-f.likelihood, f.code))
