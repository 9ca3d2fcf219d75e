"""Findings as text and as JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Tuple

from mmguard.check.config import ReadConfig
from mmguard.check.finding import SEVERITIES, ConfigFinding
from mmguard.version import __version__
from mmguard.words import counted


def as_text(config: ReadConfig, findings: List[ConfigFinding], rules: int) -> str:
    """The findings, each with its place, its value and what to write; the sum at the end."""
    parts = [str(finding) for finding in together(findings)]
    parts += [f'note: {note}' for note in config.notes]
    numbers = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
    total = ', '.join(counted(number, severity) for severity, number in numbers.items() if number)
    parts.append(f'{config.file}: {total or "nothing found by " + counted(rules, "rule")}')
    return '\n\n'.join(parts)


def together(findings: List[ConfigFinding]) -> List[ConfigFinding]:
    """What is said about val is mostly said about test, too: one finding, both places."""
    merged: Dict[Tuple[str, ...], ConfigFinding] = {}
    for finding in findings:
        key = (finding.code, finding.severity, repr(finding.value), finding.message, finding.advice)
        first = merged.get(key)
        merged[key] = replace(first, path=f'{first.path} and {finding.path}') if first else finding
    return list(merged.values())


def as_json(config: ReadConfig, findings: List[ConfigFinding], codes: List[str]) -> Dict[str, Any]:
    """The same for programs."""
    return {
        'mmguard': __version__,
        'config': config.file,
        'framework': config.scope,
        'rules': codes,
        'notes': config.notes,
        'findings': [finding.to_json() for finding in findings],
    }
