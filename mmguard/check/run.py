"""Holds a config against the rules."""

from __future__ import annotations

from typing import List, Sequence, Type

from mmguard.check.config import ReadConfig
from mmguard.check.finding import SEVERITIES, ConfigFinding
from mmguard.check.rule import Rule
from mmguard.check.rules import RULES


def chosen_rules(select: Sequence[str] = (), ignore: Sequence[str] = (), everything: bool = False) -> List[Type[Rule]]:
    """The rules to look for.

    Args:
        select (list[str]): Codes, or beginnings of codes (``MG21``); empty: those that are not on request alone.
        ignore (list[str]): Codes, or beginnings of codes, to leave out.
        everything (bool): Also the rules that are looked for on request alone.

    Raises:
        ValueError: A code that no rule has.
    """
    unknown = [code for code in (*select, *ignore) if not any(rule.code.startswith(code) for rule in RULES)]
    if unknown:
        raise ValueError(f'no rule has the code {", ".join(unknown)}; there are {", ".join(r.code for r in RULES)}')
    chosen = []
    for rule in RULES:
        wanted = rule.code.startswith(tuple(select)) if select else everything or not rule.on_request
        if wanted and not (ignore and rule.code.startswith(tuple(ignore))):
            chosen.append(rule)
    return chosen


def check_config(config: ReadConfig, rules: Sequence[Type[Rule]]) -> List[ConfigFinding]:
    """What the rules find: errors first, causes before what follows from them."""
    found = [finding for rule in rules for finding in rule().find(config)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
