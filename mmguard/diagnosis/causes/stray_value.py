from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import is_rare

FEW_VALUES = 4


class StrayValue(Cause):
    """A value that only a few files hold."""

    code = 'MG127'
    explains = ('MG102', 'MG107', 'MG116')
    kinds = ('pixels', 'instances')
    summary = 'Only a few files hold {values}: a slip of the annotator, not a class.'
    why = 'One such pixel ends a stock training, at the iteration that happens to draw its file.'
    advice = (
        'Correct the files (the scan lists them all). Until then leave the pixels out: '
        "`dict(type='GuardSegLabels', num_classes={num_classes}, on_invalid='ignore')`. num_classes is right as it is."
    )
    instances = (
        'Correct the annotations (the scan lists them all). Until then leave them out: '
        "`dict(type='GuardInstanceLabels', num_classes={num_classes}, on_invalid='drop')`. num_classes is right as it "
        'is.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        if not is_rare(facts) or len(facts.values) > FEW_VALUES:
            return 0.0
        if set(facts.values) != {facts.num_classes}:
            return 0.8
        # The first value behind the classes is often a class that was forgotten; but not in a handful of pixels.
        return 0.92 if is_rare(facts, files=0.01, elements=1e-4) else 0.7

    def advise(self, facts: LabelFacts) -> str:
        return self.instances if facts.kind == 'instances' else self.advice
