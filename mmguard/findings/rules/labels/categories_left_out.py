from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import POSSIBLE, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.usual_edits import learn
from mmguard.findings.views import annotations_of, listing, nearest
from mmguard.text.short import short
from mmguard.text.words import counted


class CategoriesLeftOut(DataRule):
    """Categories of the file that the class list does not name."""

    code = 'MG154'
    shows_values = False
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

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return POSSIBLE if self._names(facts) else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None:
            slips = self._slips(facts.labels)
            if slips:
                asked = f'Is {listing(f"{short(slip)} a slip for {short(name)}" for slip, name in slips.items())}?'
                yield from rewrite(self, facts, 'Correct the names.', ASKS, asked, rename=slips)
        if facts.labels is not None and facts.config is not None:
            question = f'Are {listing(map(repr, self._names(facts.labels)))} to be learnt, too (else nothing is to do)?'
            yield learn(facts, self._all(facts.labels), ASKS, question)

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        known = self._all(facts)
        names = listing(map(repr, self._names(facts)))
        return {'names': names, 'all': ', '.join(map(repr, known)), 'number': len(known)}

    def evidence(self, facts: LabelFacts) -> str:
        return listing(f'{counted(n, "annotation")} of {short(name)}' for name, n in self._names(facts).items())

    def _slips(self, facts: LabelFacts) -> Dict[str, str]:
        """Name that is left out -> the name of the list that it is nearly."""
        close = nearest(list(self._names(facts)), facts.class_names, 0.8)
        return {name: found for name, found in close.items() if found}

    def _all(self, facts: LabelFacts) -> List[str]:
        return list(dict.fromkeys([*map(str, annotations_of(facts).categories.values()), *self._names(facts)]))

    def _names(self, facts: LabelFacts) -> Dict[str, int]:
        return {name: number for name, number in annotations_of(facts).left_out_names.items() if number}
