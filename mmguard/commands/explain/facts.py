"""Findings of `check` and `scan` that confirm or refute the causes of an error."""

from __future__ import annotations

import sys
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from typing import Collection, Iterator, List, NamedTuple, Optional, Tuple

from mmguard.commands.explain.explanation import Explanation, OutsideFacts
from mmguard.errors import CannotRun
from mmguard.findings.finding import INFO, SEVERITIES, Finding
from mmguard.findings.order import sort_key
from mmguard.findings.signatures import get_lineage
from mmguard.formats.options import ScanOptions
from mmguard.labels.numbering import FRAMEWORKS, IDS
from mmguard.text import describe_error

#: Code of the finding that a config is for an old version of a framework, whose keys other rules do not read.
_OLD_CONFIG = 'MG227'
#: Code of the finding that category ids may be trained as labels, if the framework is unknown.
_PERHAPS_IDS = 'MG138'
#: Codes of findings about masks, which are read only on request.
_MASKS = frozenset(['MG179', 'MG395', 'MG396', 'MG397', 'MG398'])
#: Code of the finding that few cases have a class.
_RARE_CLASS = 'MG197'
#: Code of the finding that files cannot be read, so that their labels are unknown.
_UNREADABLE = 'MG132'
#: {task of a training: kinds of labels that cannot cause its error}.
_OTHER_KINDS = {'boxes': ('pixels', 'voxels'), 'segmentation': ('instances',)}


def collect_findings(
    config: Optional[str],
    data: Optional[str],
    options: ScanOptions,
    explanation: Optional[Explanation] = None,
    nan_classes: Collection[str] = (),
) -> Tuple[OutsideFacts, List[str]]:
    """Return the findings of `check` for a config and of `scan` for ``data`` (or the config's labels), and failures.

    The explained error determines for which framework a COCO JSON is scanned, and whether category ids are its labels.
    Remarks are dropped, except about ``nan_classes`` (classes without a score in the log) or category ids as labels.
    """
    findings: List[Finding] = []
    problems: List[str] = []
    read = set()
    checked = False

    @contextmanager
    def note_failure(what: str) -> Iterator[None]:
        try:
            yield
        except CannotRun as error:
            problems.append(str(error))
        except Exception as error:  # a config is code, and may raise anything
            problems.append(f'{what} cannot be read: {describe_error(error)}')

    with redirect_stdout(sys.stderr):  # configs and frameworks print
        if config is not None:
            with note_failure(config):
                findings += _check(config, options.run_code)
                checked = True
        target = data or (config if checked else None)
        if target is not None:
            with note_failure(f'the labels of {target}'):
                seen = _scan_for(target, options, explanation)
                findings += seen.findings
                problems += seen.failed
                read |= {'files'} if seen.decides and not seen.failed else set()
    # The error does not give the number of classes: ids as labels are not an error of the file, but may be the cause.
    reported = [
        finding
        for finding in findings
        if finding.severity != INFO
        or finding.code == _PERHAPS_IDS
        or (finding.code == _RARE_CLASS and not {*map(str, finding.value)}.isdisjoint(nan_classes))
    ]
    unique = {(finding.code, finding.title): finding for finding in reported}
    ranked = sorted(unique.values(), key=lambda finding: (SEVERITIES.index(finding.severity), sort_key(finding)))
    codes = frozenset(finding.code for finding in findings)
    read |= {'config'} if checked and _OLD_CONFIG not in codes else set()
    return OutsideFacts(tuple(ranked), codes, frozenset(read), options.num_classes), problems


def _check(config: str, run_code: bool) -> List[Finding]:
    import mmengine  # noqa: F401  if it is missing, that is reported

    from mmguard.config.read import read_config
    from mmguard.findings.engine import diagnose

    return diagnose(config=read_config(config, run_code))


class _ScanOutcome(NamedTuple):
    """Outcome of a scan; ``decides`` is True if all labels were read and the number of classes is known."""

    findings: List[Finding]
    failed: List[str]
    decides: bool


def _scan_for(target: str, options: ScanOptions, explanation: Optional[Explanation]) -> _ScanOutcome:
    """Scan a target. A COCO JSON is scanned with the framework, masks and label numbering that the error implies."""
    task = explanation.task if explanation is not None else ''
    if not target.endswith('.json') or explanation is None or explanation.signature is None:
        return _scan(target, options, task)
    if options.framework is None:
        known = (name for name in get_lineage(explanation.framework) if name in FRAMEWORKS)
        options = replace(options, framework=next(known, None))
    if any(_MASKS.intersection(cause.codes) for cause in explanation.signature.causes):
        options = replace(options, masks=True)
    seen = _scan(target, options, task)
    unknown = any(finding.code == _PERHAPS_IDS and finding.severity == INFO for finding in seen.findings)
    if unknown and any(_PERHAPS_IDS in cause.codes for cause in explanation.signature.causes):
        return _scan(target, replace(options, labels=IDS), task)
    return seen


def _scan(target: str, options: ScanOptions, task: str) -> _ScanOutcome:
    """Scan a target, and leave out data sets whose kind of labels (pixels, boxes) cannot cause the error."""
    from mmguard.scanning.executors import scan_in_processes
    from mmguard.scanning.plans import plan_target
    from mmguard.scanning.run import run_plan

    plan = plan_target(target, options)
    results = [one for one in run_plan(plan, scan_in_processes) if one.facts.kind not in _OTHER_KINDS.get(task, ())]
    facts = [result.facts for result in results]
    is_known = all(one.total and (one.num_classes < 256 or one.class_names) for one in facts)
    findings = [finding for result in results for finding in result.findings]
    is_read = bool(facts) and all(finding.code != _UNREADABLE for finding in findings)
    return _ScanOutcome(findings, list(plan.failed), is_read and is_known)
