"""What a report is."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Callable, List, NamedTuple, Optional, Tuple

from situation import Build, findings_of

from mmguard.config.read import read_config
from mmguard.findings import Finding, diagnose

SCAN, CHECK = 'scan', 'check'


class Report(NamedTuple):
    """A public report.

    Attributes:
        codes (tuple[str]): Codes that name its true cause, as the first finding.
        build (callable, optional): Makes the situation in a folder; ``None``: ``beside`` says where it is made.
        command (str): What is asked: ``'scan'`` or ``'check'``.
        never (tuple[str]): What would do harm: no first finding advises it.
        says (tuple[str]): What the first finding must say.
        beside (str): Where it is tested: a file below tests/findings, and words that stand in its table.
        wrong (str): What is still wrong, where the first finding does not name the cause.
    """

    codes: Tuple[str, ...] = ()
    build: Optional[Build] = None
    command: str = SCAN
    never: Tuple[str, ...] = ()
    says: Tuple[str, ...] = ()
    beside: str = ''
    wrong: str = ''


def first_of(report: Report) -> Optional[Finding]:
    """What is found first; ``None``: nothing."""
    assert report.build is not None
    with TemporaryDirectory() as folder:
        found = scanned(report.build, Path(folder)) if report.command == SCAN else checked(report.build, Path(folder))
    return found[0] if found else None


def scanned(build: Build, root: Path) -> List[Finding]:
    return findings_of(build, root)


def checked(build: Callable, root: Path) -> List[Finding]:
    path, _ = build(root)
    return diagnose(config=read_config(str(path)))


def said(finding: Finding) -> str:
    return ' '.join([finding.cause, finding.evidence, finding.advice, *finding.files])
