"""Findings about a config as text and as JSON."""

from __future__ import annotations

from typing import Any, Dict, List

from mmguard.config.read import ReadConfig
from mmguard.findings.finding import SEVERITIES, Finding
from mmguard.findings.wording import apply_hint, findings_text, unpack
from mmguard.text.words import counted
from mmguard.version import __version__


def as_text(config: ReadConfig, findings: List[Finding], rules: int, verbose: bool = False) -> str:
    """The findings, each with its places, its value and what to write; the sum at the end."""
    parts = [findings_text(findings, verbose=verbose)] if findings else []
    parts += [f'note: {note}' for note in config.notes]
    hint = apply_hint(config.file, findings)
    parts += [hint] if hint else []
    numbers = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
    total = ', '.join(counted(number, severity) for severity, number in numbers.items() if number)
    clean = f'nothing found by {counted(rules, "rule")}. Labels not read: `mmguard scan {config.file}`'
    parts.append(f'{config.file}: {total or clean}')
    return '\n\n'.join(parts)


def as_json(config: ReadConfig, findings: List[Finding], codes: List[str]) -> Dict[str, Any]:
    """The same for programs."""
    return {
        'mmguard': __version__,
        'config': config.file,
        'framework': config.scope,
        'rules': codes,
        'notes': config.notes,
        'findings': [unpack(finding) for finding in findings],
    }
