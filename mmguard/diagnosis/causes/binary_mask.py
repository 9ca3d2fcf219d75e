from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import (
    VOID,
    config_of,
    has_many_channels,
    ids_of,
    is_whole,
    maps_of,
    share,
    stored,
    subtracts_one,
    trained,
)


class BinaryMask(Cause):
    """A mask of 0 and 255, drawn to be looked at."""

    code = 'MG103'
    explains = ('MG104', 'MG106', 'MG107', 'MG116', 'MG125', 'MG135')
    needs = ()
    summary = 'These look like 0/255 masks: the foreground is stored as 255, not as class 1.'
    why = (
        'Where 255 is the ignored value nothing crashes, but the foreground is never trained on: IoU 0, Acc nan. '
        'Elsewhere it is a device-side assert.'
    )
    advice = (
        "Directly after LoadAnnotations write `dict(type='GuardSegLabels', num_classes=2, label_map={{255: 1}})` "
        '(before anything pads with 255), or save the masks with 0 and 1. Do not ignore 255: it is your foreground.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        # Mapped already: training sees the foreground as a class.
        if 255 in config_of(facts).label_map or ids_of(trained(facts)) - {0}:
            return 0.0
        # What comes first is to make one channel of them (MG120); no label_map does that.
        if has_many_channels(facts):
            return 0.0
        counts = stored(facts)
        told = maps_of(facts).raw or (is_whole(facts) and not subtracts_one(facts))
        if told and set(counts) == {0, VOID}:
            return 0.97 if facts.num_classes <= 2 else 0.93
        # In training only the invalid values are known.
        alone = set(facts.values) == {VOID} and facts.num_classes <= 2 and not told
        return 0.95 if alone else 0.0

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {VOID: stored(facts).get(VOID, 0)}

    def evidence(self, facts: LabelFacts) -> str:
        if not is_whole(facts) and not maps_of(facts).raw:
            return facts.evidence
        counts = stored(facts)
        part = share(counts.get(VOID, 0), sum(counts.values()))
        swallowed = '; 255 is ignored, so all of the foreground is' if facts.ignore_index == VOID else ''
        return f'the files hold 0 and 255 only, 255 in {100 * part:.3g} % of the pixels{swallowed}'
