from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import as_map, config_of


class LabelMapLeadsOut(Cause):
    """A label_map whose targets are no classes."""

    code = 'MG134'
    explains = ('MG102', 'MG107')
    needs = ('config',)
    summary = 'label_map maps to labels that the head does not know: {wrong}.'
    why = 'The files may be right: the map itself makes the invalid labels.'
    advice = 'A target must be 0..{last} or the ignored label. Write e.g. `label_map={mended}`.'

    def likelihood(self, facts: LabelFacts) -> float:
        wrong = self._wrong(facts)
        if not wrong:
            return 0.0
        return 0.95 if facts.values and set(facts.values) <= set(wrong.values()) else 0.6

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        wrong = self._wrong(facts)
        void = 255 if facts.ignore_index is None else facts.ignore_index
        mended = {key: void if key in wrong else label for key, label in config_of(facts).label_map.items()}
        return {'wrong': as_map(wrong, 8), 'mended': as_map(mended)}

    def evidence(self, facts: LabelFacts) -> str:
        return facts.evidence or f'label_map={as_map(config_of(facts).label_map, 8)}'

    def _wrong(self, facts: LabelFacts) -> Dict[int, int]:
        def valid(label: int) -> bool:
            return 0 <= label < facts.num_classes or label in (facts.ignore_index, 255)

        return {key: label for key, label in config_of(facts).label_map.items() if not valid(label)}
