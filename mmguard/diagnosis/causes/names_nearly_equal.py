from __future__ import annotations

from typing import Dict, List

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import annotations_of, folded, listing


class NamesNearlyEqual(Cause):
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

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        return {'pairs': listing((' and '.join(map(repr, names)) for names in self._pairs(facts)), 4)}

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        ids = {name: str(number) for number, name in found.categories.items()}

        def number(name: str) -> int:
            return found.instances_of.get(name, found.instances_of.get(ids.get(name, ''), 0))

        return listing(f'{name!r} {number(name):,} times' for names in self._pairs(facts) for name in names)

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def _pairs(self, facts: LabelFacts) -> List[List[str]]:
        found = annotations_of(facts)
        names = dict.fromkeys(map(str, found.categories.values()))
        if found.format == 'voc':  # its categories are the class list; what the files say is counted
            names = dict.fromkeys(name for name, number in found.instances_of.items() if number)
        alike: Dict[str, List[str]] = {}
        for name in names:
            alike.setdefault(folded(name), []).append(name)
        return [group for group in alike.values() if len(group) > 1]
