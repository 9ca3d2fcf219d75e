from __future__ import annotations

from typing import Iterator, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.known_sets import COUNTED_WITHOUT_ZERO, VOID_BEHIND, keeps_zero_free
from mmguard.findings.map_edits import more_classes, renumbered, shifted
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.rules.labels.yolo.base import without_labels
from mmguard.findings.usual_edits import set_num_classes
from mmguard.findings.views import certainty_of_share, is_whole, label_share, maps_of, share, trained

#: Share of the pixels: unlabelled pixels are fewer.
MUCH = 0.05
#: Of the files: void is drawn in most of them; the last class of as many (LIP has 19 beside the background) is not.
HALF = 0.5


class OneTooMany(DataRule):
    """The largest label equals the number of classes."""

    kinds = ('pixels', 'instances')
    code = 'MG102'
    summary = 'The only invalid value equals num_classes={num_classes}: one class too many for the head.'
    why = (
        'In a softmax loss such a label is a device-side assert; in the heads of mmdet it is background, in silence. '
        'Usual reasons: the background was not counted, void is not ignored, the class list is one short, or labels '
        'count from 1.'
    )
    advice = (
        'Either {num_classes} is void: directly after LoadAnnotations, in the pipelines of train and val, write '
        "`dict(type='GuardSegLabels', num_classes={num_classes}, label_map={{{num_classes}: {void}}})`. Or "
        'the labels count from 1: `reduce_zero_label=True` if 0 is unlabelled, else shift them. Or a class (often the '
        'background) is missing in the list: add it and write `num_classes={more}` in every head.'
    )
    #: Where 0 is there, in numbers, and so a class.
    from_zero = (
        'Either {num_classes} is void: directly after LoadAnnotations, in the pipelines of train and val, write '
        "`dict(type='GuardSegLabels', num_classes={num_classes}, label_map={{{num_classes}: {void}}})`. Or a class "
        '(often the background, 0) is missing in the list: add it and write `num_classes={more}` in every head. Or 0 '
        'means unlabelled and the classes are 1..{num_classes}: `reduce_zero_label=True`.'
    )
    #: Where the data set names exactly the class that the head lacks.
    listed = (
        'The data set lists {classes} classes: write `num_classes={more}` in every head and guard. The class that the '
        'head lacks: {extra}.'
    )
    instances = (
        'With `num_classes={num_classes}` labels are 0..{last}; if a class is missing in the list, add it and '
        'write `num_classes={more}` in every head. Or the labels (category ids) count from 1: subtract 1. Or an '
        "annotation holds a slip: correct it, or leave it out with `dict(type='GuardInstanceLabels', "
        "num_classes={num_classes}, on_invalid='drop')`."
    )

    otherwise = (
        'Look at one of the files named above, and at the class list: is the value void, a class that the list lacks, '
        'or the last of classes that count from 1? In another split the same number may mean something else.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if set(facts.values) != {facts.num_classes}:
            return None
        return certainty_of_share(label_share(facts)) if facts.kind == 'instances' else PROVEN

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None:
            return
        beyond = labels.num_classes
        lacks = f'Is {beyond} a class that the list lacks (often the background was not counted)?'
        if len(labels.class_names) == beyond + 1:
            yield set_num_classes(facts, beyond + 1, SAFE)
        elif labels.kind != 'pixels' or beyond == 1:
            yield more_classes(facts, beyond + 1, lacks)
            yield from without_labels(self, facts)
        else:
            yield from self._of_pixels(facts, labels, more_classes(facts, beyond + 1, lacks))

    def _of_pixels(self, facts: Facts, labels: LabelFacts, counted: Edit) -> Iterator[Edit]:
        beyond, counts = labels.num_classes, trained(labels)
        known = keeps_zero_free(labels.class_names)
        zeros = share(counts.get(0, 0), sum(counts.values()))
        # Where 0 fills much of the files nobody but a known data set leaves it unlabelled.
        void = 255 if labels.ignore_index is None else labels.ignore_index
        ignored = renumbered(facts, {beyond: void}, ASKS, f'Is {beyond} void, what nobody labelled?')
        # The more classes, the rarer a data set that has just as many.
        if beyond in VOID_BEHIND[-2:] and not known:
            yield from ignored
        if known or 0 < zeros < MUCH or beyond in COUNTED_WITHOUT_ZERO:
            question = '' if known else f'Is 0 unlabelled, and are the classes 1 to {beyond}?'
            yield from shifted(facts, SAFE if known else ASKS, question, (0,))
        if known:
            return
        # Void is drawn around everything; a class is missing in many files, unless no class is.
        files_with = maps_of(labels).files_with
        holders = share(files_with.get(beyond, 0), labels.files)
        around = holders == 1 and any(files_with.get(value, 0) < labels.files for value in range(beyond))
        if around or (beyond in VOID_BEHIND and holders >= HALF):
            yield from ignored
            yield counted
        else:
            yield counted
            yield from ignored

    def advise(self, facts: LabelFacts) -> str:
        if len(facts.class_names) == facts.num_classes + 1:
            return self.listed
        if facts.kind == 'instances':
            return self.instances
        zeros = share(trained(facts).get(0, 0), sum(trained(facts).values())) if is_whole(facts) else 0.0
        return self.from_zero if zeros >= MUCH else self.advice
