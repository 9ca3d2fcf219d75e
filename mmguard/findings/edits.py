"""Edits: what to write instead, as data. Screens and JSON read their fields; `apply` and `fix` write them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Type

from mmguard.config.changes import REMOVED, Changes, changed
from mmguard.config.read import ReadConfig
from mmguard.errors import CannotRun
from mmguard.findings.environment import EnvironmentChanges
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import ERROR, WARNING, Finding, shown
from mmguard.findings.rule import Facts, FileChanges, Reread, Rule
from mmguard.findings.search import search

#: Whether a machine may write an edit. ``'safe'``: the meaning of no label is changed by guess. ``'asks'``: the user
#: must know the answer to its question. ``'manual'``: it is shown, and written by hand.
SAFE, ASKS, MANUAL = ('safe', 'asks', 'manual')

#: On a command line, in place of a number: every edit that asks nothing.
ALL_SAFE = 'safe'

#: Places of a config that a line names.
_PLACES = 4


@dataclass(frozen=True)
class Edit:
    """One way to correct what a finding names.

    Args:
        title (str): What is done, one sentence in the imperative.
        applicability (str): ``'safe'``, ``'asks'`` or ``'manual'``.
        question (str): What the user must know, where it asks: answered by looking.
        config (tuple): Places of the config and what they become: (path, value), as ``config.changes.changed`` takes
            them.
        options (tuple): The same of what no config says: (name of a scan's option, value).
        files (tuple): Files of labels, and what becomes of them: (file or folder, ((option of `mmguard fix`, value),
            ...)). They are tried on copies.
        environment (tuple): What is installed, and what it becomes, as ``EnvironmentFacts.with_changes`` takes it.
        lines (tuple[str]): Code to write by hand, where ``config`` does not say it in a line.
        commands (tuple[str]): What to type into a shell.
        notes (tuple[str]): What is worth knowing about it, a sentence each.
        number (int): By which it is asked for on a command line; 0: it has none.
        unlabelled (tuple[int]): Labels that, where the answer to the question is yes, stand for nothing: they may go.
        verified (bool, optional): True if what it touches was built and called with it, or for labels if what it would
            write was read. ``None``: nobody asked.
        doubt (str): Why it is not verified.
    """

    title: str
    applicability: str = ASKS
    question: str = ''
    config: Tuple[Tuple[str, Any], ...] = ()
    options: Tuple[Tuple[str, Any], ...] = ()
    files: FileChanges = ()
    environment: EnvironmentChanges = ()
    lines: Tuple[str, ...] = ()
    commands: Tuple[str, ...] = ()
    notes: Tuple[str, ...] = ()
    unlabelled: Tuple[int, ...] = ()
    number: int = field(default=0, compare=False)
    verified: Optional[bool] = field(default=None, compare=False)
    doubt: str = field(default='', compare=False)

    @property
    def steps(self) -> List[str]:
        """The commands to type and the lines to write."""
        return [*self.commands, *(self.lines or config_lines(self.config))]

    def apply(self, facts: Facts) -> Optional[Facts]:
        """The facts as they will be; ``None`` where nobody can look again, or what was given does not allow it."""
        try:
            config = facts.config if facts.config is None else changed(facts.config, self.config)
        except (LookupError, TypeError):  # no such place
            return None
        options: Dict[str, Any] = {**facts.options, **dict(self.options)}
        labels = facts.labels
        if labels is not None:
            try:
                labels = None if facts.reread is None else facts.reread(config, options, self.files)
            except (CannotRun, OSError, ValueError):  # as a scan takes it: the files cannot be read or copied
                return None
            if labels is None:
                return None
        environment = facts.environment and facts.environment.with_changes(self.environment)
        return facts._replace(labels=labels, config=config, options=options, environment=environment)


def config_lines(changes: Changes) -> List[str]:
    """Return changes of a config in lines, places with the same value in one.

    Example:
        >>> config_lines((('model.decode_head.num_classes', 3), ('model.auxiliary_head.num_classes', 3)))
        ['num_classes=3 at model.decode_head, model.auxiliary_head']
    """
    lines: Dict[str, List[str]] = {}
    for path, value in changes:
        owner, dot, key = path.rpartition('.')
        if value is REMOVED:
            lines.setdefault(f'remove {key}', []).append(owner)
        else:
            lines.setdefault(f'{key}={shown(value)}' if dot else f'{key} = {shown(value)}', []).append(owner)
    return [f'{line}{_at(owners)}' for line, owners in lines.items()]


def _at(owners: Sequence[str]) -> str:
    named = [owner for owner in dict.fromkeys(owners) if owner]
    more = f' and {len(named) - _PLACES} more' if len(named) > _PLACES else ''
    return f' at {", ".join(named[:_PLACES])}{more}' if named else ''


class Split(NamedTuple):
    """The facts of a split, and what the rules find in them."""

    facts: Facts
    found: Sequence[Finding]


def holds(edit: Edit, finding: Finding, splits: Sequence[Split], rules: Sequence[Type[Rule]]) -> bool:
    """Whether an edit is right: it is applied, and all rules look again, in every split.

    Its finding must be gone, no error be new, and the training must keep every class and every label.
    """
    return all(_holds_in(edit, finding, *split, rules) for split in splits)


def _holds_in(
    edit: Edit, finding: Finding, facts: Facts, before: Sequence[Finding], rules: Sequence[Type[Rule]]
) -> bool:
    # What rewrites files must not even leave boxes or ids that look wrong.
    grave = (ERROR, WARNING) if edit.files else (ERROR,)
    known: Set[str] = {found.code for found in before if found.severity in grave}
    after = edit.apply(facts)
    if after is None:
        return False
    again = search(after, rules)
    if any(found.code == finding.code and _is_same(found, finding) for found in again):
        return False
    if {found.code for found in again if found.severity in grave} - known:
        return False
    if facts.labels is None or after.labels is None:
        return True
    is_here = any(found.code == finding.code and _is_same(found, finding) for found in before)
    return _keeps(edit, facts.labels, after.labels, is_here)


def remembered(reread: Reread) -> Reread:
    """The same, asked once for each config, options and files: several findings and all splits try one edit."""
    known: Dict[str, Optional[LabelFacts]] = {}

    def read(config: Optional[ReadConfig], options: Mapping[str, Any], files: FileChanges) -> Optional[LabelFacts]:
        key = repr((None if config is None else config.data, options, files))
        if key not in known:
            known[key] = reread(config, options, files)
        return known[key]

    return read


def _is_same(one: Finding, other: Finding) -> bool:
    return not one.places or bool(set(one.places) & set(other.places))


def _keeps(edit: Edit, before: LabelFacts, after: LabelFacts, is_here: bool) -> bool:
    """Whether as many classes have labels as before, and as many elements are trained.

    A split that does not show the finding (``is_here``) must not train on what it ignores now, either: that 255 is the
    object in one split makes it none in another.
    """
    if before.maps is not None and after.maps is not None and before.maps.sources != after.maps.sources:
        return bool(trained_classes(after))  # other files: nothing of those before is missing
    # A split without the finding may use these numbers for classes.
    nothing = edit.unlabelled if is_here else ()
    old = {label: count for label, count in _meant(before).items() if label not in nothing}
    new = trained_classes(after)
    if not new or len(new) < len(old) or sum(new.values()) < sum(old.values()):
        return False
    awake = before.kind == 'pixels' and before.ignore_index == after.ignore_index and not _is_misread(before)
    return is_here or not awake or before.num_classes != after.num_classes or sum(new.values()) == sum(old.values())


def _meant(labels: LabelFacts) -> Dict[int, int]:
    """Class -> elements that teach it, or would if the loader did not misread the files."""
    if not _is_misread(labels) or labels.maps is None:
        return trained_classes(labels)
    return trained_classes(replace(labels, histogram=labels.maps.raw))


def _is_misread(labels: LabelFacts) -> bool:
    return labels.maps is not None and bool(labels.maps.loaded_otherwise)


def trained_classes(labels: LabelFacts) -> Dict[int, int]:
    """Class -> elements that teach it."""
    counts = labels.histogram if labels.annotations is None else labels.annotations.usable
    return {
        label: count
        for label, count in counts.items()
        if count and label not in (labels.ignore_index, *labels.values) and 0 <= label < labels.num_classes
    }
