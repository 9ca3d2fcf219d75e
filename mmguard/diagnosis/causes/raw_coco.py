from __future__ import annotations

from typing import FrozenSet

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import ids_of, is_whole, trained

#: Category ids that COCO names but never annotated.
NEVER: FrozenSet[int] = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83})


class RawCocoIds(Cause):
    """COCO's 80 categories have ids 1..90, its 171 things and stuff ids up to 182."""

    code = 'MG117'
    explains = ('MG102', 'MG106', 'MG107', 'MG116', 'MG138')
    kinds = ('pixels', 'instances')
    summary = 'These look like raw COCO category ids ({span}, with gaps), not the {num_classes} contiguous labels.'
    why = 'Raw ids exceed the classes and, below that, mean other classes: every label behind a gap is displaced.'
    advice = (
        "Things: load the annotations with `dataset_type='CocoDataset'` (it numbers the names), or renumber: "
        '`cat2label = {{cat_id: i for i, cat_id in enumerate(coco.getCatIds())}}`. COCO-Stuff maps: '
        '`python tools/dataset_converters/coco_stuff164k.py data/coco_stuff164k` writes *_labelTrainIds.png.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        ids = ids_of(trained(facts))
        if min(facts.values) < 0 or not ids:
            return 0.0
        # Maps of things and stuff hold the id - 1.
        never = NEVER if facts.num_classes == 80 else {value - 1 for value in NEVER}
        if is_whole(facts) and len(ids & never) > 0.02 * len(ids):
            return 0.0
        most = {80: 90, 171: 181}.get(facts.num_classes)
        beyond = set(facts.values) - {255}
        if most is None or not beyond or max(beyond) > most:
            return 0.0
        # A full count of at least half the ids without a single gap id leaves little doubt.
        if is_whole(facts) and len(ids) > facts.num_classes / 2:
            return 0.94
        return 0.92 if len(beyond) >= 2 else 0.91 if beyond == {most} else 0.0

    def words(self, facts: LabelFacts) -> dict:
        return {'span': '0..181' if facts.num_classes == 171 else '1..90'}
