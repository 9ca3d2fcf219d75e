"""What each command takes for valid and for wrong in one config, to be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, List, Set, Tuple

from mmguard.config.guards import guard_tree
from mmguard.config.parts import GUARD_KINDS, from_config
from mmguard.config.read import ReadConfig, from_mmengine, read_config
from mmguard.findings import Finding, diagnose
from mmguard.findings.finding import POSSIBLE
from mmguard.formats.format import CannotScan, scan_here
from mmguard.formats.options import ScanOptions
from mmguard.labels.spaces import LabelSpaces, from_options
from mmguard.scanning.plans import plan_target
from mmguard.scanning.run import SetResult, run_plan


def contradictions(path: Path) -> List[str]:
    """Where two commands say different things of a config with its data; none is right."""
    read = read_config(str(path))
    try:
        results = run_plan(plan_target(str(path), ScanOptions()), scan_here)
    except CannotScan:  # its data cannot be opened: the scan says nothing of labels
        return among_configs(read)
    scanned = [finding for result in results for finding in result.findings]
    return [*unsaid(diagnose(config=read), scanned), *other_spaces(read, results), *among_configs(read)]


def unsaid(checked: List[Finding], scanned: List[Finding]) -> List[str]:
    """Return what `check` finds and `scan` does not, except what follows from a finding of the scan."""
    said = {(finding.code, place) for finding in scanned for place in finding.places}
    superseded = {code for finding in scanned if finding.certainty != POSSIBLE for code in finding.follows}
    return [
        f'check finds {finding.code} at {place}, scan does not'
        for finding in checked
        for place in finding.places
        if finding.severity != 'info' and (finding.code, place) not in said and finding.code not in superseded
    ]


def other_spaces(read: ReadConfig, results: List[SetResult]) -> List[str]:
    """Whether the scan counts other labels as valid than the other commands."""
    said = from_config(read)
    found = []
    for result in results:
        space = said.get(result.facts.kind)
        if space is not None and result.facts.num_classes != space.num_classes:
            found.append(f'scan of {result.name} takes {result.facts.num_classes} classes, {space.place} has {space}')
        if space is not None and result.facts.kind == 'pixels' and result.facts.ignore_index != space.ignore_index:
            found.append(f'scan of {result.name} ignores {result.facts.ignore_index}, the others {space.ignore_index}')
    return found


def among_configs(read: ReadConfig) -> List[str]:
    """Whether `trace` and `replay` ask for other labels than `check`, and `apply` writes what `check` finds wrong."""
    from mmengine.config import Config

    found = []
    said = from_config(read)
    traced = from_options(None, None, from_config(from_mmengine(Config(guard_tree(read.data).tree)), 'train'))
    for kind, space in said.to_dict().items():
        if not _has_guard(read, kind) and _numbers(traced, kind) != _numbers(said, kind):
            found.append(f'guarded, {kind} are {_numbers(traced, kind)}; they were {space}')
    found += [f'apply guards {kind} with {number}, not {of}' for kind, number, of in _guards(read, said)]
    before = _codes(diagnose(config=read))
    after = _codes(diagnose(config=ReadConfig(guard_tree(read.data).tree, read.file)))
    if after - before:
        found.append(f'check finds in what apply writes: {sorted(after - before)}')
    return found


def _numbers(spaces: LabelSpaces, kind: str) -> Tuple[Any, Any]:
    space = spaces.get(kind)
    return (None, None) if space is None else (space.num_classes, space.ignore_index)


def _has_guard(read: ReadConfig, kind: str) -> bool:
    return any(found == kind for found, _ in _guard_nodes(read.data))


def _guards(read: ReadConfig, said: LabelSpaces) -> Iterator[Tuple[str, int, Any]]:
    for kind, guard in _guard_nodes(guard_tree(read.data).tree):
        space = said.get(kind)
        if not _has_guard(read, kind) and (space is None or guard['num_classes'] != space.num_classes):
            yield kind, guard['num_classes'], space


def _guard_nodes(node: Any) -> Iterator[Tuple[str, Dict[str, Any]]]:
    if isinstance(node, (list, tuple)):
        for one in node:
            yield from _guard_nodes(one)
    elif isinstance(node, dict):
        kind = GUARD_KINDS.get(str(node.get('type')).rpartition('.')[2])
        if kind is not None:
            yield kind, node
        for one in node.values():
            yield from _guard_nodes(one)


def _codes(findings: List[Finding]) -> Set[str]:
    return {finding.code for finding in findings if finding.severity != 'info'}
