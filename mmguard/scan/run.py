"""Scans what is planned, and diagnoses it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional

from mmguard.diagnosis import CAUSES, Finding, LabelFacts, diagnose
from mmguard.diagnosis.facts import ConfigFacts
from mmguard.scan.engine import Mapper, scan_maps
from mmguard.scan.journal import Journal
from mmguard.scan.nnunet.source import CaseSource
from mmguard.scan.options import SPLITS
from mmguard.scan.sources.base import MapSource
from mmguard.scan.target import Plan, Source


@dataclass
class SetResult:
    """What was found in one data set.

    Args:
        name (str): As the source is called.
        facts (LabelFacts): What it holds.
        findings (list[Finding]): What that means, the most likely first.
        worst (list[dict]): The files with the most invalid labels.
        notes (list[str]): What the user should know of how it was scanned.
        decoded, reused (int): Files read, and known from the journal.
        ignored (list[int]): Values as stored that are not trained on.
    """

    name: str
    facts: LabelFacts
    findings: List[Finding]
    worst: List[Dict[str, Any]] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)
    decoded: int = 0
    reused: int = 0
    ignored: List[int] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return all(finding.severity == 'info' for finding in self.findings)


def run_plan(
    plan: Plan,
    mapper: Mapper,
    journal: Optional[Journal] = None,
    on_start: Callable[[Source], None] = lambda source: None,
    on_files: Callable[[int], None] = lambda files: None,
) -> List[SetResult]:
    """Scans every data set of a plan.

    Args:
        plan (Plan): What is to be scanned.
        mapper (callable): Where label maps are read.
        journal (Journal, optional): Their records.
        on_start (callable): Called with a source before it is scanned.
        on_files (callable): Called with the number of files done since the last call.
    """
    results = []
    for source in plan.sources:
        on_start(source)
        if isinstance(source, MapSource):
            results.append(_scan_maps(source, plan.config, mapper, journal, on_files))
        elif isinstance(source, CaseSource):
            cases = source.scan(mapper, journal, on_files)
            findings = diagnose(cases.facts, CAUSES)
            results.append(
                SetResult(source.name, cases.facts, findings, cases.worst, source.notes, cases.decoded, cases.reused)
            )
        else:
            try:
                facts = source.read()
            except (OSError, ValueError) as error:
                plan.failed.append(f'{source.name}: {error}')
                continue
            facts.config = facts.config or plan.config
            facts.split = _split_of(source)
            results.append(SetResult(source.name, facts, diagnose(facts, CAUSES), notes=list(source.notes)))
    return results


def _scan_maps(
    source: MapSource,
    config: ConfigFacts,
    mapper: Mapper,
    journal: Optional[Journal],
    on_files: Callable[[int], None],
) -> SetResult:
    scanned = scan_maps(source.items(), source.settings, mapper, journal, on_files)
    scanned.summary.merge(source.noticed)
    facts = scanned.summary.to_facts(source.class_names, source.root)
    facts.config = config
    facts.split = _split_of(source)
    settings = source.settings
    return SetResult(
        name=source.name,
        facts=facts,
        findings=diagnose(facts, CAUSES),
        worst=scanned.summary.worst_files(source.root),
        notes=list(source.notes),
        decoded=scanned.decoded,
        reused=scanned.reused,
        ignored=[value for value, label in enumerate(settings.table()) if label == settings.ignore_index],
    )


def _split_of(source: Source) -> str:
    """Which split of a config it is: sources of a config are named so (``'val, test'`` where both are the same)."""
    return source.name if all(word in SPLITS for word in source.name.split(', ')) else ''
