"""Facts about config and labels that confirm or refute a cause, from `check` and `scan`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import replace
from typing import List, Optional, Tuple

from mmguard.errors import CannotRun
from mmguard.findings.finding import INFO, SEVERITIES, Finding
from mmguard.findings.order import sort_key
from mmguard.findings.signatures.signature import lineage
from mmguard.formats.options import ScanOptions
from mmguard.labels.numbering import FRAMEWORKS, IDS
from mmguard.text import describe_error
from mmguard.tools.explain.explained import Explanation, Known

#: Finding that a config is of a generation whose keys no other rule reads.
_OLD_CONFIG = 'MG227'
#: Finding that ids may be labels, for an unknown framework.
_PERHAPS_IDS = 'MG138'


def look(
    config: Optional[str], data: Optional[str], options: ScanOptions, found: Optional[Explanation] = None
) -> Tuple[Known, List[str]]:
    """Return the findings of `check` for a config, those of `scan` for ``data`` or its labels, and failures.

    An index out of range in the error decides if ids are labels. An error is explained even without findings.
    """
    findings: List[Finding] = []
    problems: List[str] = []
    checked = scanned = False
    with redirect_stdout(sys.stderr):  # configs and frameworks print
        if config is not None:
            try:
                findings += _check(config, options.run_code)
                checked = True
            except CannotRun as error:
                problems.append(str(error))
            except Exception as error:  # a config is code, and may raise anything
                problems.append(f'{config} cannot be read: {describe_error(error)}')
        target = data or (config if checked else None)
        if target is not None:
            try:
                seen, failed, decides = _scan_for(target, options, found)
                findings += seen
                problems += failed
                scanned = decides and not failed
            except CannotRun as error:
                problems.append(str(error))
            except Exception as error:
                problems.append(f'the labels of {target} cannot be read: {describe_error(error)}')
    # The error does not give the number of classes: ids as labels are not an error of the file, but may be the cause.
    reported = [finding for finding in findings if finding.severity != INFO or finding.code == _PERHAPS_IDS]
    unique = {(finding.code, finding.title): finding for finding in reported}
    ranked = sorted(unique.values(), key=lambda finding: (SEVERITIES.index(finding.severity), sort_key(finding)))
    is_read = checked and all(finding.code != _OLD_CONFIG for finding in ranked)
    return Known(tuple(ranked), is_read, scanned, options.num_classes), problems


def _check(config: str, run_code: bool) -> List[Finding]:
    import mmengine  # noqa: F401  if it is missing, that is reported

    from mmguard.config.read import read_config
    from mmguard.findings.engine import diagnose

    return diagnose(config=read_config(config, run_code))


_Seen = Tuple[List[Finding], List[str], bool]


def _scan_for(target: str, options: ScanOptions, found: Optional[Explanation]) -> _Seen:
    """Return the result of `scan`, with the framework and the labels shown in the error."""
    if not target.endswith('.json') or found is None or found.signature is None:
        return _scan(target, options)
    if options.framework is None:
        known = (name for name in lineage(found.framework) if name in FRAMEWORKS)
        options = replace(options, framework=next(known, None))
    findings, failed, decides = _scan(target, options)
    unknown = any(finding.code == _PERHAPS_IDS and finding.severity == INFO for finding in findings)
    if unknown and any(_PERHAPS_IDS in cause.codes for cause in found.signature.causes):
        return _scan(target, replace(options, labels=IDS))
    return findings, failed, decides


def _scan(target: str, options: ScanOptions) -> _Seen:
    """Return findings, failures, and True if the valid labels are known."""
    from mmguard.scanning.plans import plan_of
    from mmguard.scanning.processes import local_mapper
    from mmguard.scanning.run import run_plan

    plan = plan_of(target, options)
    results = run_plan(plan, local_mapper())
    facts = [result.facts for result in results]
    is_known = all(one.num_classes < 256 or one.class_names for one in facts)
    return [finding for result in results for finding in result.findings], list(plan.failed), is_known
