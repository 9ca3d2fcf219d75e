from __future__ import annotations

from typing import List, Sequence, Tuple

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import annotations_of, listing


class DuplicateIds(Cause):
    """Ids that two images, annotations or categories share."""

    code = 'MG147'
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'The annotation file uses ids twice.'
    why = 'COCO looks up by id: the later one wins, the other is lost, and the evaluation counts wrongly.'
    advice = (
        'Number them anew when files are merged: `for i, ann in enumerate(data["annotations"]): ann["id"] = i + 1`; '
        'image ids likewise, together with the image_id of the annotations.'
    )

    names = (
        'Merge them: give all annotations the id of one of the two, '
        '`ann["category_id"] = {{twice: kept}}.get(ann["category_id"], ann["category_id"])`, and remove the other from '
        '"categories". num_classes stays.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        # A name with two ids gets two labels: one label more than names, which is then out of range.
        if annotations_of(facts).duplicate_names and facts.values:
            return 0.93
        return 0.7 if self._parts(facts) else 0.0

    def advise(self, facts: LabelFacts) -> str:
        return self.names if annotations_of(facts).duplicate_names else self.advice

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(self._parts(facts))

    def values(self, facts: LabelFacts) -> dict:
        return {}

    def _parts(self, facts: LabelFacts) -> List[str]:
        found = annotations_of(facts)
        named: List[Tuple[str, Sequence[object]]] = [
            ('image ids', found.duplicate_image_ids),
            ('annotation ids', found.duplicate_annotation_ids),
            ('category ids', found.duplicate_category_ids),
            ('category names', found.duplicate_names),
            ('image files', found.duplicate_files),
        ]
        return [f'{what} used twice: {listing(twice)}' for what, twice in named if twice]
