from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause


class OneTooMany(Cause):
    """The largest label equals the number of classes."""

    code = 'MG102'
    summary = 'The only invalid value equals num_classes={num_classes}: one class too many for the head.'
    advice = (
        'Either {num_classes} is void: map it to the ignored label, label_map={{{num_classes}: {ignore_index}}}. Or '
        'the labels count from 1: reduce_zero_label=True if 0 is unlabelled, else shift them. Or a class (often the '
        'background) is missing in the list: add it and raise num_classes in every head.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.9 if set(facts.values) == {facts.num_classes} else 0.0
