from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import as_map, ids_of, is_whole, trained


class CountsFromOne(Cause):
    """Labels 1..N where 0..N-1 are meant."""

    code = 'MG115'
    explains = ('MG102', 'MG107')
    kinds = ('pixels', 'instances')
    needs = ('histogram',)
    summary = 'The labels count from 1: {least}..{most}, 0 never occurs, but num_classes={num_classes} means 0..{last}.'
    why = 'Every class is trained as its neighbour, the first class never, and the last one is out of range.'
    advice = (
        'Write `reduce_zero_label=True` in the dataset (mmseg subtracts 1 and ignores 0), or '
        '`label_map={pairs}` in GuardSegLabels. Do not raise num_classes: class 0 would stay empty.'
    )
    instances = (
        "Renumber the category ids to 0..{last} (subtract 1), or use a data set class that does, as mmdet's "
        'CocoDataset. DETR and its like take ids as they are: there write `num_classes={most_and_one}`, the highest '
        'id + 1.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        ids = ids_of(trained(facts))
        if not is_whole(facts) or 0 in ids or 1 not in ids or any(value < 0 for value in facts.values):
            return 0.0
        most, last = max(ids), facts.num_classes - 1
        if last < most <= last + 2 and len(ids) >= 0.5 * most:
            return 0.95
        return 0.0

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        ids = ids_of(trained(facts)) or {1}
        pairs = {value: value - 1 for value in sorted(ids)}
        return {'least': min(ids), 'most': max(ids), 'most_and_one': max(ids) + 1, 'pairs': as_map(pairs)}

    def advise(self, facts: LabelFacts) -> str:
        return self.instances if facts.kind == 'instances' else self.advice
