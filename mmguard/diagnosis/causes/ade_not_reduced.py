from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import VOID, subtracts_one


class AdeNotReduced(Cause):
    """ADE20K's files hold 0..150, 0 for what is none of the 150 classes."""

    code = 'MG119'
    summary = 'These look like raw ADE20K ids (0..150): 0 is "other", the classes are 1..150.'
    why = 'Every class is trained as its neighbour, "other" as class 0 (wall), and 150 is out of range.'
    advice = 'Write `reduce_zero_label=True` in the dataset and in LoadAnnotations, as `ADE20KDataset` does.'

    def likelihood(self, facts: LabelFacts) -> float:
        ids = set(facts.values) - {VOID}
        return 0.94 if facts.num_classes == 150 and ids == {150} and not subtracts_one(facts) else 0.0
