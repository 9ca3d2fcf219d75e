"""Follows the edit of a finding as its reader would: writes it, scans again, and looks at what training is given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

from all_situations import SITUATIONS
from harm import harm_to_boxes, harm_to_maps, harm_to_names, missing_classes
from meanings import MEANS, TRUE_BOXES
from once_a_run import once_a_run
from real_reports import DETECTION, SEGMENTATION
from situation import SCAN
from targets import Build, Target, scan_sets, target_of, write_edit
from trained import Trained, trained_on

from mmguard.findings import Finding
from mmguard.findings.edits import Edit
from mmguard.formats.options import SPLITS

REPORTS = {**SEGMENTATION, **DETECTION}
FOLLOWED = {
    name: one
    for name, one in {**SITUATIONS, **{f'reports: {name}': report for name, report in REPORTS.items()}}.items()
    if one.command == SCAN and not name.startswith('detr_configs: ')  # which only their own programs load
}
BUILDS: Dict[str, Build] = {name: one.build for name, one in FOLLOWED.items()}
#: Codes that name the true cause.
CODES: Dict[str, Tuple[str, ...]] = {name: one.codes for name, one in FOLLOWED.items()}

#: Classes that the user leaves out on purpose, which the scan says afterwards: persons alone are wanted.
LEFT_OUT: Dict[str, Set[str]] = {'reports: mmdetection#6532': {'MG154'}}


#: Annotations are numbered otherwise than the categories beside them: what the file calls an object is not what it is.
MISNAMED = {
    'annotation_files: annotations count from 0, categories from 1',
    'detection_configs: VOC: a tenth of the names is misspelt',
}


class Followed(NamedTuple):
    """Result of following one edit."""

    edit: Edit
    root: Path  #: Where the situation stood when it was found: the edit may name files there.
    remains: Tuple[str, ...]  #: Codes of the second scan.
    faults: Tuple[str, ...]  #: Why the case is not closed; empty: it is.
    harm: Tuple[str, ...]  #: Which forbidden outcomes it has.
    is_open: bool = False  #: Whether the second scan says of an error that remains.


class Case(NamedTuple):
    """The first finding of a situation, and all of its edits that a machine can write."""

    first: Finding
    edits: Tuple[Followed, ...]

    @property
    def is_fine(self) -> bool:
        return self.first.severity == 'info'

    @property
    def answered(self) -> Optional[Followed]:
        """The edit that a user follows who knows what the values mean: the first, unless its question says no."""
        if not self.edits:
            return None
        first = self.edits[0]
        if first.edit.applicability != 'asks':
            return first
        return next((followed for followed in self.edits if not followed.harm), first)


@once_a_run
def case_of(name: str) -> Case:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        target = target_of(BUILDS[name], root / 'as_it_is')
        found = scan(target)
        first = found.findings[0]
        before = trained_on(target.path, target.options)
        edits = []
        for number, edit in enumerate(first.edits):
            if edit.config or edit.options or edit.files:
                after = written(BUILDS[name], edit, root / 'as_it_is', root / f'edited_{number}')
                edits.append(judged(name, edit, root / 'as_it_is', first, after, found.codes, before))
        return Case(first, tuple(edits))


class Scan(NamedTuple):
    """Findings of a scan."""

    findings: List[Finding]  #: In the first data set that is looked at.
    everywhere: List[Finding]  #: In all splits, but for verdicts.

    @property
    def codes(self) -> FrozenSet[str]:
        return frozenset(finding.code for finding in self.everywhere)

    @property
    def has_error(self) -> bool:
        return any(finding.severity == 'error' for finding in self.everywhere)

    def has(self, finding: Finding) -> bool:
        """Whether a finding is still there, whatever its numbers are now: of a config at one of its places."""
        same = [set(found.places) for found in self.everywhere if found.code == finding.code]
        return any(not places or places & set(finding.places) for places in same)


def scan(target: Target) -> Scan:
    found = everywhere = scan_sets(*target)
    if target.is_config and _splits_of(target.path) - set(target.options['splits']):
        everywhere = scan_sets(target.path, {**target.options, 'splits': SPLITS})
    severe = [one for result in everywhere for one in result.findings if one.severity != 'info']
    return Scan(found[0].findings, severe)


def _splits_of(config: Path) -> Set[str]:
    text = config.read_text(encoding='utf-8')
    return {split for split in SPLITS if f'{split}_dataloader' in text}


def written(build: Build, edit: Edit, old: Path, root: Path) -> Target:
    """The situation once more, with an edit written that was found in the folder ``old``."""
    target = target_of(build, root)
    config, options, files = (_moved(part, old, root) for part in (edit.config, edit.options, edit.files))
    return write_edit(target, replace(edit, config=config, options=options, files=files), root)


def _moved(value: Any, old: Path, new: Path) -> Any:
    """The same for files that stand elsewhere."""
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(one, old, new) for one in value)
    if isinstance(value, dict):
        return {_moved(key, old, new): _moved(one, old, new) for key, one in value.items()}
    return value.replace(str(old), str(new)) if isinstance(value, str) else value


def judged(
    name: str, edit: Edit, old: Path, finding: Finding, after: Target, known: FrozenSet[str], before: Trained
) -> Followed:
    """Return the result of an edit of a finding; where the meaning of the values is known, also its harm."""
    faults: List[str] = []
    try:
        again = scan(after)
    except (Exception, SystemExit) as error:  # whatever an edited config raises, the edit was wrong
        return Followed(edit, old, (), (f'cannot be scanned again: {type(error).__name__}: {error}',), ())
    new = again.codes - known - LEFT_OUT.get(name, set())
    if new:
        faults.append(f'new: {", ".join(sorted(new))}')
    if again.has(finding):
        faults.append(f'{finding.code} is still there')
    trained = trained_on(after.path, after.options)
    meaning = MEANS.get(name)
    if meaning is None and name not in LEFT_OUT:
        faults += missing_classes(before, trained)
    harm = harm_of(name, before, trained)
    if again.has_error:
        # What was so before, and is still said to be an error, is no work of the edit.
        harm = [fault for fault in harm if fault not in harm_of(name, before, before)]
    return Followed(edit, old, tuple(sorted(again.codes)), tuple(faults), tuple(harm), again.has_error)


def harm_of(name: str, before: Trained, trained: Trained) -> List[str]:
    """The forbidden outcomes that a situation has, trained like this."""
    found = list(trained.faults)
    if name in MEANS:
        found += harm_to_maps(MEANS[name], before, trained)
    if name in TRUE_BOXES:
        found += harm_to_boxes(TRUE_BOXES[name], trained)
    return found if name in MISNAMED else found + harm_to_names(before, trained)
