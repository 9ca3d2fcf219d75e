from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause


class MoreClassesThanHead(Cause):
    """mmdet's data sets number the names in their class list, whatever the head."""

    code = 'MG108'
    summary = 'The data set lists {classes} classes, the head knows {num_classes}. Too many for it: {extra}.'
    advice = (
        "Either set num_classes={classes} in every head and guard, or list only the head's classes, in its order, in "
        'the dataset: metainfo=dict(classes=(...)); annotations of other classes are then left out. Without a guard '
        'label {num_classes} is trained as background in silence.'
    )
    kinds = ('instances',)

    def likelihood(self, facts: LabelFacts) -> float:
        listed = len(facts.class_names)
        return 0.95 if facts.values and facts.num_classes < listed and max(facts.values) < listed else 0.0
