"""What is found: one mistake, with what it rests on and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, Tuple

from mmguard.text.words import counted, short

if TYPE_CHECKING:
    from mmguard.findings.edits import Edit

#: ``'error'``: training dies, or learns what nobody wants. ``'warning'``: probably not what you want. ``'info'``: a
#: weak spot that only invalid labels bring out, or the verdict that all is well. The worst first.
SEVERITIES = ERROR, WARNING, INFO = ('error', 'warning', 'info')
#: How sure it is that a finding is what goes wrong in training. ``'proven'``: config or labels show it. ``'likely'``:
#: they speak for it more than for anything else. ``'possible'``: they do not exclude it. The surest first.
CERTAINTIES = PROVEN, LIKELY, POSSIBLE = ('proven', 'likely', 'possible')

#: Longest value that is shown in full.
_SHOWN = 60


@dataclass(frozen=True)
class Finding:
    """One finding of one rule.

    Args:
        code (str): Stable code of the rule, ``MG101``.
        title (str): What is (probably) wrong, one line.
        evidence (str): What it rests on: values and counts, or a place of the config and what stands there.
        advice (str): What to do where no edit is offered, or the answer to all questions of the edits is no.
        certainty (str): One of ``CERTAINTIES``.
        severity (str): One of ``SEVERITIES``.
        files (tuple[str]): The first files that show it.
        values (dict[int, int]): The values that show it -> count.
        places (tuple[str]): Where in the config it stands, ``model.decode_head.loss_decode[0].class_weight``.
        supersedes (tuple[str]): Codes of what merely follows from it. After it they are not reported, unless it is
            only possible.
        value: What stands at these places, or what the class takes where nothing does.
        candidates (tuple[Edit]): What may be written instead, as the rule sees it.
        edits (tuple[Edit]): Those that were tried: with any of them the finding is gone and no other error comes.
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
    supersedes: Tuple[str, ...] = field(default=(), compare=False)
    value: Any = field(default=None, compare=False)
    candidates: Tuple[Edit, ...] = field(default=(), compare=False)
    edits: Tuple[Edit, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f'{self.code} {self.title} Seen: {self.evidence}. {self.next_step}'

    @property
    def next_step(self) -> str:
        """The first edit in one line, or the advice if there is no edit."""
        if not self.edits:
            return self.advice
        edit = self.edits[0]
        if_not = f'If not: {edit.if_not}' if edit.if_not else ''
        return ' '.join(filter(None, (edit.question, edit.title, '; '.join(edit.steps), if_not)))


def shown(value: Any) -> str:
    """A value in a line; long lists by their length and ends."""
    try:
        text = short(value, _SHOWN + 1)
    except Exception:  # an object of the user's, which cannot say what it is
        return f'what cannot be shown ({type(value).__name__})'
    if isinstance(value, (list, tuple)) and len(text) > _SHOWN:
        first, last = value[0], value[-1]
        return f'[{short(first)}, ..., {short(last)}] ({counted(len(value), "entry")})'
    return text if len(text) <= _SHOWN else f'{text[: _SHOWN - 3]}...'


def plain(value: Any) -> Any:
    """A value as JSON knows it."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
