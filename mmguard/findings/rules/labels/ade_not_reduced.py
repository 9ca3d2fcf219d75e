from __future__ import annotations

from typing import Iterator, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.map_edits import shift_down
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import VOID, ids_of, maps_of, subtracts_one

#: How its list of classes begins.
ADE = ('wall', 'building', 'sky')


class AdeNotReduced(DataRule):
    """ADE20K's raw ids, 0..150, where 0 is outside the 150 classes."""

    code = 'MG119'
    needs = ()
    summary = 'These look like raw ADE20K ids (0..150): 0 is "other", the classes are 1..150.'
    why = 'Every class is trained as its neighbour, "other" as class 0 (wall), and 150 is out of range.'
    example = Example(wrong='reduce_zero_label=False  # files: 0..150', right='reduce_zero_label=True')
    limits = 'Without the class list of ADE20K it cannot tell other data with ids 0..150: its edit asks.'
    advice = (
        'Look at a file of each split: in those of ADE20K 0 is "other" and 1 is the wall. If so, write '
        '`reduce_zero_label=True` in the dataset and in LoadAnnotations, as `ADE20KDataset` does. If not, a split was '
        'converted already, or 150 is one more class: do not reduce it.'
    )
    pytorch = 'If 0 is "other" and 1 the wall: target = target - 1, ignore_index=-1. If not, find where 150 is from.'

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        known = facts.labels is not None and tuple(facts.labels.class_names[:3]) == ADE
        question = '' if known else 'Is 0 "other" in these files (1 is the first class)?'
        yield from shift_down(facts, SAFE if known else ASKS, question, (0,))

    def evidence(self, facts: LabelFacts) -> str:
        stored = ids_of(maps_of(facts).raw)
        if facts.values or not stored:
            return facts.evidence
        return f'values {min(stored)}..{max(stored)} and no 255, with the class list of ADE20K and no reduce_zero_label'

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        ids = set(facts.values) - {VOID}
        if subtracts_one(facts):
            return None
        # In a few files 150 need not occur. Whoever shifted them by hand has 255 for "other".
        stored = set(maps_of(facts).raw)
        if tuple(facts.class_names[:3]) == ADE and not ids and 0 in stored and VOID not in stored:
            return PROVEN
        return PROVEN if facts.num_classes == 150 and ids == {150} and not subtracts_one(facts) else None
