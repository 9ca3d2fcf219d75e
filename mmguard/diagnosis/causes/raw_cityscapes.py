from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause


class RawCityscapesIds(Cause):
    """Cityscapes' labelIds run to 33, its trainIds to 18."""

    code = 'MG101'
    summary = 'These look like raw Cityscapes ids (labelIds), not train ids.'
    advice = (
        'Use the *_gtFine_labelTrainIds.png files (mmseg makes them: tools/dataset_converters/cityscapes.py; set '
        "seg_map_suffix='_gtFine_labelTrainIds.png'). Ids below 19 mean other classes too, so no label is right."
    )

    def likelihood(self, facts: LabelFacts) -> float:
        raw = [value for value in facts.values if 19 <= value <= 33 or value == -1]
        if facts.num_classes != 19 or not any(value >= 20 for value in raw):
            return 0.0
        share = len(raw) / len(facts.values)
        return share * (0.95 if len(raw) >= 2 else 0.6)
