from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import listing, maps_of, stored, trained
from mmguard.words import counted


class StretchedBits(Cause):
    """PNGs of 1, 2 or 4 bits, which loaders stretch over 0..255."""

    code = 'MG151'
    explains = ('MG103', 'MG106', 'MG107', 'MG116', 'MG121', 'MG125')
    needs = ('maps',)
    summary = 'Label files of fewer than 8 bits: the loader stretches their values over 0 to 255.'
    why = 'Class 1 of a 4-bit file becomes 17, of a 2-bit file 85, of a 1-bit file 255, which is ignored.'
    advice = 'Save them with 8 bits, index for index: `Image.fromarray(label.astype(np.uint8)).save(path)`.'

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.98 if maps_of(facts).loaded_otherwise.get('scaled') else 0.0

    def evidence(self, facts: LabelFacts) -> str:
        number = maps_of(facts).loaded_otherwise['scaled']
        before, after = listing(sorted(stored(facts))), listing(sorted(trained(facts)))
        return f'{counted(number, "file")}; values as stored: {before}; as loaded: {after}'
