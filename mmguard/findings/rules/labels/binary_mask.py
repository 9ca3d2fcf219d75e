from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.map_edits import renumber
from mmguard.findings.rule import DataRule, Example, Facts
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

#: Share of 255 from which on it is as likely void.
HALF = 0.5
_SUBTRACTED = 'Is 255 the background, from which 1 was subtracted (0 - 1 is 255 in 8 bits)?'


class BinaryMask(DataRule):
    """A mask of 0 and 255, drawn to be looked at."""

    code = 'MG103'
    needs = ()
    summary = 'These look like 0/255 masks: the foreground is stored as 255, not as class 1.'
    why = (
        'Where 255 is the ignored value nothing crashes, but the foreground is never trained on: IoU 0, Acc nan. '
        'Elsewhere it is a device-side assert.'
    )
    example = Example(wrong='mask: 0 and 255, num_classes=2', right='label_map={255: 1}')
    limits = 'Values do not tell an object stored as 255 from void, nor what a loader without a config makes of them.'
    advice = (
        'Look at a file of each split. If 255 is the object, save the masks with 0 and 1, or write '
        "`dict(type='GuardSegLabels', num_classes=2, label_map={{255: 1}})` directly after LoadAnnotations, and do not "
        'ignore 255. Where the code that loads them divides by 255, or compares with 0, nothing needs to change. If '
        '255 is void, no object is labelled yet.'
    )
    pytorch = 'If 255 is the object: target = (target > 0).long(). If it is void: ignore_index=255.'

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
            return None if may_be_subtracted(facts) else PROVEN
        # In training only the invalid values are known.
        only = set(facts.values) == {VOID} and facts.num_classes <= 2 and not known
        return PROVEN if only else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None:
            yield from map_object(facts, facts.labels)

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {VOID: stored(facts).get(VOID, 0)}

    def evidence(self, facts: LabelFacts) -> str:
        if not is_whole(facts) and not maps_of(facts).raw:
            return facts.evidence
        counts = stored(facts)
        part = share(counts.get(VOID, 0), sum(counts.values()))
        swallowed = '; 255 is ignored, so all of the foreground is' if facts.ignore_index == VOID else ''
        return f'the files hold 0 and 255 only, 255 in {100 * part:.3g} % of the pixels{swallowed}'


def map_object(facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
    """Yield edits of masks of 0 and 255: one is the object."""
    counts = stored(labels)
    # One class, and the background was not counted: where there is a config, who says so changes its heads, too.
    uncounted = labels.num_classes == 1 and facts.config is None
    two = facts._replace(labels=replace(labels, num_classes=2)) if uncounted or not knows_classes(labels) else facts
    # Unlabelled pixels are 255, too, and where they are many, or other classes are known, only a look decides.
    few = labels.num_classes == 2 and share(counts.get(VOID, 0), sum(counts.values())) < HALF
    clear = few and (facts.config is not None or subtracts_one(labels))  # the loader is known
    ways = [({0: 1, VOID: 0}, _SUBTRACTED)] * may_be_subtracted(labels)
    for table, question in [*ways, ({VOID: 1}, '' if clear else 'Is 255 the object in these files?')]:
        for edit in renumber(two, table, ASKS if question else SAFE, question):
            if uncounted:
                edit = both(edit, set_num_classes(facts, 2), f'{edit.title} Count two classes.')
            if subtracts_one(labels):
                edit = both(edit, reduce_zero_label(facts, False), f'{edit.title} Unset reduce_zero_label.')
            yield replace(edit, notes=(*edit.notes, 'Do not ignore 255.'))


def may_be_subtracted(facts: LabelFacts) -> bool:
    """True if files hold only 0 and 255, and 255 fills most: 0 - 1, then, or an object."""
    counts = stored(facts) if facts.maps is not None else {}
    much = share(counts.get(VOID, 0), sum(counts.values())) >= HALF
    return set(counts) == {0, VOID} and facts.num_classes <= 2 and much and not subtracts_one(facts)
