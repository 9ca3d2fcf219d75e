"""Functions that run a planned scan and diagnose its results."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from mmguard.config.read import ReadConfig
from mmguard.errors import CannotRun
from mmguard.facts.labels import ConfigFacts, FileChanges
from mmguard.findings import Finding, LabelFacts, diagnose
from mmguard.findings.combined_edits import Offer
from mmguard.findings.engine import cache_reread, verify_edits
from mmguard.findings.messages import number_edits
from mmguard.findings.rule import Facts
from mmguard.formats.detection import find_format
from mmguard.formats.format import (
    Format,
    Mapper,
    NotCorrected,
    NotTried,
    ScanResult,
    Source,
    correct_file,
    scan_here,
)
from mmguard.formats.options import SPLITS, FixOptions
from mmguard.language import Message
from mmguard.properties.builder import open_verifier
from mmguard.scanning.plans import Plan, plan_again
from mmguard.text import REPORT_ADVICE, describe_error

#: Maximum number of bytes of all label files that are corrected to test an edit; more would take too long.
LARGEST = 32 << 20
#: Minimum number of bytes that a file counts, because smaller files take as long.
_LEAST = 4096


@dataclass
class SetResult(ScanResult):
    """Result for one data set, with its diagnosis."""

    name: str = ''  #: Name of the source.
    findings: List[Finding] = field(default_factory=list)  #: Its findings, the most likely first.
    notes: List[str] = field(default_factory=list)  #: Notes for the user about this scan.
    known: Optional[Facts] = None  #: Facts that the findings are based on.
    #: Codes of findings that also apply to this data set, but are reported for another one.
    said_before: List[str] = field(default_factory=list)
    hidden: List[Finding] = field(default_factory=list)  #: Findings that the user's settings hide.

    @property
    def roots(self) -> List[str]:
        """Folders to which file names are relative, and the annotation files."""
        seen = self.facts.maps or self.facts.annotations
        return [self.root] * bool(self.root) + (list(seen.sources) if seen is not None else [])

    @property
    def is_clean(self) -> bool:
        return all(finding.severity == 'info' for finding in self.findings)


def run_plan(
    plan: Plan,
    mapper: Mapper = scan_here,
    on_start: Callable[[Source], None] = lambda source: None,
    on_files: Callable[[int], None] = lambda files: None,
) -> List[SetResult]:
    """Scan every data set of a plan.

    ``on_start`` is called with a source before it is scanned, ``on_files`` with the number of newly scanned files.
    """
    results: List[SetResult] = []
    for source in plan.sources:
        on_start(source)
        try:
            found = source.scan(mapper, on_files)
        except (OSError, ValueError) as error:
            plan.failed.append(f'{source.name}: {error}')
            continue
        except (CannotRun, ImportError):
            raise
        except Exception as error:  # continue with the other data sets
            plan.failed.append(f'{source.name}: {describe_error(error)}. This should not happen: {REPORT_ADVICE}')
            continue
        _add_config(found.facts, source, plan.config)
        results.append(SetResult(**vars(found), name=source.name, notes=list(source.notes)))
    _diagnose(results, plan)
    return results


def verify_results(results: Sequence[SetResult], plan: Plan, verify: bool = True) -> None:
    """Remove config edits that break the parts that they change; if ``verify`` is false, mark edits as not verified."""
    if plan.tree is not None:
        with open_verifier(plan.tree, plan.options.run_code, verify) as verifier:
            for result in results:
                result.findings = verify_edits(result.findings, plan.tree, verifier)


def _diagnose(results: List[SetResult], plan: Plan) -> None:
    """Diagnose each data set; report findings about the config only for the first set, and put clean sets last."""
    said: Set[Tuple[str, Tuple[str, ...]]] = set()
    if plan.tree is None:
        _compare_files(results)
    splits = {
        result.name: Facts(
            result.facts,
            plan.tree,
            vars(plan.options),
            cache_reread(partial(_read_again, plan, result)),
        )
        for result in results
    }
    for result in results:
        here = splits[result.name]
        rest = tuple(facts for name, facts in splits.items() if name != result.name)
        result.known = here._replace(siblings=rest) if plan.tree is None else here._replace(others=rest)
        found = diagnose(**result.known._asdict())
        result.findings = [finding for finding in found if (finding.code, finding.places) not in said]
        result.said_before = [finding.code for finding in found if (finding.code, finding.places) in said]
        said.update((finding.code, finding.places) for finding in found if finding.places)
        if not found and result.facts.annotations is not None and result.facts.annotations.labelled_by == 'unknown':
            note = Message('the label of a category id is unknown: pass --framework or --labels')
            result.notes.append(note)
    if not all(any(finding.is_verdict for finding in result.findings) for result in results):
        for result in results:  # a verdict about one split would be read as a verdict about all
            result.findings = [finding for finding in result.findings if not finding.is_verdict]
    results.sort(key=lambda result: result.is_clean)  # problems are read first
    numbers: Dict[str, int] = {}
    for result in results:
        result.findings = number_edits(result.findings, numbers)


def _compare_files(results: Sequence[SetResult]) -> None:
    """Store the categories of the first annotation file in the facts of every other file, for comparison."""
    pairs = [(one.facts.annotations, one.facts.coco) for one in results]
    listed = [(found, coco) for found, coco in pairs if found is not None and found.names_from == 'categories']
    for _, coco in listed[1:]:
        coco.other_categories = {', '.join(listed[0][0].sources): listed[0][0].categories}


def list_offers(results: Sequence[SetResult]) -> List[Offer]:
    """Return an :class:`Offer` for each numbered edit of the results."""
    return [
        Offer(finding, edit, result.known)
        for result in results
        for finding in result.findings
        for edit in finding.edits
        if edit.number and result.known is not None
    ]


def _read_again(
    plan: Plan, result: SetResult, config: Optional[ReadConfig], options: Mapping[str, Any], files: FileChanges
) -> Optional[LabelFacts]:
    """Read a data set with another config, other options or changed files; return ``None`` if that is impossible."""
    known = plan.find_source(result.name)
    assert known is not None
    fresh: List[Plan] = []

    def plan_source() -> Optional[Source]:
        fresh.append(plan_again(plan, config, options))
        return fresh[0].find_source(result.name)

    facts = known.scan_changed(plan_source, files, lambda: correct_files(files, find_format(result.facts)))
    if facts is not None and fresh:
        _add_config(facts, known, fresh[0].config)
    return facts


def correct_files(files: FileChanges, data_format: Format) -> Dict[str, bytes]:
    """Return the contents of label files as `mmguard fix` would write them.

    Raises:
        NotTried, CannotCorrect, OSError: A file cannot be corrected, or correcting all files would take too long.
    """
    contents: Dict[str, bytes] = {}
    for target, options in files.items():
        found = data_format.files(target, FixOptions(**options))
        labels = [(path, name) for path, name in found.files if name not in found.images | found.changed_copies]
        if sum(max(os.path.getsize(path), _LEAST) for path, _ in labels) > LARGEST:
            raise NotTried(target)
        for path, name in labels:
            try:
                data, corrected, _ = correct_file(target, found, path, name)
            except (NotCorrected, OSError, MemoryError) as error:
                raise NotTried(target) from error
            if corrected.data is not data:
                contents[path] = corrected.data
    return contents


def _add_config(labels: LabelFacts, source: Source, config: ConfigFacts) -> None:
    if labels.volumes is None:
        labels.config = labels.config or config
        # A config's source has the name of its split (``'val, test'`` if both are the same).
        labels.split = source.name if all(word in SPLITS for word in source.name.split(', ')) else ''
