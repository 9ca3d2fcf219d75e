from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import annotations_of, listing
from mmguard.words import counted


class CategoriesLeftOut(Cause):
    """Categories of the file that the class list does not name."""

    code = 'MG154'
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    severity = 'warning'
    blames_labels = False
    summary = 'Annotations are left out without a word: the class list does not name {names}.'
    why = 'The objects are trained as background. That is right where you chose the classes, else the list is short.'
    advice = (
        'If they are to be learnt, name them, in the order of the file: `metainfo=dict(classes=({all},))`, and write '
        '`num_classes={number}` in every head. Else nothing is to do.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.45 if self._names(facts) else 0.0

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        known = [str(name) for name in annotations_of(facts).categories.values()]
        names = listing(map(repr, self._names(facts)))
        return {'names': names, 'all': ', '.join(map(repr, known)), 'number': len(known)}

    def evidence(self, facts: LabelFacts) -> str:
        return listing(f'{counted(n, "annotation")} of {name!r}' for name, n in self._names(facts).items())

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def _names(self, facts: LabelFacts) -> Dict[str, int]:
        return {name: number for name, number in annotations_of(facts).left_out_names.items() if number}
