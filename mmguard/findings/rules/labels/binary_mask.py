from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.map_edits import renumbered
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.usual_edits import both, reduce_zero_label, set_num_classes
from mmguard.findings.views import (
    VOID,
    config_of,
    has_many_channels,
    ids_of,
    is_whole,
    knows_classes,
    maps_of,
    share,
    stored,
    subtracts_one,
    trained,
)

#: Share of 255 from which on it is as likely what nobody labelled.
HALF = 0.5


class BinaryMask(DataRule):
    """A mask of 0 and 255, drawn to be looked at."""

    code = 'MG103'
    needs = ()
    summary = 'These look like 0/255 masks: the foreground is stored as 255, not as class 1.'
    either = (
        'The files hold 0 and 255 alone, and 255 fills most of them: labels 0 and 1 from which 1 was subtracted (in 8 '
        'bits 0 - 1 is 255), or masks whose object is 255.'
    )
    why = (
        'Where 255 is the ignored value nothing crashes, but the foreground is never trained on: IoU 0, Acc nan. '
        'Elsewhere it is a device-side assert.'
    )
    advice = (
        "Directly after LoadAnnotations write `dict(type='GuardSegLabels', num_classes=2, label_map={{255: 1}})` "
        '(before anything pads with 255), or save the masks with 0 and 1. Do not ignore 255: it is your foreground.'
    )

    otherwise = (
        'Look at one of the files: is 255 the object, or what nobody labelled? In some split it is the one, it seems, '
        'and in another the other.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        # Mapped already: training sees the foreground as a class.
        if 255 in config_of(facts).label_map or ids_of(trained(facts)) - {0}:
            return None
        # What comes first is to make one channel of them (MG120); no label_map does that.
        if has_many_channels(facts):
            return None
        counts = stored(facts)
        known = maps_of(facts).raw or (is_whole(facts) and not subtracts_one(facts))
        if known and set(counts) == {0, VOID}:
            return PROVEN
        # In training only the invalid values are known.
        alone = set(facts.values) == {VOID} and facts.num_classes <= 2 and not known
        return PROVEN if alone else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None:
            return
        counts = stored(labels)
        # One class, and the background was not counted: where there is a config, who says so changes its heads, too.
        uncounted = labels.num_classes == 1 and facts.config is None
        two = facts._replace(labels=replace(labels, num_classes=2)) if uncounted or not knows_classes(labels) else facts
        if self._may_be_subtracted(labels):
            question = 'Was 1 subtracted when the files were made, so that the background, 0, became 255?'
            for edit in renumbered(two, {0: 1, VOID: 0}, ASKS, question):
                if uncounted:
                    edit = both(edit, set_num_classes(facts, 2), f'{edit.title} Count two classes.')
                yield edit
        # Unlabelled pixels are 255, too, and where they are many, or other classes are known, nobody can tell.
        clear = labels.num_classes == 2 and share(counts.get(VOID, 0), sum(counts.values())) < HALF
        question = '' if clear else 'Is 255 the object in these files, and not what nobody labelled?'
        for edit in renumbered(two, {VOID: 1}, SAFE if clear else ASKS, question):
            if uncounted:
                edit = both(edit, set_num_classes(facts, 2), f'{edit.title} Count two classes.')
            if subtracts_one(labels):
                edit = both(edit, reduce_zero_label(facts, False), f'{edit.title} Unset reduce_zero_label.')
            yield replace(edit, notes=(*edit.notes, 'Do not ignore 255.'))

    def summarise(self, facts: LabelFacts) -> str:
        return self.either if self._may_be_subtracted(facts) else self.summary

    def _may_be_subtracted(self, facts: LabelFacts) -> bool:
        counts = stored(facts)
        much = share(counts.get(VOID, 0), sum(counts.values())) >= HALF
        return facts.num_classes <= 2 and much and not subtracts_one(facts)

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {VOID: stored(facts).get(VOID, 0)}

    def evidence(self, facts: LabelFacts) -> str:
        if not is_whole(facts) and not maps_of(facts).raw:
            return facts.evidence
        counts = stored(facts)
        part = share(counts.get(VOID, 0), sum(counts.values()))
        swallowed = '; 255 is ignored, so all of the foreground is' if facts.ignore_index == VOID else ''
        return f'the files hold 0 and 255 only, 255 in {100 * part:.3g} % of the pixels{swallowed}'
