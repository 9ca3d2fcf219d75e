from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from mmguard.findings.facts import LabelFacts, LoaderFacts
from mmguard.findings.finding import LIKELY, PROVEN
from mmguard.findings.rule import DataRule
from mmguard.findings.views import listing
from mmguard.text.words import counted

_FEW = 2


class LoaderDiffers(DataRule):
    """The loader of the config returns other labels than the scan counts, or none at all."""

    code = 'MG178'
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ('loader',)
    summary = 'The loader of the config returns other labels than this scan counts.'
    why = (
        'Training sees what the loader returns. The table of the scan follows the loaders of mmseg 1.x and mmdet 3.x; '
        'one of your own, or of another version (mmseg before 1.0 maps before it shifts), makes other labels of files.'
    )
    advice = (
        'Believe the loader: `mmguard trace CONFIG` shows the labels that training sees, step by step. Then give the '
        'loader what the scan assumes (its label_map, its reduce_zero_label), or guard behind it: `mmguard apply '
        'CONFIG -o OUT`.'
    )
    stops = 'The loader of the config stops at files that can be read.'
    correct = (
        'Training stops there, too. Correct the transform that loads the annotations, and what it is given: `mmguard '
        'trace CONFIG` runs it on one sample.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if self._loader(facts).differing else LIKELY if self._loader(facts).failed else None

    def summarise(self, facts: LabelFacts) -> str:
        return self.summary if self._loader(facts).differing else self.stops

    def advise(self, facts: LabelFacts) -> str:
        return self.advice if self._loader(facts).differing else self.correct

    def evidence(self, facts: LabelFacts) -> str:
        loader = self._loader(facts)
        if not loader.differing:
            return '; '.join(f'{file}: {raised}' for file, raised in list(loader.failed.items())[:_FEW])
        texts = [f'{file}: {self._difference(*both)}' for file, both in list(loader.differing.items())[:_FEW]]
        return f'{"; ".join(texts)} ({len(loader.differing)} of {counted(loader.files, "file")} compared)'

    def files(self, facts: LabelFacts) -> List[str]:
        return [*self._loader(facts).differing, *self._loader(facts).failed]

    def _loader(self, facts: LabelFacts) -> LoaderFacts:
        return facts.loader or LoaderFacts()

    def _difference(self, loaded: Dict[int, int], scanned: Dict[int, int]) -> str:
        values: Tuple[List[int], List[int]] = (sorted(loaded), sorted(scanned))
        if values[0] != values[1]:
            return f'the loader returns {listing(values[0], 12)}, the scan counts {listing(values[1], 12)}'
        other = [label for label in values[0] if loaded[label] != scanned[label]]
        counts = [f'{label} ({loaded[label]:,} times, scan {scanned[label]:,})' for label in other]
        return f'the loader returns {listing(counts, 4)}'
