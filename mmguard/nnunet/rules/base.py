"""Base classes of rules about volumes, which consist of a list of cases."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from mmguard.facts.labels import LabelFacts
from mmguard.facts.volumes import CaseFault, VolumeFacts
from mmguard.findings.edits import Edit
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import as_map
from mmguard.language import Message
from mmguard.nnunet.conversions import CONVERSIONS
from mmguard.text import quantity

#: Maximum ratio of a slip's count to that of the adjacent value.
_SLIP = 0.01


def get_volumes(labels: LabelFacts) -> VolumeFacts:
    return labels.volumes or VolumeFacts()


def get_labels_by_name(facts: LabelFacts) -> Dict[str, Any]:
    """Return name -> value of the labels in dataset.json, of any type; nothing if they are not an object."""
    labels = get_volumes(facts).content.get('labels')
    if not isinstance(labels, dict):
        return {}
    if is_old(facts) or all(str(value).isdecimal() and isinstance(name, str) for value, name in labels.items()):
        labels = {str(name): value for value, name in labels.items()}  # v1, or v2 written in its form
    return {
        name: int(value) if isinstance(value, str) and value.isdecimal() else value for name, value in labels.items()
    }


def is_old(labels: LabelFacts) -> bool:
    """True if dataset.json is in the layout of nnU-Net v1."""
    return get_volumes(labels).layout in CONVERSIONS


def as_written(facts: LabelFacts, labels: Mapping[str, Any]) -> Dict[str, Any]:
    """Convert name -> value to the layout of dataset.json: v1 has value -> name."""
    return {str(value): name for name, value in labels.items()} if is_old(facts) else dict(labels)


def find_slips(labels: LabelFacts, counts: Mapping[int, int]) -> Dict[int, int]:
    """Map each rare invalid value to an adjacent frequent value in ``counts``."""
    return {
        value: near
        for value, count in labels.values.items()
        for near in (value - 1, value + 1)
        if near and count < _SLIP * counts.get(near, 0)
    }


def rewrite_volumes(
    labels: LabelFacts,
    title: str,
    question: str = '',
    lines: Sequence[str] = (),
    dataset_json: Optional[Mapping[str, Any]] = None,
    **changes: Any,
) -> Edit:
    """Return an edit of dataset.json and of all label files, written by hand.

    Args:
        dataset_json (dict, optional): Key of dataset.json -> new value.
        changes: Changes of the label files: ``label_map``.
    """
    files = {get_volumes(labels).root: {'dataset_json': dataset_json or (), **changes}}
    return Edit(title, question, files=files, lines=tuple(lines), is_manual=True)


def write_renumbering(pairs: Mapping[int, int]) -> Sequence[str]:
    """Return the code that renumbers an array of labels."""
    loop = f'for value, label in {as_map(pairs)}.items(): seg[old == value] = label'
    return ('old = seg.copy()', loop) if pairs else ()


class VolumeCause(DataRule):
    """Base class of rules about single cases. The scan's JSON lists all cases in ``facts.volumes.faults``."""

    kinds = ('voxels',)
    needs: ClassVar[Tuple[str, ...]] = ('volumes',)
    #: Kinds of faults in ``VolumeFacts.faults`` that show it.
    shown_by: ClassVar[Tuple[str, ...]] = ()

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        if self.faults(labels):
            yield self.report_cases(facts, labels)

    def report_cases(self, facts: Facts, labels: LabelFacts, certainty: str = PROVEN, **more: Any) -> Finding:
        """Return a finding that names the cases; ``more`` as in ``report_in``."""
        faults = self.faults(labels)
        cases = len({fault.case for fault in faults})
        first = max(faults, key=lambda fault: fault.voxels)
        number = Message('{number:,} of {cases}', number=cases, cases=quantity(get_volumes(labels).cases, 'case'))
        evidence = Message('{cases}, e.g. {file}: {detail}', cases=number, file=first.file, detail=first.detail)
        return self.report_in(facts, certainty, evidence, files=list_files(faults), **more)

    def faults(self, labels: LabelFacts) -> List[CaseFault]:
        return get_volumes(labels).find_faults(*self.shown_by)


def list_files(faults: Sequence[CaseFault]) -> List[str]:
    """Return the files of some faults, each once."""
    return list(dict.fromkeys(fault.file for fault in faults))


def find_ignore_value(labels: LabelFacts) -> int:
    """Return the value of the ignored label: the highest declared one, or if none is ignored, the one after it."""
    highest = max(get_volumes(labels).expected, default=0)
    return highest if labels.ignore_index is not None else highest + 1


class DeclaredCause(DataRule):
    """Base class of rules about dataset.json."""

    kinds = ('voxels',)
    needs = ('volumes',)
    shows_values = False
    #: Kinds of faults in ``VolumeFacts.declared``.
    declared: ClassVar[Tuple[str, ...]] = ()

    def report_texts(
        self, facts: Facts, texts: Sequence[str], certainty: str = PROVEN, evidence: str = '', **more: Any
    ) -> Iterator[Finding]:
        """Yield a finding about dataset.json if there are texts; ``more`` as in ``report_in``."""
        if texts:
            yield self.report_in(facts, certainty, evidence or '; '.join(texts), files=['dataset.json'], **more)

    def list_texts(self, labels: LabelFacts) -> List[str]:
        return [text for kind in self.declared for text in get_volumes(labels).declared.get(kind, ())]
