from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of, folded, listing
from mmguard.text.short import short


class NamesNearlyEqual(DataRule):
    """One class under two names that differ in case, blanks or underscores."""

    code = 'MG177'
    explains = ('MG102', 'MG107', 'MG108', 'MG154')
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'Categories differ in case or blanks alone: {pairs}.'
    why = 'Loaders compare letter by letter: the second name is another class, or is left out without a word.'
    advice = (
        'Write one name in all files: `name.text = name.text.strip().lower()` for XML, or give the annotations of a '
        'COCO file the id of one of the two. Do not count the second name as a class.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.96 if self._pairs(facts) else 0.0

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None:
            return
        found, names = annotations_of(facts.labels), facts.labels.class_names
        rename: Dict[str, str] = {}
        counts, label_of = self._counts(found), {name: label for label, name in reversed(list(enumerate(names)))}
        listed = facts.config is not None or found.left_out_names
        for group in self._pairs(facts.labels):
            # The name of the class list where there is one, else the usual one.
            kept = next((name for name in group if listed and name in label_of), '')
            kept = kept or max(group, key=lambda name: counts.get(name, 0)).strip()
            rename.update({name: kept for name in group if name != kept})
        question = f'Is each of {listing(map(repr, rename), 8)} the same class as {listing(set(rename.values()))}?'
        merged = tuple(label_of[name] for name in rename if name in label_of)
        for edit in rewrite(self, facts, 'gives them one name', ASKS, question, rename=rename):
            yield replace(edit, unlabelled=merged)

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        return {'pairs': listing((' and '.join(map(repr, names)) for names in self._pairs(facts)), 4)}

    def evidence(self, facts: LabelFacts) -> str:
        counts = self._counts(annotations_of(facts))
        return listing(f'{short(name)} {counts.get(name, 0):,} times' for names in self._pairs(facts) for name in names)

    def _counts(self, found: AnnotationFacts) -> Dict[str, int]:
        of_ids = {name: found.instances_of.get(str(number), 0) for number, name in found.categories.items()}
        return {**of_ids, **found.instances_of}

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def _pairs(self, facts: LabelFacts) -> List[List[str]]:
        found = annotations_of(facts)
        names = dict.fromkeys(map(str, found.categories.values()))
        if found.format in ('voc', 'labelme'):  # its categories are the class list; what the files say is counted
            names = dict.fromkeys(name for name, number in found.instances_of.items() if number)
        alike: Dict[str, List[str]] = {}
        for name in names:
            alike.setdefault(folded(name), []).append(name)
        return [group for group in alike.values() if len(group) > 1]
