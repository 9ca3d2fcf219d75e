from __future__ import annotations

from typing import Dict, Iterator, Optional

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import LIKELY, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import annotations_of, listing
from mmguard.text import quantity


class RecordsWithoutKey(DataRule):
    """Annotations that lack what the loader asks for."""

    code = 'MG153'
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'Records of the annotation file lack keys that mmdet needs.'
    title = 'Records of the annotation file lack keys that mmdet needs: {keys}.'
    why = 'A KeyError when the data set is built, or at the evaluation.'
    example = Example(
        wrong='{"id": 7, "image_id": 1, "category_id": 1, "bbox": [10, 20, 30, 40]}',
        right='{"id": 7, "image_id": 1, "category_id": 1, "bbox": [10, 20, 30, 40], "area": 1200, "iscrowd": 0}',
    )
    limits = 'Programs other than mmdet may need fewer keys, or more.'
    advice = (
        'An image needs id, file_name, width and height, an annotation id, image_id, category_id and bbox: export the '
        'file again if these are missing. Add what can be worked out: `ann.setdefault("iscrowd", 0); '
        'ann.setdefault("area", ann["bbox"][2] * ann["bbox"][3])`.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return LIKELY if annotations_of(facts).without_key else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None:
            yield from rewrite(self, facts, 'Add id, bbox (around polygons) and area (of the box).', SAFE)

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'keys': listing(annotations_of(facts).without_key)}

    def evidence(self, facts: LabelFacts) -> str:
        without = annotations_of(facts).without_key
        return listing(f'{key} in {quantity(number, "record")}' for key, number in without.items())
