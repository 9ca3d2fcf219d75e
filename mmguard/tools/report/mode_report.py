"""One mode of a run: its log lines, its record, and the config next to them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Dict, List, Optional

from mmguard.findings import Finding, LabelFacts
from mmguard.findings.engine import diagnose_for
from mmguard.labels.spaces import LabelSpaces, from_options
from mmguard.labels.tally import Tally
from mmguard.log.lines import ModeTotals
from mmguard.log.run_files import LoggedMode, LoggedRun
from mmguard.log.statistics import KINDS, Stats


@dataclass
class ModeReport:
    """One mode of a run.

    Args:
        mode (str): ``'train'``, ``'val'`` or ``'test'``.
        lines (ModeTotals): Totals of the log: only iterations with something to report.
        logged (LoggedMode, optional): Totals of the record: all iterations.
        spaces (LabelSpaces): The valid labels.
        findings (dict[str, list[Finding]]): Kind -> the likely causes.
    """

    mode: str
    lines: ModeTotals
    logged: Optional[LoggedMode] = None
    spaces: LabelSpaces = field(default_factory=LabelSpaces)
    findings: Dict[str, List[Finding]] = field(default_factory=dict)

    @property
    def data_roots(self) -> List[str]:
        """Folders of the files."""
        return [] if self.logged is None else self.logged.data_roots

    @property
    def in_all(self) -> Stats:
        """Sums over all iterations if there is a record, else over the log's iterations."""
        if self.logged is None:
            return self.lines.totals()
        # If a training died, the record may be a minute old; the lines end when their file reaches its limit.
        filled = max(self.logged.totals.filled, self.lines.sums.filled, key=_count_iterations)
        return replace(self.logged.totals, filled=filled)

    @property
    def skipped_nothing(self) -> bool:
        # Losses that were filled with zeros are a finding of their own, not a label.
        return not any(replace(totals, filled={}) for totals in (self.in_all, self.lines.totals()))

    @property
    def note(self) -> str:
        """Last iteration in the sums, for an unfinished mode; else empty."""
        if self.logged is None or self.logged.ended:
            return ''
        upto = (
            f'the sums are those up to iteration {self.logged.place:,}' if self.logged.place else 'nothing was counted'
        )
        return f'{self.mode} did not finish: {upto}'

    def get_values(self, kind: str) -> Tally:
        """Return the values and box faults, from the record or else from the lines."""
        recorded = self.in_all.kinds[kind]
        return recorded if recorded.values else self.lines.sum_files(kind)

    def build_facts(self, kind: str) -> LabelFacts:
        """Return the facts for the diagnosis."""
        space, total, seen = self.spaces.get(kind), self.in_all.kinds[kind], self.get_values(kind)
        facts = LabelFacts(
            # The user expects the values that a label_map names.
            values={v: n for v, n in seen.values.items() if space is None or v not in space.label_map},
            total=total.total,
            files=self.in_all.files,
            offending_files=len(self.lines.files[kind]),
            kind=kind,
            reasons=seen.reasons,
        )
        if space is not None:
            facts.num_classes, facts.ignore_index = space.num_classes, space.ignore_index
            facts.class_names = list(self.spaces.names)
        return facts


def _count_iterations(filled: Dict[str, Dict[str, int]]) -> int:
    return sum(sum(by_rank.values()) for by_rank in filled.values())


def build_mode_reports(lines: Dict[str, ModeTotals], run: LoggedRun, num_classes: Optional[int]) -> List[ModeReport]:
    """Return the modes of a run, from its log and its records; a given number of classes takes precedence over both."""
    reports = []
    for mode in dict.fromkeys((*lines, *run.modes)):
        logged = run.modes.get(mode)
        spaces = from_options(num_classes, None, LabelSpaces() if logged is None else logged.spaces)
        report = ModeReport(mode, lines.get(mode, ModeTotals()), logged, spaces)
        for kind in KINDS:
            offending = report.spaces.get(kind) is not None and report.lines.files[kind]
            facts = report.build_facts(kind)
            report.findings[kind] = diagnose_for(run.framework, facts, report.data_roots) if offending else []
        reports.append(report)
    return reports
