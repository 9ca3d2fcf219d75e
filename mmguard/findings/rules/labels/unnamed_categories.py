from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import annotations_of, listing, share
from mmguard.text import quantity, shorten

#: From this share of the annotations on it is the list of categories that is wrong.
MANY = 0.2


class UnnamedCategories(DataRule):
    """Category ids that ``categories`` does not name."""

    code = 'MG149'
    #: Where ids are labels, one that no category has makes 1..N look like 1..N+1.
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'Annotations use category ids that the file does not name.'
    title = 'Annotations use category ids that the file does not name: {ids}.'
    why = 'mmdet leaves such annotations out silently; other loaders take the id as a label, out of range.'
    example = Example(
        wrong='"category_id": 9, "categories": [{"id": 1, "name": "cat"}]',
        right='"categories": [{"id": 1, "name": "cat"}, {"id": 9, "name": "dog"}]',
    )
    limits = 'Whether the list or the annotations are wrong, the file does not say.'
    advice = (
        'Look up in the tool that wrote the file what these ids are, and add them to "categories", `{{"id": {first}, '
        '"name": "..."}}`, or correct the category_id. If all annotations count from 0 where the categories count from '
        '{least}: `ann["category_id"] += {least}`.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return None if not annotations_of(facts).unnamed else PROVEN if self._are_beyond(facts) else LIKELY

    def find_superseded(self, facts: LabelFacts) -> Sequence[str]:
        return super().find_superseded(facts) if self._are_beyond(facts) else ()

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
                f'Do category_ids count from 0 where "categories" count from 1 (is 0 {shorten(found.categories[1])})?'
            )
            shift = {number - 1: number for number in ids}
            yield from rewrite(self, facts, 'Add 1 to every category_id.', ASKS, question, label_map=shift)
        elif share(unnamed, found.annotations) < MANY:
            question = 'Are these annotations of objects that are not to be learnt?'
            yield from rewrite(self, facts, 'Leave these annotations out.', ASKS, question)

    def _is_shifted(self, found: AnnotationFacts) -> bool:
        """True if all annotations count from 0: then no annotation has the highest id of the categories."""
        ids = sorted(found.categories)
        return set(found.unnamed) == {0} and min(ids, default=0) == 1 and not found.instances_of.get(str(ids[-1]))

    def describe(self, facts: LabelFacts) -> Dict[str, object]:
        found = annotations_of(facts)
        ids = sorted(found.unnamed)
        return {'ids': listing(ids), 'first': ids[0] if ids else 0, 'least': min(found.categories, default=1)}

    def files(self, facts: LabelFacts) -> List[str]:
        return annotations_of(facts).unnamed_examples

    def evidence(self, facts: LabelFacts) -> str:
        unnamed = annotations_of(facts).unnamed
        return listing(f'id {value} in {quantity(count, "annotation")}' for value, count in sorted(unnamed.items()))

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return annotations_of(facts).unnamed
