"""Rules from entry points of installed packages and of plugins in mmguard's own folder."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import lru_cache
from string import Formatter
from typing import Any, Iterator, List, Optional, Sequence, Set, Tuple, Type

from mmguard.entry_points import find_entry_points
from mmguard.errors import CannotRun, report_failure
from mmguard.findings.finding import CERTAINTIES, SEVERITIES, Finding
from mmguard.findings.rule import Example, Facts, Rule
from mmguard.findings.rules import RULES
from mmguard.text import describe_error, shorten

#: Group of entry points of rules. The name of an entry point is the code, its object a subclass of
#: :class:`mmguard.findings.rule.Rule`.
GROUP = 'mmguard.rules'

#: Code of a rule of another package; ``MG`` is reserved for rules of mmguard.
_CODE = re.compile(r'(?!MG)[A-Z]{2,8}[0-9]{1,5}')
_TEXTS = ('summary', 'title', 'why', 'limits', 'advice')
_MAY_BE_EMPTY = ('title', 'limits')


class RefusedRule(Rule):
    """Placeholder for a package's rule that cannot be used. If its code is selected, the reason is reported."""

    looks_at = Facts._fields

    def find(self, facts: Facts) -> Iterator[Finding]:
        raise CannotRun(self.summary)


@lru_cache(maxsize=None)
def find_installed_rules() -> Tuple[Type[Rule], ...]:
    """Return the rules of packages and plugins; a package's rule that cannot be used becomes a :class:`RefusedRule`."""
    rules: List[Type[Rule]] = []
    for point in find_entry_points(GROUP):
        code = point.name
        if not point.package:
            rules.append(point.load())
            continue
        taken = next((rule.package for rule in rules if rule.code == code), '')
        try:
            if not _CODE.fullmatch(code):
                raise CannotRun(
                    f"{code} is not a code: expected 2 to 8 capital letters (not MG, which is mmguard's) and 1 to 5 "
                    'digits'
                )
            if taken:
                raise CannotRun(f'the code is taken by {taken}')
            rule = point.load()
            objection = _find_objection(rule, code)
            if objection:
                raise CannotRun(objection)
            rule.package = point.package
        except (Exception, SystemExit) as error:  # a class may raise when its attributes are read
            cause = error.__cause__ or error
            why = str(cause) if isinstance(cause, CannotRun) else describe_error(cause)
            own = code if _CODE.fullmatch(code) and not taken else f'{point.package.partition(" ")[0]}:{code}'.upper()
            texts = dict(
                code=own, package=point.package, summary=f'Rule {code} of {point.package} cannot be used: {why}'
            )
            rule = type('RefusedRule', (RefusedRule,), texts)
        rules.append(rule)
    return tuple(rules)


def list_rules() -> List[Type[Rule]]:
    """Return all rules: those of mmguard, then those of packages and plugins."""
    return [*RULES, *find_installed_rules()]


def list_own_rules() -> List[Type[Rule]]:
    """Return the rules of mmguard and of the plugins in its folder, by code."""
    return sorted((rule for rule in list_rules() if not rule.package), key=lambda rule: rule.code)


def _find_objection(rule: Any, code: str) -> str:
    """Return the reason why a loaded object cannot be used as a rule, or ``''`` if it can be used."""
    if not (isinstance(rule, type) and issubclass(rule, Rule)):
        return f'{shorten(rule)} is not a subclass of mmguard.findings.Rule'
    if getattr(rule, 'code', None) != code or rule.aliases:
        return f'its code must be the name of the entry point, {code}, and its aliases must be empty'
    for name in _TEXTS:
        text = getattr(rule, name, None)
        if not isinstance(text, str) or not (text or name in _MAY_BE_EMPTY):
            return f'its {name} must be a string, got {shorten(text)}'
        list(Formatter().parse(text))
    if not isinstance(getattr(rule, 'example', None), Example) or rule.severity not in SEVERITIES:
        return f'the rule needs an Example, and a severity that is one of {", ".join(SEVERITIES)}'
    unknown = set(rule.looks_at) - set(Facts._fields)
    return f'looks_at must name facts, unknown: {", ".join(sorted(unknown))}' if unknown or not rule.looks_at else ''


@contextmanager
def contain_failure(rule: Type[Rule], failed: Optional[Set[str]] = None) -> Iterator[None]:
    """Report an exception of another package's rule instead of raising it, and add the rule's code to ``failed``."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if not rule.package:
            raise
        if failed is not None:
            failed.add(rule.code)
        raised = f'Rule {rule.code} of {rule.package} cannot be used: it raises {describe_error(error)}'
        report_failure(rule.code, rule.summary if issubclass(rule, RefusedRule) else raised)


def check_findings(rule: Type[Rule], findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings of a rule; raise ``TypeError`` if another package's rule returns malformed findings."""
    for found in findings if rule.package else ():
        is_whole = (
            isinstance(found, Finding)
            and (found.code, found.severity in SEVERITIES, found.certainty in CERTAINTIES) == (rule.code, True, True)
            and all(isinstance(text, str) for text in (found.title, found.evidence, found.advice))
            and all(isinstance(name, str) for name in (*found.files, *found.places, *found.follows))
        )
        if not is_whole:
            raise TypeError(f'expected findings of {rule.code}, got {shorten(found)}')
    return findings
