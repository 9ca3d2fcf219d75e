from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import annotations_of, config_of, label_share, listing


class IdsAsLabels(Cause):
    """Category ids of a COCO file, used as labels as they are."""

    code = 'MG138'
    explains = ('MG102', 'MG107', 'MG115', 'MG116')
    kinds = ('instances',)
    needs = ('values', 'annotations')
    summary = 'Category ids are used as labels: they are {ids}, but num_classes={num_classes} means 0..{last}.'
    why = "DETR and plain PyTorch take category_id as it is; a classifier's outputs are 0..N-1."
    advice = (
        'Either renumber the ids in the JSON to 0..{end}, '
        '`label_of = {{cat_id: i for i, cat_id in enumerate(sorted(cat_ids))}}`, or give the model the highest id + 1: '
        "`num_classes={enough}` (DETR's own convention). mmdet's CocoDataset numbers the names itself."
    )

    def likelihood(self, facts: LabelFacts) -> float:
        ids = set(annotations_of(facts).categories)
        by_id = annotations_of(facts).labelled_by == 'category id' and config_of(facts).framework != 'mmdet'
        known = ids and set(facts.values) <= ids and max(ids) < 1000
        numbered = set(range(len(ids))) == ids
        return 0.96 * label_share(facts) if by_id and known and not numbered else 0.0

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        ids = sorted(annotations_of(facts).categories) or [0]
        return {'ids': listing(ids), 'end': len(ids) - 1, 'enough': ids[-1] + 1}
