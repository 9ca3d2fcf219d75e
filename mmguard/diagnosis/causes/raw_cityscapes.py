from __future__ import annotations

from typing import List

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import ids_of, is_whole, named_like, trained

#: Ids in ``labelIds`` files: more of them than this, up to 33, and it is no other numbering.
MANY_IDS = 15


class RawCityscapesIds(Cause):
    """Cityscapes' labelIds run to 33, its trainIds to 18."""

    code = 'MG101'
    explains = ('MG102', 'MG106', 'MG107', 'MG116', 'MG125')
    summary = 'These look like raw Cityscapes ids (labelIds), not train ids.'
    why = 'Ids below 19 mean other classes in the two numberings, so even the labels that look valid are wrong.'
    advice = (
        'Use the *_gtFine_labelTrainIds.png files (mmseg makes them: '
        '`python tools/dataset_converters/cityscapes.py data/cityscapes`; set '
        "`seg_map_suffix='_gtFine_labelTrainIds.png'`). Ids below 19 mean other classes too, so no label is right."
    )

    def likelihood(self, facts: LabelFacts) -> float:
        raw = [value for value in facts.values if 19 <= value <= 33 or value == -1]
        if facts.num_classes > 33 or not any(value >= 20 for value in raw):
            return 0.0
        share = len(raw) / len(facts.values)
        if named_like(facts, '_labelids'):
            return 0.98 * share
        if facts.num_classes == 19:
            return share * (0.95 if len(raw) >= 2 else 0.6)
        ids = ids_of(trained(facts))
        full = is_whole(facts) and len(ids) > MANY_IDS and 26 in ids and 30 <= max(ids) <= 33
        return 0.92 * share if full else 0.0

    def files(self, facts: LabelFacts) -> List[str]:
        return named_like(facts, '_labelids') or super().files(facts)
