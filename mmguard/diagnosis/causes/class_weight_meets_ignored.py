from __future__ import annotations

from typing import Dict, List

from mmguard.diagnosis.class_counts import has_no_object
from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import VOID, config_of, is_whole, listing, trained
from mmguard.words import counted


class ClassWeightMeetsIgnored(Cause):
    """mmseg's cross entropy looks up the class weight of the ignored label, too."""

    code = 'MG110'
    needs = ('config',)
    blames_labels = False
    summary = 'class_weight together with ignored pixels: the loss looks up class_weight[{ignored}]. Labels are right.'
    why = (
        "mmseg's CrossEntropyLoss averages by the weights of all labels, the ignored one among them: an IndexError, or "
        'a CUDA assert that surfaces somewhere else (in the accuracy).'
    )
    advice = (
        "Write `type='GuardedCrossEntropyLoss'` in place of CrossEntropyLoss; class_weight stays. The labels need no "
        'change, and ignore_index={ignored} is right: -1 instead weighs every ignored pixel as the last class.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        config = config_of(facts)
        if config.framework not in ('', 'mmseg') or not config.ignored_labels_weigh or not self._weighted(facts):
            return 0.0
        ignored = self._ignored(facts)
        if 0 <= ignored < min(map(len, self._weighted(facts).values())):
            return 0.0
        if facts.values:
            return 0.35
        if is_whole(facts):
            return 0.95 if ignored in trained(facts) else 0.5  # padding brings some
        return 0.85

    def severity_of(self, facts: LabelFacts) -> str:
        return 'error' if self.likelihood(facts) > 0.5 else 'warning'

    def words(self, facts: LabelFacts) -> Dict[str, int]:
        return {'ignored': self._ignored(facts)}

    def evidence(self, facts: LabelFacts) -> str:
        ignored = self._ignored(facts)
        weights = [f'{path} has {counted(len(row), "entry")}' for path, row in self._weighted(facts).items()]
        pixels = trained(facts).get(ignored, 0) if is_whole(facts) else 0
        seen = f'{counted(pixels, "pixel")} of {ignored}' if pixels else f'ignore_index={ignored} (padding has it, too)'
        return f'{listing(weights, 3)}; {seen}'

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def _ignored(self, facts: LabelFacts) -> int:
        if facts.ignore_index is not None:
            return facts.ignore_index
        return next(iter(config_of(facts).ignore_index.values()), VOID)

    def _weighted(self, facts: LabelFacts) -> Dict[str, List[float]]:
        """Class weights of losses that are not guarded."""
        config = config_of(facts)

        def kind(path: str) -> str:
            return config.losses.get(path.rpartition('.')[0], 'CrossEntropyLoss')

        return {
            path: row
            for path, row in config.class_weights.items()
            if row and kind(path) == 'CrossEntropyLoss' and not has_no_object(path, config)
        }
