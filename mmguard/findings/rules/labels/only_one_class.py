from __future__ import annotations

from typing import Optional

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY
from mmguard.findings.rule import DataRule, Example
from mmguard.findings.views import ids_of, listing, maps_of, stored, trained

#: A single file may well show a single class.
ENOUGH_FILES = 5


class OnlyOneClass(DataRule):
    """All valid pixels have the same label."""

    code = 'MG135'
    severity = 'warning'
    needs = ('histogram',)
    summary = 'Only one class occurs in all files.'
    title = 'Only 1 of {num_classes} classes occurs in the files: {only}.'
    why = 'The loss falls to 0 and nothing is learnt. Usually the loader, or a label_map, made one of many values.'
    example = Example(
        wrong='ToTensor() on a mask: k / 255 becomes 0',
        right='torch.as_tensor(np.array(mask), dtype=torch.int64)',
    )
    limits = 'A set of a single class on purpose, next to classes that it lacks, is reported too.'
    advice = (
        'Compare the values as stored with those after each step of the pipeline: `mmguard trace CONFIG`. Usual '
        'reasons: ToTensor on a mask, 16 bits read as 8, the foreground stored as the ignored value.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if len(self._classes(facts)) != 1 or facts.values or facts.num_classes < 2:
            return None
        return LIKELY if len(ids_of(maps_of(facts).raw)) > 1 or facts.files >= ENOUGH_FILES else None

    def describe(self, facts: LabelFacts) -> dict:
        return {'only': listing(sorted(self._classes(facts)))}

    def evidence(self, facts: LabelFacts) -> str:
        return f'values as stored: {listing(sorted(stored(facts)))}; as trained: {listing(sorted(trained(facts)))}'

    def _classes(self, facts: LabelFacts) -> set:
        return ids_of(trained(facts)) - {facts.ignore_index}
