"""Looks at config and labels for what would confirm or refute a cause: the same as `check` and `scan`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import List, Optional, Tuple

from mmguard.failures import words_of
from mmguard.findings.finding import INFO, Finding
from mmguard.tools.explain.explained import Known
from mmguard.tools.scan.options import ScanOptions


def look(config: Optional[str], data: Optional[str], options: ScanOptions) -> Tuple[Known, List[str]]:
    """What `check` finds in a config, and `scan` in the labels of a config or of what ``data`` names.

    Returns:
        tuple: The findings, and in words what could not be looked at: an error is explained without, too.
    """
    findings: List[Finding] = []
    problems: List[str] = []
    checked = scanned = False
    with redirect_stdout(sys.stderr):  # configs and frameworks print
        if config is not None:
            try:
                findings += _checked(config)
                checked = True
            except Exception as error:  # a config is code, and may raise anything
                problems.append(f'{config} cannot be read: {words_of(error)}')
        target = data or (config if checked else None)
        if target is not None:
            try:
                found, failed = _scanned(target, options)
                findings += found
                problems += failed
                scanned = not failed
            except Exception as error:
                problems.append(f'the labels of {target} cannot be read: {words_of(error)}')
    unique = {(finding.code, finding.cause): finding for finding in findings if finding.severity != INFO}
    ranked = sorted(unique.values(), key=lambda finding: -finding.likelihood)
    return Known(tuple(ranked), checked, scanned), problems


def _checked(config: str) -> List[Finding]:
    import mmengine  # noqa: F401  where it is missing, that is what is said

    from mmguard.config.read import read_config
    from mmguard.findings.engine import diagnose

    return diagnose(config=read_config(config))


def _scanned(target: str, options: ScanOptions) -> Tuple[List[Finding], List[str]]:
    from mmguard.tools.scan.engine import scan_here
    from mmguard.tools.scan.processes import LocalProcesses, cores
    from mmguard.tools.scan.run import run_plan
    from mmguard.tools.scan.target import plan_of

    plan = plan_of(target, options)
    results = run_plan(plan, scan_here if cores() == 1 else LocalProcesses(cores()))
    return [finding for result in results for finding in result.findings], list(plan.failed)
