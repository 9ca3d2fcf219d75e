"""What a verdict is, and how versions compare."""

from __future__ import annotations

import re
from typing import Any, Dict, NamedTuple, Tuple

OK, WARNING, ERROR = 'ok', 'warning', 'error'


class Verdict(NamedTuple):
    """One line of ``mmguard env``.

    Attributes:
        name (str): What it is about.
        found (str): What was found.
        level (str): ``'ok'``, ``'warning'`` or ``'error'``.
        advice (str): What is wrong, and what to do; empty where nothing is.
    """

    name: str
    found: str
    level: str = OK
    advice: str = ''

    def to_json(self) -> Dict[str, str]:
        return dict(self._asdict())


def version_key(text: str) -> Tuple[Any, ...]:
    """A version that compares: ``2.0.0rc4`` before ``2.0.0``, ``+cu118`` and the like left out.

    Example:
        >>> version_key('2.0.0rc4') < version_key('2.0.0') < version_key('2.13.0+cpu')
        True
    """
    found = re.match(r'(\d+(?:\.\d+)*)(?:\.?(a|b|rc|dev)(\d*))?', text)
    if found is None:
        return ((0, 0, 0, 0), 0, 0)
    numbers = tuple(int(part) for part in found.group(1).split('.'))
    stage = {'dev': -4, 'a': -3, 'b': -2, 'rc': -1, None: 0}[found.group(2)]
    return ((*numbers, 0, 0, 0, 0)[:4], stage, int(found.group(3) or 0))
