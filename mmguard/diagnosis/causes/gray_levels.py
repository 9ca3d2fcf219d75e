from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import knows_classes, trained

#: More distinct invalid values than this are no slip and no forgotten class.
MANY = 16
#: Of no data set that is trained on with 8 bits.
MOST_IDS = 190


class GrayLevels(Cause):
    """Many values all over the range."""

    code = 'MG106'
    explains = ('MG107',)
    needs = ()
    summary = 'Many different values ({values}, ...): colours, gray levels or interpolated labels.'
    why = 'The files are pictures of the labels, not labels: a value says how bright a class is drawn, not which it is.'
    advice = (
        'Label files must hold class indices: save single-channel PNG (never JPEG), decode colours to indices, resize '
        'label maps with nearest only, and do not read palette PNGs as colours.'
    )
    two = (
        'For two classes threshold the masks and save them as single-channel PNG: '
        '`Image.fromarray((mask > 127).astype(np.uint8)).save(path)`. Never as JPEG, never resized but with nearest.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        if len(facts.values) > MANY:
            return 0.85
        return 0.7 if not knows_classes(facts) and len(trained(facts)) > MOST_IDS else 0.0

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return facts.values or trained(facts)

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        return {'values': ', '.join(map(str, sorted(self.values(facts))[:8]))}

    def evidence(self, facts: LabelFacts) -> str:
        return facts.evidence or f'{len(trained(facts))} different values'

    def advise(self, facts: LabelFacts) -> str:
        return self.two if facts.num_classes <= 2 else self.advice
