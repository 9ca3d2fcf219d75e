from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import annotations_of, listing
from mmguard.words import counted


class RecordsWithoutKey(Cause):
    """Annotations that lack what the loader asks for."""

    code = 'MG153'
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'Records of the annotation file lack keys that mmdet needs: {keys}.'
    why = 'A KeyError when the data set is built, or at the evaluation.'
    advice = (
        'Add them: `ann.setdefault("iscrowd", 0); ann.setdefault("area", ann["bbox"][2] * ann["bbox"][3])`; an image '
        'needs id, file_name, width and height, an annotation id, image_id, category_id and bbox.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.8 if annotations_of(facts).without_key else 0.0

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        return {'keys': listing(annotations_of(facts).without_key)}

    def evidence(self, facts: LabelFacts) -> str:
        without = annotations_of(facts).without_key
        return listing(f'{key} in {counted(number, "record")}' for key, number in without.items())

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}
