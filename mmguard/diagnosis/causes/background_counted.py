from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.class_counts import classes_of_heads
from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import annotations_of, class_lists, config_of, listing
from mmguard.words import counted


class BackgroundCounted(Cause):
    """``num_classes`` of mmdet 1.x, which counted the background."""

    code = 'MG142'
    kinds = ('pixels', 'instances')
    needs = ('config',)
    blames_labels = False
    summary = 'num_classes counts the background, as mmdet 1.x did; since 2.0 it does not.'
    why = 'Labels start at 0 for the first real class now: results are displaced by one, and one output never learns.'
    advice = 'Write `num_classes={listed}` in every head: class 0 is the first object, the background has no number.'

    def likelihood(self, facts: LabelFacts) -> float:
        if config_of(facts).framework != 'mmdet':
            return 0.0
        listed = {len(names) for names in class_lists(facts).values()}
        heads = set(classes_of_heads(config_of(facts)).values())
        # The annotations know as many categories as the heads: then a name is missing in the list.
        if annotations_of(facts).left_out_names and len(annotations_of(facts).categories) in heads:
            return 0.0
        return 0.93 if len(listed) == 1 and heads == {listed.pop() + 1} else 0.0

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        return {'listed': max((len(names) for names in class_lists(facts).values()), default=0)}

    def evidence(self, facts: LabelFacts) -> str:
        heads = classes_of_heads(config_of(facts))
        lists = class_lists(facts)
        return (
            listing(f'{path}={number}' for path, number in heads.items())
            + '; '
            + listing(f'{path}: {counted(len(names), "class")}' for path, names in lists.items())
        )

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}
