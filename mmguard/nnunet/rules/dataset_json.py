"""Rules about dataset.json, and functions that all rules about volumes share."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from mmguard.facts.labels import LabelFacts
from mmguard.facts.volumes import CaseFault, VolumeFacts
from mmguard.findings.edits import Edit
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import as_map, join_items
from mmguard.language import Message
from mmguard.nnunet.conversions import CONVERSIONS, list_missing_entries
from mmguard.text import quantity, shorten

#: Maximum ratio of the count of an annotation mistake to the count of the adjacent value.
_RARE = 0.01


def get_volumes(labels: LabelFacts) -> VolumeFacts:
    return labels.volumes or VolumeFacts()


def get_labels_by_name(facts: LabelFacts) -> Dict[str, Any]:
    """Return the labels of dataset.json as {name: value}, or {} if they are not a JSON object."""
    labels = get_volumes(facts).content.get('labels')
    if not isinstance(labels, dict):
        return {}
    if is_old(facts) or all(str(value).isdecimal() and isinstance(name, str) for value, name in labels.items()):
        labels = {str(name): value for value, name in labels.items()}  # v1, or v2 written in its form
    return {
        name: int(value) if isinstance(value, str) and value.isdecimal() else value for name, value in labels.items()
    }


def is_old(labels: LabelFacts) -> bool:
    """True if dataset.json is in the layout of nnU-Net v1 or of the Decathlon."""
    return get_volumes(labels).layout in CONVERSIONS


def as_written(facts: LabelFacts, labels: Mapping[str, Any]) -> Dict[str, Any]:
    """Convert labels from {name: value} to the layout of this dataset.json; v1 has {value: name}."""
    return {str(value): name for name, value in labels.items()} if is_old(facts) else dict(labels)


def find_mistakes(labels: LabelFacts, counts: Mapping[int, int]) -> Dict[int, int]:
    """Map each rare invalid value to an adjacent value (not 0) that is over 100 times as frequent in ``counts``."""
    return {
        value: near
        for value, count in labels.values.items()
        for near in (value - 1, value + 1)
        if near and count < _RARE * counts.get(near, 0)
    }


def rewrite_volumes(
    labels: LabelFacts,
    title: str,
    question: str = '',
    lines: Sequence[str] = (),
    dataset_json: Optional[Mapping[str, Any]] = None,
    **changes: Any,
) -> Edit:
    """Return an edit that the user makes by hand, in dataset.json and in all label files.

    Args:
        dataset_json (dict, optional): Key of dataset.json -> new value.
        changes: Changes of the label files, as arguments of :func:`~mmguard.formats.volumes.record.relabel`.
    """
    files = {get_volumes(labels).root: {'dataset_json': dataset_json or (), **changes}}
    return Edit(title, question, files=files, lines=tuple(lines), is_manual=True)


def write_renumbering(pairs: Mapping[int, int]) -> Sequence[str]:
    """Return the lines of Python code that renumber a label array ``seg``."""
    loop = f'for value, label in {as_map(pairs)}.items(): seg[old == value] = label'
    return ('old = seg.copy()', loop) if pairs else ()


class DeclaredCause(DataRule):
    """Base class of rules about dataset.json."""

    kinds = ('voxels',)
    needs = ('volumes',)
    shows_values = False
    #: Kinds of faults in ``VolumeFacts.declared`` that the rule reports.
    declared: ClassVar[Tuple[str, ...]] = ()

    def report_texts(
        self, facts: Facts, texts: Sequence[str], certainty: str = PROVEN, evidence: str = '', **more: Any
    ) -> Iterator[Finding]:
        """Yield a finding about dataset.json unless ``texts`` is empty; pass ``more`` to ``report_in``."""
        if texts:
            yield self.report_in(facts, certainty, evidence or '; '.join(texts), files=['dataset.json'], **more)

    def list_texts(self, labels: LabelFacts) -> List[str]:
        return [text for kind in self.declared for text in get_volumes(labels).declared.get(kind, ())]


#: Key of dataset.json -> example value, for keys that the facts do not contain.
_VALUES = {'channel_names': '{"0": "NAME OF CHANNEL 0"}', 'labels': '{"background": 0, "NAME OF CLASS 1": 1}'}


class DatasetJson(DeclaredCause):
    code = 'MG180'
    before = 'MG132'  # without a dataset.json nothing is known
    aliases = ('MG183',)
    declared = ('keys',)
    summary = 'nnU-Net v2 cannot use the dataset.json as it is.'
    why = 'nnU-Net stops before it reads a single case.'
    example = Example(wrong='"modality": {"0": "CT"}', right='"channel_names": {"0": "CT"}, "file_ending": ".nii.gz"')
    limits = 'Only the keys that planning and training read are checked, not the keys of your own tools.'
    advice = 'Correct these keys. `channel_names` needs an entry per channel, numbered from "0" (three for RGB images).'
    advice_missing = 'Add `{keys}` to dataset.json, with one entry of channel_names per channel (three for RGB images).'
    advice_old = 'The data set is written for nnU-Net v1: convert it with `{conversion}`.'
    advice_incomplete = 'Add `{entries}` to dataset.json, which the conversion to v2 needs; then run `{conversion}`.'

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        volumes = get_volumes(labels)
        ending = volumes.file_ending if volumes.file_ending.startswith('.') else '.nii.gz'
        values = {**_VALUES, 'numTraining': str(volumes.cases), 'file_ending': json.dumps(ending)}
        keys = ', '.join(f'"{key}": {value}' for key, value in values.items() if key not in volumes.content)
        words, advice = {'keys': keys}, self.advice_missing if keys else self.advice
        if 'modality' in volumes.content:
            layout = 'msd' if volumes.layout == 'msd' else 'v1'
            entries = list_missing_entries(layout, volumes.content)
            words = {'entries': entries, 'conversion': CONVERSIONS[layout]}
            advice = self.advice_incomplete if entries else self.advice_old
        yield from self.report_texts(facts, self.list_texts(labels), words=words, advice=advice)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        volumes, content = get_volumes(labels), get_volumes(labels).content
        if 'modality' in content and not is_old(labels):
            keys = {'channel_names': content['modality'], 'file_ending': volumes.file_ending or '.nii.gz'}
            written = {key: value for key, value in keys.items() if key not in content}
            entries = [f'"{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in written.items()]
            if written:
                yield rewrite_volumes(
                    labels, 'Add the keys of nnU-Net v2 in place of "modality".', '', entries, written
                )


class NumberOfCases(DeclaredCause):
    code = 'MG582'
    before = 'MG132'
    declared = ('count',)
    summary = 'numTraining in dataset.json differs from the number of cases.'
    why = 'nnU-Net stops, or trains without cases that were not copied.'
    example = Example(wrong='"numTraining": 40 with 39 files in labelsTr', right='"numTraining": 39')
    advice = 'Copy the cases that are missing, or write `"numTraining": {cases}`.'

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        words = {'cases': get_volumes(labels).cases}
        yield from self.report_texts(facts, self.list_texts(labels), LIKELY, words=words)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        cases = get_volumes(labels).cases
        title, lines = 'Correct numTraining.', (f'"numTraining": {cases}',)
        yield rewrite_volumes(labels, title, 'Does the data set hold all your cases?', lines, {'numTraining': cases})


class LabelList(DeclaredCause):
    code = 'MG181'
    before = 'MG132'
    declared = ('labels',)
    summary = 'nnU-Net v2 cannot use the labels in dataset.json as they are.'
    title = 'nnU-Net refuses the labels in dataset.json: {faults}.'
    why = 'nnU-Net uses a label as the index of an output channel, so it refuses to plan if the labels have a gap.'
    example = Example(
        wrong='"labels": {"background": 0, "liver": 1, "tumor": 4}',
        right='"labels": {"background": 0, "liver": 1, "tumor": 2}',
    )
    limits = 'Cannot tell whether a class name in dataset.json is assigned to the right label value.'
    advice = (
        'Write each label once as "name": integer, "background" first and "ignore" last: `"labels": {{"background": 0, '
        '"liver": 1, "tumor": 2, "ignore": 3}}`. Only if the values in the label files have a gap, renumber them '
        'in these files (`seg[seg == 4] = 2`) and in dataset.json.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        texts, held = self.list_texts(labels), sorted(labels.histogram)
        found = f'; the label files hold {join_items(held, 16)}' if held else ''
        evidence = f'"labels": {shorten(get_volumes(labels).content.get("labels"))}{found}'
        yield from self.report_texts(facts, texts, evidence=evidence, words={'faults': '; '.join(texts[:2])})

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        known = get_labels_by_name(labels)
        held = labels.histogram
        if not known:
            yield from self._declare_values(labels)
        asks_zero = known.get('background') != 0 and (0 in known.values() or 0 in held)
        if 'background' not in known and 0 not in known.values():
            known = {'background': 0, **known}
        values = list(known.values())
        if not all(type(value) is int for value in values) or len(set(values)) < len(values) or 0 not in values:
            return  # regions, strings, duplicate values: the numbers of the classes are unknown
        last = known.get('ignore')
        ordered = sorted(values, key=lambda value: (value == last, value))
        number = {old: new for new, old in enumerate(ordered)}
        names = {('background' if value == 0 else name): number[value] for name, value in known.items()}
        written = as_written(labels, names)
        if held and set(held) <= set(number.values()):  # the label files have no gap
            pairs, called = {}, {label: name for name, label in names.items()}
            asked = [f'Does {value} in the label files mean {called[value]}?' for value in held if value not in values]
        else:
            mistakes = {value: number[near] for value, near in find_mistakes(labels, held).items() if near in number}
            pairs = {**{old: new for old, new in number.items() if old != new}, **mistakes}
            asked = [f'Is {value} a mistake for {ordered[new]}?' for value, new in mistakes.items()]
        asked += ['Is 0 the background?'] if asks_zero else []
        title = 'Correct the labels in dataset.json; the label files stay as they are.'
        title = 'Number the labels without a gap, in dataset.json and in all label files.' if pairs else title
        lines = (f'"labels": {json.dumps(written, ensure_ascii=False)}', *write_renumbering(pairs))
        files = {'label_map': pairs} if pairs else {}
        yield rewrite_volumes(labels, title, ' '.join(asked), lines, {'labels': written}, **files)

    def _declare_values(self, facts: LabelFacts) -> Iterator[Edit]:
        """Yield an edit that declares the values of the label files with placeholder names, if they have no gap."""
        found = sorted(facts.histogram)
        if found != list(range(len(found))) or len(found) < 2:
            return
        names = {'background': 0, **{f'NAME OF {value}': value for value in found[1:]}}
        labels = as_written(facts, names)
        title, line = 'Declare the values of the label files in dataset.json, with class names.', json.dumps(labels)
        yield rewrite_volumes(facts, title, 'Is 0 the background?', [f'"labels": {line}'], {'labels': labels})


class RegionList(DeclaredCause):
    code = 'MG182'
    before = 'MG132'
    declared = ('regions',)
    summary = 'Regions are declared, but regions_class_order does not match the regions.'
    why = 'nnU-Net predicts a mask per region and fills it with its label in regions_class_order, largest region first.'
    example = Example(
        wrong='"labels": {"background": 0, "whole": [1, 2], "core": [2]}',
        right='"regions_class_order": [1, 2] in addition to these labels',
    )
    limits = 'Regions are assumed to be listed from the largest to the smallest.'
    advice = (
        'List one label per region in `regions_class_order`, in the order of `labels` without background: `"labels": '
        '{{"background": 0, "whole": [1, 2], "core": [2]}}, "regions_class_order": [1, 2]`.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        yield from self.report_texts(facts, self.list_texts(labels))

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        known = get_labels_by_name(labels)
        regions = [value for name, value in known.items() if name not in ('background', 'ignore') and value != 0]
        members = [value if isinstance(value, list) else [value] for value in regions]
        if not all(isinstance(value, int) for region in members for value in region):
            return
        order: List[int] = []
        later: Set[int] = set()
        for region in reversed(members):
            order[:0] = [next((value for value in region if value not in later), region[0])] if region else []
            later.update(region)
        question = 'Does each region in `"labels"` contain the regions listed after it?'
        lines = (f'"regions_class_order": {order}',)
        title = 'Set the order of the regions.'
        yield rewrite_volumes(labels, title, question, lines, {'regions_class_order': order})


class VolumeCause(DataRule):
    """Base class of rules about faults of single cases, which a scan's JSON lists in ``facts.volumes.faults``."""

    kinds = ('voxels',)
    needs: ClassVar[Tuple[str, ...]] = ('volumes',)
    #: Kinds of faults in ``VolumeFacts.faults`` that the rule reports.
    shown_by: ClassVar[Tuple[str, ...]] = ()

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        if self.faults(labels):
            yield self.report_cases(facts, labels)

    def report_cases(self, facts: Facts, labels: LabelFacts, certainty: str = PROVEN, **more: Any) -> Finding:
        """Return a finding that counts the faulty cases and names their files; pass ``more`` to ``report_in``."""
        faults = self.faults(labels)
        cases = len({fault.case for fault in faults})
        first = max(faults, key=lambda fault: fault.voxels)
        number = Message('{number:,} of {cases}', number=cases, cases=quantity(get_volumes(labels).cases, 'case'))
        evidence = Message('{cases}, e.g. {file}: {detail}', cases=number, file=first.file, detail=first.detail)
        return self.report_in(facts, certainty, evidence, files=list_files(faults), **more)

    def faults(self, labels: LabelFacts) -> List[CaseFault]:
        return get_volumes(labels).find_faults(*self.shown_by)


def list_files(faults: Sequence[CaseFault]) -> List[str]:
    """Return the files of ``faults`` without duplicates."""
    return list(dict.fromkeys(fault.file for fault in faults))


def find_ignore_value(labels: LabelFacts) -> int:
    """Return the ignore label (the highest declared label), or without an ignore label, the highest label + 1."""
    highest = max(get_volumes(labels).expected, default=0)
    return highest if labels.ignore_index is not None else highest + 1
