"""What a finding is, and how the most likely one comes first."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Type

from mmguard.diagnosis.facts import LabelFacts

SEVERITIES = ('error', 'warning', 'info')

#: Files that a finding names; the scan's report lists them all.
NAMED = 5

#: From here on a finding explains those that follow from it.
CERTAIN = 0.5


@dataclass(frozen=True)
class Finding:
    """One likely cause.

    Args:
        code (str): Stable code, ``MG101``.
        cause (str): What is probably wrong, one line.
        evidence (str): The values and counts it rests on.
        advice (str): What to write instead; config lines and commands stand in backticks.
        likelihood (float): In (0, 1], to rank findings.
        severity (str): ``'error'`` (training dies or learns something wrong), ``'warning'``, ``'info'``.
        files (tuple[str]): The first files that show it.
        values (dict[int, int]): The values that show it -> count.
    """

    code: str
    cause: str
    evidence: str
    advice: str
    likelihood: float
    severity: str = 'error'
    files: Tuple[str, ...] = ()
    values: Dict[int, int] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f'{self.code} {self.cause} Seen: {self.evidence}. {self.advice}'

    @property
    def lines(self) -> List[str]:
        """The config lines and commands of the advice, as they are to be written."""
        return re.findall(r'`([^`]+)`', self.advice)


class Cause:
    """One kind of mistake. A subclass states it in words and weighs the facts.

    Texts are templates: ``{num_classes}`` is filled in with what :meth:`words` says, so a brace is written twice.
    """

    #: The kinds of labels that can show it.
    kinds: ClassVar[Tuple[str, ...]] = ('pixels',)
    #: The facts without which it cannot be told.
    needs: ClassVar[Tuple[str, ...]] = ('values',)
    severity: ClassVar[str] = 'error'
    #: Whether it speaks against the labels; the others leave the verdict 'your labels are fine' standing.
    blames_labels: ClassVar[bool] = True
    #: Codes of causes that merely follow from this one: where it is likelier, they are not told.
    explains: ClassVar[Tuple[str, ...]] = ()
    code: ClassVar[str]
    summary: ClassVar[str]
    #: What becomes of a training that has it.
    why: ClassVar[str]
    advice: ClassVar[str]

    def likelihood(self, facts: LabelFacts) -> float:
        """How well the facts fit, 0 (not at all) to 1."""
        raise TypeError(f'{type(self).__name__} does not weigh the facts')

    def find(self, facts: LabelFacts) -> Optional[Finding]:
        if facts.kind not in self.kinds or not all(getattr(facts, need) for need in self.needs):
            return None
        likelihood = self.likelihood(facts)
        if likelihood <= 0:
            return None
        words = {**common_words(facts), **self.words(facts)}
        return Finding(
            code=self.code,
            cause=self.summarise(facts).format(**words),
            evidence=self.evidence(facts),
            advice=self.advise(facts).format(**words),
            likelihood=min(likelihood, 1.0),
            severity=self.severity_of(facts),
            files=tuple(self.files(facts)[:NAMED]),
            values=self.values(facts),
        )

    # ---- what a subclass may say differently from case to case

    def explained(self, facts: LabelFacts) -> Sequence[str]:
        return self.explains

    def summarise(self, facts: LabelFacts) -> str:
        return self.summary

    def advise(self, facts: LabelFacts) -> str:
        return self.advice

    def words(self, facts: LabelFacts) -> Dict[str, Any]:
        """More words for the templates."""
        return {}

    def evidence(self, facts: LabelFacts) -> str:
        return facts.evidence

    def severity_of(self, facts: LabelFacts) -> str:
        return self.severity

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return facts.values

    def files(self, facts: LabelFacts) -> List[str]:
        if facts.maps is None:
            return []
        values, examples = self.values(facts), facts.maps.examples
        # Examples are by what the files hold, and that is not always what training sees.
        as_stored = facts.stored if values is facts.values else {}
        named = [path for v in values for stored in as_stored.get(v, [v]) for path in examples.get(stored, [])]
        return list(dict.fromkeys(named))


def common_words(facts: LabelFacts) -> Dict[str, Any]:
    """What every template may name."""
    return {
        'num_classes': facts.num_classes,
        'last': facts.num_classes - 1,
        'more': facts.num_classes + 1,
        'ignore_index': facts.ignore_index,
        # Where nothing is ignored yet, the usual value is the one to write.
        'void': 255 if facts.ignore_index is None else facts.ignore_index,
        'values': ', '.join(map(str, sorted(facts.values)[:8])),
        'classes': len(facts.class_names),
        'extra': ', '.join(facts.class_names[facts.num_classes :][:8]),
    }


def diagnose(facts: LabelFacts, causes: Sequence[Type[Cause]]) -> List[Finding]:
    """All findings that the facts support, the most likely first.

    Where nothing speaks against labels that were all read, the verdict that they are fine comes last (MG100).
    """
    found: List[Finding] = []
    blamed = False
    for cause in (kind() for kind in causes if not issubclass(kind, Verdict)):
        finding = cause.find(facts)
        if finding is not None:
            found.append(finding)
            blamed = blamed or cause.blames_labels
    found.sort(key=lambda f: (-f.likelihood, f.code))
    found = _without_consequences(found, {kind.code: kind().explained(facts) for kind in causes})
    if not blamed:
        verdicts = [kind().find(facts) for kind in causes if issubclass(kind, Verdict)]
        # Behind what was found beside the labels.
        limit = found[-1].likelihood / 2 if found else 1.0
        for verdict in verdicts:
            if verdict is not None:
                found.append(replace(verdict, likelihood=min(verdict.likelihood, limit)))
    return found


def _without_consequences(found: Sequence[Finding], explains: Mapping[str, Sequence[str]]) -> List[Finding]:
    """Leaves out findings that follow from a likelier one: two advices for one fault contradict each other."""
    told: List[Finding] = []
    follow: Set[str] = set()
    for finding in found:
        if finding.code not in follow:
            told.append(finding)
            if finding.likelihood >= CERTAIN:
                follow.update(explains[finding.code])
    return told


class Verdict(Cause):
    """A cause that is looked for only where nothing speaks against the labels."""

    severity = 'info'
    blames_labels = False
