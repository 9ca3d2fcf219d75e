from __future__ import annotations

from collections import Counter
from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import config_of, listing, predicts_classes


class IgnoredDiffers(Cause):
    """Several ignored values in one config."""

    code = 'MG114'
    needs = ('config',)
    blames_labels = False
    summary = 'Parts of the config ignore different values.'
    why = 'What one part fills in as ignored is an invalid label, or a class, for the next.'
    advice = (
        'Use one everywhere, outside the classes: `ignore_index=255` in every head, loss and metric, '
        '`seg_pad_val=255` in the data preprocessor and in the transforms. To change: {odd}.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        if len(set(config_of(facts).ignore_index.values())) < 2 or not predicts_classes(facts):
            return 0.0
        return 0.88 if not facts.values or self._explains(facts) else 0.5

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        places = config_of(facts).ignore_index
        usual = 255 if 255 in places.values() else Counter(places.values()).most_common(1)[0][0]
        return {'odd': listing(f'{path}={value}' for path, value in places.items() if value != usual)}

    def evidence(self, facts: LabelFacts) -> str:
        return listing(f'{path}={value}' for path, value in config_of(facts).ignore_index.items())

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def _explains(self, facts: LabelFacts) -> bool:
        return set(facts.values) <= set(config_of(facts).ignore_index.values())
