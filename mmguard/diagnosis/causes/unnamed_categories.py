from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import annotations_of, listing
from mmguard.words import counted


class UnnamedCategories(Cause):
    """Category ids that ``categories`` does not name."""

    code = 'MG149'
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'Annotations use category ids that the file does not name: {ids}.'
    why = 'mmdet leaves such annotations out in silence; other loaders take the id as a label, out of range.'
    advice = 'Add what is missing to "categories": `{{"id": {first}, "name": "..."}}`, or correct the category_id.'
    shifted = (
        'The annotations count from 0, the categories from {least}: add {least} to every category_id, '
        '`ann["category_id"] += {least}`, or number the categories from 0.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.9 if annotations_of(facts).unnamed else 0.0

    def advise(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        least = min(found.categories, default=0)
        return self.shifted if set(found.unnamed) == {0} and least == 1 else self.advice

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        found = annotations_of(facts)
        ids = sorted(found.unnamed)
        return {'ids': listing(ids), 'first': ids[0] if ids else 0, 'least': min(found.categories, default=1)}

    def evidence(self, facts: LabelFacts) -> str:
        unnamed = annotations_of(facts).unnamed
        return listing(f'id {value} in {counted(count, "annotation")}' for value, count in sorted(unnamed.items()))

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return annotations_of(facts).unnamed
