from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import is_whole, trained


class ShiftedVoid(Cause):
    """255 minus 1."""

    code = 'MG133'
    explains = ('MG102', 'MG107', 'MG116')
    summary = '254 is void 255 after somebody subtracted 1.'
    why = 'A minus-one copied from elsewhere (`label -= 1`) moves the ignored value into the invalid ones.'
    advice = (
        'Do not subtract 1 by hand. mmseg does it, and keeps 255: `reduce_zero_label=True` where 0 is unlabelled, '
        '`reduce_zero_label=False` where 0 is a class. For files that were saved with the shift: '
        '`label_map={{254: {void}}}`.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        if 254 not in facts.values or len(facts.values) > 2:
            return 0.0
        return 0.9 if not is_whole(facts) or 255 not in trained(facts) else 0.4
