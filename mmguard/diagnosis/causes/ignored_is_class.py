from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import config_of, knows_classes, listing, predicts_classes


class IgnoredIsClass(Cause):
    """``ignore_index`` inside 0..N-1."""

    code = 'MG113'
    needs = ()
    severity = 'warning'
    blames_labels = False
    summary = 'ignore_index is one of the classes: {ignored} lies in 0..{last}.'
    why = (
        'The class is never a target, but its output stays in the softmax and competes with the others, so it still '
        'influences loss and gradient.'
    )
    advice = (
        'Use a value outside the classes, `ignore_index=255`, and map what is not to be trained to it: '
        '`label_map={{{first}: 255}}`. If that class should not compete, take its output channel away, too.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        if not self._inside(facts):
            return 0.0
        return 0.4 if facts.values else 0.87

    def words(self, facts: LabelFacts) -> Dict[str, object]:
        ignored = sorted(set(self._inside(facts).values()))
        return {'ignored': listing(ignored), 'first': ignored[0] if ignored else 0}

    def evidence(self, facts: LabelFacts) -> str:
        return listing(f'{path}={value}' for path, value in self._inside(facts).items())

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def _inside(self, facts: LabelFacts) -> Dict[str, int]:
        if not predicts_classes(facts) or not knows_classes(facts):
            return {}
        places = dict(config_of(facts).ignore_index)
        if facts.ignore_index is not None and facts.ignore_index not in places.values():
            places['ignore_index'] = facts.ignore_index
        classes = facts.num_classes
        if facts.config is not None and facts.config.head_classes:
            classes = min(facts.config.head_classes.values())
        return {path: value for path, value in places.items() if 0 <= value < classes}
