from __future__ import annotations

from typing import Dict, Iterator, Optional

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import MOST, as_map, certainty_of_share, config_of, ids_of, maps_of, share, subtracts_one


class LabelMapBeforeShift(DataRule):
    """A label_map of raw values, where mmseg maps after it subtracted 1."""

    code = 'MG126'
    needs = ('config',)
    summary = 'label_map names raw values, but reduce_zero_label subtracts 1 before the map is applied.'
    why = 'Every entry of the map meets the neighbour of the value that it was written for.'
    example = Example(wrong='reduce_zero_label=True, label_map={7: 0}', right='label_map={6: 0}  # 7 is 6 then')
    limits = 'A map whose keys also fit the shifted values is not seen.'
    advice = (
        'Write the map for the shifted values, `label_map={shifted}`, or `reduce_zero_label=False` and map 0 to the '
        'ignored label, too. If the config has no map, the data set class makes one from its class list: leave '
        'out that list, or the shift.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        keys = set(config_of(facts).label_map)
        if not keys or not subtracts_one(facts):
            return None
        displaced = sum(count for value, count in facts.values.items() if value + 1 in keys and value not in keys)
        part = share(displaced, sum(facts.values.values()))
        raw = ids_of(maps_of(facts).raw)
        unreached = {key for key in keys if key in raw and key + 1 not in raw and key != 0}
        return certainty_of_share(part) if part > MOST or not unreached or not keys <= raw else LIKELY

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None or facts.config is not None:
            return  # the data set's class makes the map
        label_map = config_of(labels).label_map
        shifted = tuple(sorted((key - 1, label) for key, label in label_map.items() if key > 0))
        lines = (f'label_map={as_map(dict(shifted))}',)
        yield Edit('Write the map for the shifted values.', SAFE, options=(('label_map', shifted),), lines=lines)

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        label_map = config_of(facts).label_map
        return {'shifted': as_map({key - 1: label for key, label in label_map.items() if key > 0}, 8)}

    def evidence(self, facts: LabelFacts) -> str:
        return f'label_map={as_map(config_of(facts).label_map, 8)}, ' + (facts.evidence or 'reduce_zero_label=True')
