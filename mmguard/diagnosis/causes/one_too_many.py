from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import is_whole, label_share, share, trained

#: Share of the pixels: unlabelled pixels are fewer.
MUCH = 0.05


class OneTooMany(Cause):
    """The largest label equals the number of classes."""

    kinds = ('pixels', 'instances')
    code = 'MG102'
    explains = ('MG107',)
    summary = 'The only invalid value equals num_classes={num_classes}: one class too many for the head.'
    why = (
        'In a softmax loss such a label is a device-side assert; in the heads of mmdet it is background, in silence. '
        'Usual reasons: the background was not counted, void is not ignored, the class list is one short, or labels '
        'count from 1.'
    )
    advice = (
        'Either {num_classes} is void: map it to the ignored label, `label_map={{{num_classes}: {void}}}`. Or '
        'the labels count from 1: `reduce_zero_label=True` if 0 is unlabelled, else shift them. Or a class (often the '
        'background) is missing in the list: add it and write `num_classes={more}` in every head.'
    )
    #: Where 0 is there, in numbers, and so a class.
    from_zero = (
        'Either {num_classes} is void: map it to the ignored label, `label_map={{{num_classes}: {void}}}`. Or a class '
        '(often the background, 0) is missing in the list: add it and write `num_classes={more}` in every head. Or 0 '
        'means unlabelled and the classes are 1..{num_classes}: `reduce_zero_label=True`.'
    )
    #: Where the data set names exactly the class that the head lacks.
    listed = (
        'The data set lists {classes} classes: write `num_classes={more}` in every head and guard. The class that the '
        'head lacks: {extra}.'
    )
    instances = (
        'With `num_classes={num_classes}` labels are 0..{last}. Either a class is missing in the list: add it and '
        'write `num_classes={more}` in every head. Or the labels (category ids) count from 1: subtract 1. Or an '
        "annotation holds a slip: correct it, or leave it out with `dict(type='GuardInstanceLabels', "
        "num_classes={num_classes}, on_invalid='drop')`."
    )

    def likelihood(self, facts: LabelFacts) -> float:
        if set(facts.values) != {facts.num_classes}:
            return 0.0
        return 0.9 * (label_share(facts) if facts.kind == 'instances' else 1.0)

    def advise(self, facts: LabelFacts) -> str:
        if len(facts.class_names) == facts.num_classes + 1:
            return self.listed
        if facts.kind == 'instances':
            return self.instances
        zeros = share(trained(facts).get(0, 0), sum(trained(facts).values())) if is_whole(facts) else 0.0
        return self.from_zero if zeros >= MUCH else self.advice
