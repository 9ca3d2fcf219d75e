"""Run of a planned scan, and its diagnosis."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from mmguard.config.read import ReadConfig
from mmguard.errors import CannotRun
from mmguard.findings import Finding, LabelFacts, diagnose
from mmguard.findings.edits import FileChanges
from mmguard.findings.engine import remember
from mmguard.findings.facts import ConfigFacts
from mmguard.findings.order import VERDICTS
from mmguard.findings.rule import Facts
from mmguard.findings.together import Offer
from mmguard.findings.wording import number_edits
from mmguard.formats.listings import spread
from mmguard.formats.maps.engine import Mapper, MapSource, Scanned, scan_maps
from mmguard.formats.maps.forms import words_of_unread
from mmguard.formats.maps.record import Journal, MapItem
from mmguard.formats.maps.summary import MapSummary
from mmguard.formats.nnunet.source import CaseSource
from mmguard.formats.options import SPLITS, FixOptions
from mmguard.scanning.plans import AnnotationSource, Plan, Source
from mmguard.scanning.target import plan_again
from mmguard.scanning.trial_copies import convert_counts, copies_of, copies_of_maps, name_of_copy
from mmguard.storage.urls import is_url
from mmguard.text import REPORT_IT, describe_error

#: Maximum number of files that are read to try an edit that names other files or rewrites some.
OTHER_FILES = 64


@dataclass
class SetResult:
    """Result for one data set."""

    name: str  #: Name of the source.
    facts: LabelFacts  #: What it holds.
    findings: List[Finding] = field(default_factory=list)  #: Its findings, the most likely first.
    worst: List[Dict[str, Any]] = field(default_factory=list)  #: The files with the most invalid labels.
    notes: List[str] = field(default_factory=list)  #: Notes for the user on how it was scanned.
    #: ``decoded``, ``reused``: Number of files read, and of files taken from the journal.
    decoded: int = 0
    reused: int = 0
    ignored: List[int] = field(default_factory=list)  #: Values as stored that are not trained on.
    known: Optional[Facts] = None  #: Facts that the findings are based on.
    #: Codes of findings that hold here, too, but are reported at another data set.
    said_before: List[str] = field(default_factory=list)

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
    """Scan every data set of a plan.

    ``on_start`` is called with a source before it is scanned, ``on_files`` with the number of files done since then.
    """
    results: List[SetResult] = []
    summaries: Dict[str, MapSummary] = {}
    for source in plan.sources:
        on_start(source)
        if isinstance(source, MapSource):
            scanned = scan_maps(source.items(), source.settings, mapper, journal, on_files)
            scanned.summary.merge(source.noticed)
            unread = '' if scanned.summary.forms else words_of_unread(scanned.summary.unreadable)
            if unread:
                plan.failed.append(f'{source.name}: nothing was read. {unread}')
                continue
            summaries[source.name] = scanned.summary
            results.append(_of_maps(source, scanned, plan.config))
        elif isinstance(source, CaseSource):
            cases = source.scan(mapper, journal, on_files)
            results.append(SetResult(source.name, cases.facts, [], [], source.notes, cases.decoded, cases.reused))
        else:
            try:
                facts = source.read(mapper, on_files) if source.spread else source.read()
            except (OSError, ValueError) as error:
                plan.failed.append(f'{source.name}: {error}')
                continue
            except (CannotRun, ImportError):
                raise
            except Exception as error:  # continue with the other data sets
                plan.failed.append(f'{source.name}: {describe_error(error)}. This should not happen: {REPORT_IT}')
                continue
            facts = _with_config(facts, source, plan.config)
            results.append(SetResult(source.name, facts, notes=list(source.notes)))
    _diagnose(results, plan, summaries)
    return results


def _diagnose(results: List[SetResult], plan: Plan, summaries: Dict[str, MapSummary]) -> None:
    """Diagnose each data set with its config; findings of the config itself go to the first, clean sets go last."""
    said: Set[Tuple[str, Tuple[str, ...]]] = set()
    splits = {
        result.name: Facts(
            result.facts,
            plan.tree,
            vars(plan.options),
            remember(partial(_read_again, plan, result.name, summaries.get(result.name))),
        )
        for result in results
    }
    for result in results:
        here = splits[result.name]
        others = [facts for name, facts in splits.items() if name != result.name] if plan.tree is not None else []
        result.known = here._replace(others=tuple(others))
        found = diagnose(here.labels, here.config, options=here.options, reread=here.reread, others=others)
        result.findings = [finding for finding in found if (finding.code, finding.places) not in said]
        result.said_before = [finding.code for finding in found if (finding.code, finding.places) in said]
        said.update((finding.code, finding.places) for finding in found if finding.places)
        if not found and result.facts.annotations is not None and result.facts.annotations.labelled_by == 'unknown':
            result.notes.append('which label a category id becomes is not known: --framework or --labels says it')
    if not all(any(finding.code in VERDICTS for finding in result.findings) for result in results):
        for result in results:  # an all-clear for one split would be read as one for all
            result.findings = [finding for finding in result.findings if finding.code not in VERDICTS]
    results.sort(key=lambda result: result.is_clean)  # problems are read first
    first = 1
    for result in results:
        result.findings = number_edits(result.findings, first)
        first += sum(edit.number > 0 for finding in result.findings for edit in finding.edits)


def offers_of(results: Sequence[SetResult]) -> List[Offer]:
    """Return the numbered edits."""
    return [
        Offer(finding, edit, result.known)
        for result in results
        for finding in result.findings
        for edit in finding.edits
        if edit.number and result.known is not None
    ]


def _read_again(
    plan: Plan,
    name: str,
    summary: Optional[MapSummary],
    config: Optional[ReadConfig],
    options: Mapping[str, Any],
    files: FileChanges,
) -> Optional[LabelFacts]:
    """Return the labels of a data set as they will be with another config, other options or changed files.

    Annotation files are read again, changed ones as copies; for label maps the counts are relabelled, and
    some files are read if the config names others.
    """
    if any(is_url(path) for path, _ in files):
        return None  # fix does not write them
    if summary is not None:
        return _labelled_again(plan, plan_again(plan, config, options), name, summary, files)
    known = plan.source(name)
    if isinstance(known, CaseSource):
        return known.again(**dict(dict(files).get(known.root, ())))
    with copies_of(files) as copies:
        fresh = plan_again(plan, config, options, copies)
        source = fresh.source(name)
        return _with_config(source.read(), source, fresh.config) if isinstance(source, AnnotationSource) else None


def _labelled_again(
    plan: Plan, fresh: Plan, name: str, summary: MapSummary, files: FileChanges
) -> Optional[LabelFacts]:
    known, source = plan.source(name), fresh.source(name)
    if not isinstance(source, MapSource) or not isinstance(known, MapSource):
        return None
    changes = dict(files).get(known.folder)
    listed, expected = source.listed(), known.listed()
    if changes is not None and expected is not None:
        expected = [item._replace(path=name_of_copy(item.path)) for item in expected]
    if listed is not None and listed != expected:
        some = scan_maps(spread(listed, OTHER_FILES), source.settings).summary
        return _facts_of(source, some, fresh.config)
    if changes is None:
        return _facts_of(source, summary.labelled_by(source.settings), fresh.config)
    options = FixOptions(**dict(changes))
    written = convert_counts(summary, options)
    if written is None:
        return _of_copies(source if expected is None else known, source, fresh.config, options)
    with copies_of_maps(known.sample(), options) as copies:
        return _facts_of(source, written.labelled_by(source.settings), fresh.config, copies)


def _of_copies(listed: MapSource, source: MapSource, config: ConfigFacts, options: FixOptions) -> Optional[LabelFacts]:
    """Rewrite the files of ``listed`` and read them as ``source`` does, if they are few; counts are not sufficient."""
    items = list(islice(listed.items(), OTHER_FILES + 1))
    if len(items) > OTHER_FILES:
        return None
    with copies_of_maps([item.path for item in items], options) as copies:
        names = [(item, copies.get(name_of_copy(item.path))) for item in items]
        there = [MapItem(name, item.image, None, item.image_stamp) for item, name in names if name]
        made = scan_maps(there, source.settings).summary
        made.merge(listed.noticed)
        return _facts_of(source, made, config, copies)


def _with_config(facts: LabelFacts, source: Source, config: ConfigFacts) -> LabelFacts:
    facts.config = facts.config or config
    facts.split = _split_of(source)
    return facts


def _facts_of(
    source: MapSource, summary: MapSummary, config: ConfigFacts, copies: Mapping[str, str] = MappingProxyType({})
) -> LabelFacts:
    facts = summary.to_facts(source.class_names, source.root)
    assert facts.maps is not None
    facts.maps.sources, facts.maps.suffix = [source.folder], source.suffix
    facts.maps.declared = source.declared
    facts.loader = source.ask_loader(copies)
    return _with_config(facts, source, config)


def _of_maps(source: MapSource, scanned: Scanned, config: ConfigFacts) -> SetResult:
    facts = _facts_of(source, scanned.summary, config)
    settings = source.settings
    return SetResult(
        name=source.name,
        facts=facts,
        worst=scanned.summary.worst_files(source.root),
        notes=list(source.notes),
        decoded=scanned.decoded,
        reused=scanned.reused,
        ignored=[value for value, label in enumerate(settings.table()) if label == settings.ignore_index],
    )


def _split_of(source: Source) -> str:
    """Return the split of a config's source, from its name (``'val, test'`` if both are the same)."""
    return source.name if all(word in SPLITS for word in source.name.split(', ')) else ''
