"""Findings in machine-readable formats: GitHub Actions annotations, SARIF 2.1.0, and JUnit XML."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any, Dict, Iterable, NamedTuple, Sequence, Tuple
from urllib.parse import quote
from xml.etree import ElementTree

from mmguard.files.containment import locate_file, shorten_path
from mmguard.findings.finding import ERROR, INFO, WARNING, Finding
from mmguard.text import LONGEST, quantity, visible, visible_name
from mmguard.version import __version__

#: Severity of a finding that an option or a setting hides.
HIDDEN = 'hidden'
_LEVELS = {ERROR: 'error', WARNING: 'warning', INFO: 'notice'}
#: Maximum number of files per finding.
_PLACES = 20


class ReportEntry(NamedTuple):
    """Entry of a machine-readable report: a finding, or a broken property of ``dry-run``."""

    code: str  #: Code of the rule, or name of the property.
    severity: str  #: One of :data:`mmguard.findings.finding.SEVERITIES`, or ``HIDDEN``.
    title: str  #: Title of the finding, one line.
    text: str  #: Evidence, and what to do.
    files: Tuple[str, ...]  #: Paths of the first files, relative to the working directory.
    places: Tuple[str, ...] = ()  #: Paths of settings in a config.


def build_entry(finding: Finding, target: str, roots: Sequence[str] = (), hidden_by: str = '') -> ReportEntry:
    """Convert a finding to an entry of a machine-readable report.

    Args:
        finding (Finding): The finding, whose files are relative to one of ``roots``.
        target (str): Target of the command, which is reported in place of files that are not on this disk.
        roots (list[str]): Folders that contain the files, and annotation files that name them.
        hidden_by (str): Setting that hides the finding; empty if it is shown.
    """
    files = dict.fromkeys(_locate(name, target, roots) for name in finding.files or ('',))
    text = f'{f"hidden by {hidden_by}: " if hidden_by else ""}{finding.evidence}. {finding.next_step}'
    severity = HIDDEN if hidden_by else finding.severity
    return ReportEntry(finding.code, severity, finding.title, text, tuple(files)[:_PLACES], finding.places)


def _locate(name: str, target: str, roots: Sequence[str]) -> str:
    """Return the relative path of a file or, if the file is missing, of its annotation file or the target."""
    records = (root for root in roots if os.path.isfile(root))  # an image that is named in a JSON
    found = locate_file(name, roots) or locate_file(name.partition(': ')[0], roots)  # a place in it may follow
    return found or shorten_path(next(records, target))


def write_entries(
    name: str, command: str, target: str, entries: Sequence[ReportEntry], failed: Sequence[str] = ()
) -> str:
    """Return a machine-readable report as text.

    Args:
        name (str): ``'github'``, ``'sarif'`` or ``'junit'``.
        command, target (str): Command that produced the findings, and its target.
        entries (list[ReportEntry]): The findings.
        failed (list[str]): Inputs that could not be read, with the reasons.
    """
    if name == 'github':
        return _as_github(entries, failed)
    if name == 'sarif':
        return json.dumps(_as_sarif(entries, failed), indent=1) + '\n'
    return _as_junit(command, target, entries, failed)


def _as_github(entries: Iterable[ReportEntry], failed: Iterable[str]) -> str:
    """Return workflow commands: a line per finding and file, per setting that hides findings, and per failure.

    Format: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    """
    lines = [
        f'::{_LEVELS[entry.severity]} '
        f'file={_escape_property(file)},title={_escape_property(f"{entry.code} {entry.title}")}'
        f'::{_escape_data(f"{entry.title} Seen: {entry.text}")}\n'
        for entry in entries
        for file in (entry.files if entry.severity != HIDDEN else ())
    ]
    hidden = Counter(entry.text.partition(': ')[0] for entry in entries if entry.severity == HIDDEN)
    lines += [f'::notice title=mmguard::{quantity(n, "finding")} {_escape_data(by)}\n' for by, n in hidden.items()]
    return ''.join([*lines, *(f'::error title=mmguard::{_escape_data(failure)}\n' for failure in failed)])


def _escape_data(text: str) -> str:
    return visible_name(text, LONGEST).replace('%', '%25').replace('##[', '## [')


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(':', '%3A').replace(',', '%2C')


def _as_sarif(entries: Sequence[ReportEntry], failed: Sequence[str]) -> Dict[str, Any]:
    """Return a SARIF 2.1.0 log as plain data: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html"""
    rules = {entry.code: entry for entry in reversed(entries)}
    levels = {ERROR: 'error', WARNING: 'warning', INFO: 'note', HIDDEN: 'none'}
    shown = [{'id': code, 'shortDescription': {'text': visible(rules[code].title)}} for code in sorted(rules)]
    driver = {'name': 'mmguard', 'version': __version__, 'rules': shown}
    results = [
        {
            'ruleId': entry.code,
            'level': levels[entry.severity],
            'message': {'text': visible(f'{entry.title} {entry.text}')},
            'locations': [_build_sarif_location(file, entry.places) for file in entry.files],
            # The specification wants this key in all results, or in none.
            'suppressions': [{'kind': 'external'}] * (entry.severity == HIDDEN),
        }
        for entry in entries
    ]
    invocation: Dict[str, Any] = {'executionSuccessful': not failed}
    if failed:
        said = [{'level': 'error', 'message': {'text': visible(failure)}} for failure in failed]
        invocation['toolExecutionNotifications'] = said
    run = {'tool': {'driver': driver}, 'results': results, 'invocations': [invocation]}
    return {'$schema': 'https://json.schemastore.org/sarif-2.1.0.json', 'version': '2.1.0', 'runs': [run]}


def _build_sarif_location(file: str, places: Sequence[str]) -> Dict[str, Any]:
    uri = quote(os.fsencode(file.replace(os.sep, '/')), safe='/:@')
    location: Dict[str, Any] = {'physicalLocation': {'artifactLocation': {'uri': uri}}}
    if places:
        location['logicalLocations'] = [{'fullyQualifiedName': visible(place)} for place in places]
    return location


def _as_junit(command: str, target: str, entries: Sequence[ReportEntry], failed: Sequence[str]) -> str:
    """Return JUnit XML, with a test case per entry: failed for errors and warnings, skipped if hidden, else passed."""
    root = ElementTree.Element('testsuites')
    suite = ElementTree.SubElement(root, 'testsuite', name=f'mmguard {command}')

    def add_case(name: str, tag: str = '', text: str = '', **said: str) -> None:
        case = ElementTree.SubElement(suite, 'testcase', classname=f'mmguard.{command}', name=_remove_controls(name))
        if tag:
            plain = {key: _remove_controls(value) for key, value in said.items()}
            ElementTree.SubElement(case, tag, plain).text = text

    for entry in entries:
        tag = {INFO: 'system-out', HIDDEN: 'skipped'}.get(entry.severity, 'failure')
        said = dict(type=entry.severity, message=entry.title) if tag == 'failure' else {}
        text = '\n'.join(map(_remove_controls, [entry.text, *entry.files]))
        add_case(f'{entry.code} {entry.title}', tag, text, **said)
    for failure in failed:
        add_case('could not run', 'error', type='could not run', message=failure)
    if not len(suite):
        add_case(target)
    suite.set('tests', str(len(suite)))
    for name, tag in (('failures', 'failure'), ('skipped', 'skipped'), ('errors', 'error')):
        suite.set(name, str(len(suite.findall(f'*/{tag}'))))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding='unicode') + '\n'


def _remove_controls(text: str) -> str:
    """Return text on one line, without the control characters that XML forbids."""
    return visible_name(text, LONGEST).encode('utf-8', 'backslashreplace').decode('utf-8')
