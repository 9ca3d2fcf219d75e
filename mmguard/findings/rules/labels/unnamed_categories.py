from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of, listing, share
from mmguard.text.short import short
from mmguard.text.words import counted

#: From this share of the annotations on it is the list of categories that is wrong.
MANY = 0.2


class UnnamedCategories(DataRule):
    """Category ids that ``categories`` does not name."""

    code = 'MG149'
    #: Where ids are labels, one that no category has makes 1..N look like 1..N+1.
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'Annotations use category ids that the file does not name: {ids}.'
    why = 'mmdet leaves such annotations out in silence; other loaders take the id as a label, out of range.'
    advice = 'Add what is missing to "categories": `{{"id": {first}, "name": "..."}}`, or correct the category_id.'
    shifted = (
        'The annotations count from 0, the categories from {least}: add {least} to every category_id, '
        '`ann["category_id"] += {least}`, or number the categories from 0.'
    )

    otherwise = (
        'Look up in the tool that wrote the file what these ids are, and add them to "categories", each with its name; '
        'or correct the category_id. Which of the two, the file does not say.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return None if not annotations_of(facts).unnamed else PROVEN if self._are_beyond(facts) else LIKELY

    def superseded(self, facts: LabelFacts) -> Sequence[str]:
        return super().superseded(facts) if self._are_beyond(facts) else ()

    def _are_beyond(self, facts: LabelFacts) -> bool:
        return annotations_of(facts).labelled_by == 'category id' and bool(
            set(facts.values) & set(annotations_of(facts).unnamed)
        )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None:
            return
        found = annotations_of(facts.labels)
        unnamed, ids = sum(found.unnamed.values()), sorted(found.categories)
        if self._is_shifted(found) and ids == list(range(1, len(ids) + 1)):
            question = (
                f'Do category_ids count from 0 where "categories" count from 1 (is 0 {short(found.categories[1])})?'
            )
            shift = {number - 1: number for number in ids}
            yield from rewrite(self, facts, 'Add 1 to every category_id.', ASKS, question, label_map=shift)
        elif share(unnamed, found.annotations) < MANY:
            question = 'Are these annotations of nothing that is to be learnt?'
            yield from rewrite(self, facts, 'Leave these annotations out.', ASKS, question)

    def advise(self, facts: LabelFacts) -> str:
        return self.shifted if self._is_shifted(annotations_of(facts)) else self.advice

    def _is_shifted(self, found: AnnotationFacts) -> bool:
        """Whether all annotations count from 0: then the highest id of the categories is nobody's."""
        ids = sorted(found.categories)
        return set(found.unnamed) == {0} and min(ids, default=0) == 1 and not found.instances_of.get(str(ids[-1]))

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        found = annotations_of(facts)
        ids = sorted(found.unnamed)
        return {'ids': listing(ids), 'first': ids[0] if ids else 0, 'least': min(found.categories, default=1)}

    def files(self, facts: LabelFacts) -> List[str]:
        return annotations_of(facts).unnamed_examples

    def evidence(self, facts: LabelFacts) -> str:
        unnamed = annotations_of(facts).unnamed
        return listing(f'id {value} in {counted(count, "annotation")}' for value, count in sorted(unnamed.items()))

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return annotations_of(facts).unnamed
