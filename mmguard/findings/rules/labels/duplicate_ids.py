from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import annotations_of, listing


class DuplicateIds(DataRule):
    """Ids that two images, annotations or categories share."""

    code = 'MG147'
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'Images, annotations or categories are listed twice.'
    title_names = 'Categories with different ids share a name.'
    why = 'COCO looks up by id: the later one wins, the other is never read, and the evaluation counts wrongly.'
    example = Example(wrong='"images": [{"id": 1}, {"id": 1}]', right='"images": [{"id": 1}, {"id": 2}]')
    limits = 'A merged file does not say to which of two images with one id an annotation belongs.'
    advice = (
        'Merge the files again, and number images, annotations and categories while they are apart, together with '
        'image_id and category_id. If two categories share a name, give all annotations the id of one and remove the '
        'other from "categories" (num_classes stays), or rename it. Of Labelme, write its own image into `imagePath` '
        'of each JSON, or join their shapes.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        # A name with two ids gets two labels: one label more than names, which is then out of range.
        if annotations_of(facts).duplicate_names and facts.values:
            return PROVEN
        return LIKELY if self._parts(facts) else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None:
            return
        found = annotations_of(facts.labels)
        if found.duplicate_names and not found.duplicate_category_ids:
            first: Dict[str, int] = {}
            merged = {number: first.setdefault(name, number) for number, name in found.categories.items()}
            twice = {number: kept for number, kept in merged.items() if number != kept}
            question = f'Do all categories named {listing(map(repr, found.duplicate_names), 3)} mean the same?'
            names = facts.labels.class_names
            known = set(names)
            ids = [number for number, name in found.categories.items() if name in known]
            place_of = {number: place for place, number in enumerate(ids)}
            for edit in rewrite(self, facts, 'Give them one id for each name.', ASKS, question, label_map=twice):
                yield replace(edit, unlabelled=tuple(place_of[number] for number in twice if number in place_of))
        else:
            yield from rewrite(self, facts, 'Renumber the annotations.', SAFE)

    def choose_title(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        return self.title_names if found.duplicate_names and len(self._parts(facts)) == 1 else self.summary

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(self._parts(facts))

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
