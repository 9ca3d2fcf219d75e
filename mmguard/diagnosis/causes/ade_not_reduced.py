from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import VOID, ids_of, maps_of, subtracts_one

#: How its list of classes begins.
ADE = ('wall', 'building', 'sky')


class AdeNotReduced(Cause):
    """ADE20K's files hold 0..150, 0 for what is none of the 150 classes."""

    code = 'MG119'
    explains = ('MG102', 'MG107')
    needs = ()
    summary = 'These look like raw ADE20K ids (0..150): 0 is "other", the classes are 1..150.'
    why = 'Every class is trained as its neighbour, "other" as class 0 (wall), and 150 is out of range.'
    advice = 'Write `reduce_zero_label=True` in the dataset and in LoadAnnotations, as `ADE20KDataset` does.'

    def evidence(self, facts: LabelFacts) -> str:
        stored = ids_of(maps_of(facts).raw)
        if facts.values or not stored:
            return facts.evidence
        return f'values {min(stored)}..{max(stored)} and no 255, with the class list of ADE20K and no reduce_zero_label'

    def likelihood(self, facts: LabelFacts) -> float:
        ids = set(facts.values) - {VOID}
        if subtracts_one(facts):
            return 0.0
        # In a few files 150 need not occur. Whoever shifted them by hand has 255 for "other".
        stored = set(maps_of(facts).raw)
        if tuple(facts.class_names[:3]) == ADE and not ids and 0 in stored and VOID not in stored:
            return 0.9
        return 0.94 if facts.num_classes == 150 and ids == {150} and not subtracts_one(facts) else 0.0
