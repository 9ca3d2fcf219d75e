"""What a rule says about one place of a config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict

from mmguard.words import counted

ERROR, WARNING, INFO = 'error', 'warning', 'info'
#: The worst first.
SEVERITIES = (ERROR, WARNING, INFO)

#: Longest value that is shown in full.
_SHOWN = 60


@dataclass(frozen=True)
class ConfigFinding:
    """One finding.

    Args:
        code (str): Stable code of the rule, ``MG201``.
        severity (str): ``'error'`` (the run dies, or trains what nobody wants), ``'warning'`` (probably not what you
            want) or ``'info'`` (a weak spot that only invalid labels bring out).
        path (str): Place in the config, ``model.decode_head.loss_decode[0].class_weight``.
        value: What stands there, or what the class takes where nothing does.
        message (str): What is wrong with it.
        advice (str): What to write.
    """

    code: str
    severity: str
    path: str
    value: Any
    message: str
    advice: str

    def __str__(self) -> str:
        return f'{self.severity} {self.code} {self.path} = {shown(self.value)}\n  {self.message}\n  {self.advice}'

    def to_json(self) -> Dict[str, Any]:
        return {
            'code': self.code,
            'severity': self.severity,
            'path': self.path,
            'value': plain(self.value),
            'message': self.message,
            'advice': self.advice,
        }


def shown(value: Any) -> str:
    """A value in a line; long lists by their length and ends."""
    if isinstance(value, (list, tuple)) and len(repr(value)) > _SHOWN:
        first, last = value[0], value[-1]
        return f'[{first!r}, ..., {last!r}] ({counted(len(value), "entry")})'
    text = repr(value)
    return text if len(text) <= _SHOWN else f'{text[: _SHOWN - 3]}...'


def plain(value: Any) -> Any:
    """A value as JSON knows it."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
