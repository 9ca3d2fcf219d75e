from __future__ import annotations

from typing import Dict

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import config_of, listing


class MinusOneWorkaround(Cause):
    """``ignore_index=-1`` so that ``class_weight[255]`` does not crash."""

    code = 'MG139'
    needs = ('config',)
    blames_labels = False
    summary = 'ignore_index=-1 with class_weight: class_weight[-1], the last class, is summed for each ignored pixel.'
    why = 'It runs, but the loss is divided by far too much: 1.00 where 3.36 is right, in one measured case.'
    advice = (
        "Write `type='GuardedCrossEntropyLoss'` in place of CrossEntropyLoss, and `ignore_index=255` with "
        '`seg_pad_val=255` again.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        config = config_of(facts)
        if config.framework not in ('', 'mmseg') or -1 not in config.ignore_index.values():
            return 0.0
        if not config.ignored_labels_weigh:
            return 0.0
        guarded = config.losses and all(kind.startswith('Guarded') for kind in config.losses.values())
        return 0.88 if config.class_weights and not guarded else 0.0

    def evidence(self, facts: LabelFacts) -> str:
        config = config_of(facts)
        minus = [f'{path}=-1' for path, value in config.ignore_index.items() if value == -1]
        return f'{listing(minus, 4)}; {listing(config.class_weights, 3)}'

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}
