from __future__ import annotations

from typing import Iterator, Optional

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.map_edits import convert_files
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import listing, maps_of, stored, trained
from mmguard.text import quantity


class StretchedBits(DataRule):
    """PNGs of 1, 2 or 4 bits, which loaders stretch over 0..255."""

    code = 'MG151'
    needs = ('maps',)
    summary = 'Label files of fewer than 8 bits: the loader stretches their values over 0 to 255.'
    why = 'Class 1 of a 4-bit file becomes 17, of a 2-bit file 85, of a 1-bit file 255, which is ignored.'
    example = Example(
        wrong="Image.fromarray(label).convert('1').save(path)",
        right='Image.fromarray(label.astype(np.uint8)).save(path)',
    )
    limits = 'It knows how mmseg and OpenCV load such files; another loader may not stretch them.'
    advice = (
        'Save them with 8 bits, index for index: `Image.fromarray(label.astype(np.uint8)).save(path)`. If the values '
        'as stored are not class indices either, look up what they mean first.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        yield from convert_files(facts, 'Rewrite the files with 8 bits, index for index.', SAFE)

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if maps_of(facts).loaded_otherwise.get('scaled') else None

    def evidence(self, facts: LabelFacts) -> str:
        number = maps_of(facts).loaded_otherwise['scaled']
        before, after = listing(sorted(stored(facts))), listing(sorted(trained(facts)))
        return f'{quantity(number, "file")}; values as stored: {before}; as loaded: {after}'
