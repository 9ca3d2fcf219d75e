from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of, listing


class DuplicateIds(DataRule):
    """Ids that two images, annotations or categories share."""

    code = 'MG147'
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'The annotation file uses ids twice.'
    why = 'COCO looks up by id: the later one wins, the other is never read, and the evaluation counts wrongly.'
    advice = (
        'Number them anew when files are merged: `for i, ann in enumerate(data["annotations"]): ann["id"] = i + 1`; '
        'image ids likewise, together with the image_id of the annotations.'
    )

    names = (
        'Merge them: give all annotations the id of one of the two, '
        '`ann["category_id"] = {{twice: kept}}.get(ann["category_id"], ann["category_id"])`, and remove the other from '
        '"categories". num_classes stays.'
    )

    one_image = 'Two JSON of Labelme name the same image.'
    labelme = (
        'Open the two: a JSON that was copied still names the image of the other. Write its own into `imagePath` '
        '(`imageData` may hold the other, too), or join their shapes.'
    )
    otherwise = (
        'Merge the files again, and number images and categories anew while they are apart: which of two images with '
        'one id an annotation belongs to, a merged file does not say.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        # A name with two ids gets two labels: one label more than names, which is then out of range.
        if annotations_of(facts).duplicate_names and facts.values:
            return PROVEN
        return LIKELY if self._parts(facts) else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None or annotations_of(facts.labels).format == 'labelme':
            return
        found = annotations_of(facts.labels)
        if found.duplicate_names and not found.duplicate_category_ids:
            first: Dict[str, int] = {}
            merged = {number: first.setdefault(name, number) for number, name in found.categories.items()}
            twice = {number: kept for number, kept in merged.items() if number != kept}
            question = f'Is each of {listing(map(repr, found.duplicate_names), 3)} one class?'
            names = facts.labels.class_names
            known = set(names)
            ids = [number for number, name in found.categories.items() if name in known]
            place_of = {number: place for place, number in enumerate(ids)}
            for edit in rewrite(self, facts, 'Give them one id.', ASKS, question, label_map=twice):
                yield replace(edit, unlabelled=tuple(place_of[number] for number in twice if number in place_of))
        else:
            yield from rewrite(self, facts, 'Renumber the annotations.', SAFE)

    def advise(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        if found.duplicate_names:
            return self.names
        return self.labelme if found.format == 'labelme' else self.advice

    def summarise(self, facts: LabelFacts) -> str:
        return self.one_image if annotations_of(facts).format == 'labelme' else self.summary

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
