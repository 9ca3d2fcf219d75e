from __future__ import annotations

from typing import Iterator, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.known_sets import COUNTED_WITHOUT_ZERO, VOID_BEHIND, keeps_zero_free
from mmguard.findings.map_edits import more_classes, renumber, shift_down
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.rules.labels.yolo.base import drop_rows
from mmguard.findings.usual_edits import set_num_classes
from mmguard.findings.views import certainty_of_share, label_share, maps_of, share, trained

#: Share of the pixels: unlabelled pixels are fewer.
MUCH = 0.05
#: Of the files: void is drawn in most of them; the last class of as many (LIP has 19 and the background) is not.
HALF = 0.5


class OneTooMany(DataRule):
    """The largest label equals the number of classes."""

    kinds = ('pixels', 'instances')
    code = 'MG102'
    summary = 'The only invalid label equals num_classes.'
    title = 'The only invalid label equals num_classes={num_classes}; valid are 0..{last}.'
    why = (
        'In a softmax loss such a label is a device-side assert; in the heads of mmdet it is background, silently. '
        'Usual reasons: the background was not counted, void is not ignored, the class list is one short, or labels '
        'count from 1.'
    )
    example = Example(
        wrong='num_classes=11, labels 0..11',
        right='num_classes=12; or, if 11 is void, label_map={11: 255}',
    )
    limits = 'It cannot tell a class from void: that is the question of its edits.'
    advice = (
        'Look at {num_classes} in one of the files, and at the class list. If it is a class (often the background was '
        'not counted), list it and write `num_classes={more}` in every head. If it is void: '
        '`label_map={{{num_classes}: {void}}}` in GuardSegLabels. If the classes are 1..{num_classes}: '
        '`reduce_zero_label=True`, or subtract 1 from ids. Correct a slip.'
    )
    pytorch = (
        'Look at {num_classes} in the data. If it is a class (often the background was not counted), the model needs '
        '{more} outputs. If the ids count from 1, subtract 1. If it is void, pass ignore_index={num_classes}, or map '
        'it to the label that is ignored already. Correct a slip; until then mmguard.nn or guard_targets leaves it '
        'out.'
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
            yield from drop_rows(self, facts)
        else:
            yield from self._edit_pixels(facts, labels, more_classes(facts, beyond + 1, lacks))

    def _edit_pixels(self, facts: Facts, labels: LabelFacts, counted: Edit) -> Iterator[Edit]:
        beyond, counts = labels.num_classes, trained(labels)
        known = keeps_zero_free(labels.class_names)
        zeros = share(counts.get(0, 0), sum(counts.values()))
        # Where 0 fills much of the files only a known data set leaves it unlabelled.
        void = 255 if labels.ignore_index is None else labels.ignore_index
        ignored = renumber(facts, {beyond: void}, ASKS, f'Is {beyond} your void (unlabelled) value?')
        # The more classes, the rarer a data set that has just as many.
        if beyond in VOID_BEHIND[-2:] and not known:
            yield from ignored
        if known or 0 < zeros < MUCH or beyond in COUNTED_WITHOUT_ZERO:
            question = '' if known else f'Are the classes 1 to {beyond}, and is 0 unlabelled?'
            yield from shift_down(facts, SAFE if known else ASKS, question, (0,))
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
