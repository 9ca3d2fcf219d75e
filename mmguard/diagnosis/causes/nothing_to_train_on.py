from __future__ import annotations

from typing import Dict, List

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import config_of, ids_of, maps_of, number_of, share, stored, trained
from mmguard.words import counted


class NothingToTrainOn(Cause):
    """Files, or a whole set, of ignored pixels alone."""

    code = 'MG128'
    needs = ()
    summary = 'Label files without a single pixel to train on.'
    why = (
        'A batch of them has no valid pixel: OHEM indexes an empty tensor, averages divide by 0 (nan), and under DDP '
        'a rank without a graph hangs the others.'
    )
    advice = (
        "Leave these files out of the split, or label them. In training `dict(type='RandomCrop', crop_size=..., "
        'cat_max_ratio=0.75)` avoids most crops that are void alone, and '
        "`dict(type='GuardedLoss', loss=dict(type='OhemCrossEntropy', ...))` gives an empty batch an attached 0."
    )
    every = (
        'Every pixel of every file is ignored: look at the values as stored, and at what the loader makes of them '
        '(`mmguard trace CONFIG`). Usual reasons: reduce_zero_label on files of 0 alone, a label_map to the ignored '
        'label, files of 255 alone.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        if self._nothing_at_all(facts):
            return 0.9
        number = self._number(facts)
        if not number:
            return 0.0
        ohem = any('Ohem' in kind or 'OHEM' in kind for kind in config_of(facts).losses.values())
        return (0.8 if ohem else 0.5) + 0.1 * share(number, facts.files)

    def severity_of(self, facts: LabelFacts) -> str:
        return 'error' if self._nothing_at_all(facts) else 'warning'

    def advise(self, facts: LabelFacts) -> str:
        return self.every if self._nothing_at_all(facts) else self.advice

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def evidence(self, facts: LabelFacts) -> str:
        if self._nothing_at_all(facts):
            return f'all {sum(facts.histogram.values()):,} pixels are ignored; stored are {sorted(stored(facts))[:8]}'
        return f'{counted(self._number(facts), "file")} of {facts.files:,} hold ignored pixels alone'

    def files(self, facts: LabelFacts) -> List[str]:
        return maps_of(facts).all_void

    def _number(self, facts: LabelFacts) -> int:
        return max(number_of(maps_of(facts), 'all_void'), maps_of(facts).void_files)

    def _nothing_at_all(self, facts: LabelFacts) -> bool:
        seen = ids_of(trained(facts)) - {facts.ignore_index}
        return bool(facts.histogram) and not seen and not facts.values
